"""A gold dialogue as it is written: one file a binding in `gold/`; `runtime/written.py` plays it."""

from pydantic import Field

from anthrolab.cards.persona import Card, CardId, Line


class Written(Card):
    """The lines of one chat, each `HH:MM:SS speaker text`; a line with a `~` before it is a draft that stayed unsent."""

    binding: CardId
    lines: list[Line] = Field(min_length=2)

"""What an import or an export comes to: a card or a draft, and every repair by name."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import ValidationError

from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Card
from anthrolab.errors import AnthrolabError
from anthrolab.yaml_files import explain

M = TypeVar("M", bound=Card)

Kind = Literal["persona", "scenario", "binding", "memory"]

Code = Literal[
    # the file
    "wrong_crc", "png_cut", "card_after_iend", "card_chunk_unreadable", "several_cards", "cards_differ",
    "base64_mended", "not_base64", "byte_order_mark", "broken_unicode", "duplicate_key", "not_json_value",
    # the format
    "v1_card", "unknown_spec", "newer_version", "missing_field", "wrong_type", "anthrolab_card_unreadable",
    # the content
    "id_made", "id_taken", "name_mended", "read_from_text", "label_twice", "split", "derived", "not_understood",
    "shared_field", "kept_outside", "edited_elsewhere", "stale_text", "no_card_file", "unresolved", "left_out",
    "scenario_copied", "opener_of_b", "underscore_id", "memory_of_another",
]  # fmt: skip
"""Every warning that an import or an export can give."""


class ExchangeError(AnthrolabError):
    """A file of another format that cannot be read or written; names the file and the fix."""


@dataclass(frozen=True)
class CardWarning:
    """One repair or loss: its code, the field (of the source where it has a name there) and what was done."""

    code: Code
    field: str
    done: str

    def __str__(self) -> str:
        return f"{self.code}: {self.field}: {self.done}"


MAX_SAID = 50
"""Warnings of one code that are kept; a broken file could give millions."""


class Notes:
    """The warnings of one import, in order; of each code the first `MAX_SAID` and then how many more."""

    def __init__(self) -> None:
        self._said: list[CardWarning] = []
        self._counts: Counter[Code] = Counter()

    def add(self, code: Code, field: str, done: str) -> None:
        """One more."""
        self._counts[code] += 1
        if self._counts[code] <= MAX_SAID:
            self._said.append(CardWarning(code, field, done))

    @property
    def all(self) -> tuple[CardWarning, ...]:
        """Every warning so far."""
        more = [CardWarning(c, "...", f"{n - MAX_SAID} more like this") for c, n in self._counts.items() if n > MAX_SAID]
        return (*self._said, *more)


@dataclass(frozen=True)
class Imported(Generic[M]):
    """One imported card (`card`), or a draft of it (`card` is None).

    `fields` is what was read, as the card has it; `problems` says, a line each, what a draft still needs, and
    `missing` which fields those are that are not there at all. `memories` came along with a persona and are its own; `strange`
    came along too and are somebody else's: they are written as drafts.
    """

    kind: Kind
    id: str
    source: Path
    card: M | None
    fields: Mapping[str, Any]
    missing: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[CardWarning, ...] = ()
    memories: tuple[Memory, ...] = ()
    strange: tuple[Memory, ...] = ()


@dataclass(frozen=True)
class Exported:
    """The files that an export wrote, and what the format has no place for."""

    paths: tuple[Path, ...]
    warnings: tuple[CardWarning, ...] = ()


def outcome(kind: Kind, card_id: str, source: Path, model: type[M], fields: Mapping[str, Any], notes: Notes) -> Imported[M]:
    """A card if the fields make one, else a draft."""
    try:
        card = model.model_validate(dict(fields))
    except ValidationError as e:
        missing = tuple(".".join(map(str, d["loc"])) for d in e.errors() if d["type"] == "missing")
        return Imported(kind, card_id, source, None, fields, missing, tuple(explain(e, model)), notes.all)
    return whole(kind, card_id, source, card, notes)


def whole(kind: Kind, card_id: str, source: Path, card: M, notes: Notes, memories: tuple[Memory, ...] = ()) -> Imported[M]:
    """The outcome of a card that needs nothing more."""
    return Imported(kind, card_id, source, card, card.model_dump(exclude_defaults=True), warnings=notes.all, memories=memories)

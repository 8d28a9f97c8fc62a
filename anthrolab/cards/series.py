"""A series: several sessions of one pair, days apart in virtual time (paper section 4.4). One file in `series/`."""

from pathlib import Path

from pydantic import Field, model_validator

from anthrolab.cards.library import CardError, Library
from anthrolab.cards.persona import Card, CardId, Line
from anthrolab.cards.scenario import Scenario
from anthrolab.yaml_files import read_model, suggest


class Series(Card):
    """The pair and its sessions, each a whole scenario card. What earlier sessions taught belongs into the
    speakers' memories, not into the `knows` of later ones."""

    id: CardId
    title: Line
    persona_a: CardId
    persona_b: CardId
    sessions: list[Scenario] = Field(min_length=2)

    @model_validator(mode="after")
    def _one_after_the_other(self) -> "Series":
        if self.persona_a == self.persona_b:
            raise ValueError("persona_a and persona_b are the same card; a chat needs two people")
        if len({s.id for s in self.sessions}) < len(self.sessions):
            raise ValueError("two sessions have the same id; give every session its own")
        for before, after in zip(self.sessions, self.sessions[1:], strict=False):
            if after.start.date() <= before.start.date():
                raise ValueError(f"session {after.id} starts on the day of {before.id} or before it; give it a later start")
        return self


def load_series(folder: Path, series_id: str, library: Library) -> Series:
    """`series/<id>.yaml` of a card folder; CardError if it is missing, broken, or names a persona that is not there."""
    path = folder / "series" / f"{series_id}.yaml"
    there = sorted(p.stem for p in (folder / "series").glob("*.yaml"))
    if series_id not in there:
        raise CardError([f"{path}: no such series{suggest(series_id, there)}; there are: {', '.join(there) or 'none'}"])
    series = read_model(path, Series)
    if series.id != series_id:
        raise CardError([f"{path}: id: is '{series.id}' but the file is named '{series_id}'; make them equal"])
    for field in ("persona_a", "persona_b"):
        ref = getattr(series, field)
        if ref not in library.personas:
            raise CardError([f"{path}: {field}: no persona '{ref}'{suggest(ref, library.personas)}; name another"])
    return series

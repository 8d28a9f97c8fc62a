"""Where failures come from: runs as their judges saw them, and ledgers alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from anthrolab.bench.ledger import Ledger, read_ledger
from anthrolab.bench.store import Run
from anthrolab.cards.library import Library
from anthrolab.cards.scenario import Scenario
from anthrolab.errors import AnthrolabError
from anthrolab.judging.rubric import Rubric
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.show.measured import Measured, load_all, load_measured

PUBLISHED = "published"
"""In place of a ledger folder: the reconstructed ledger of the sixteen published systems."""


class FailuresError(AnthrolabError):
    """Sources that cannot be laid side by side."""


@dataclass(frozen=True)
class Source:
    """A ledger with what is known behind it: a run as one judge saw it, or nothing (`measured` None).

    name: what pickers call it; note: why it has no chats, empty if it has; scenarios: cards by id, for titles;
    playable: whether its cases are known, so that they could be repaired or run again.
    """

    name: str
    ledger: Ledger
    measured: Measured | None = None
    note: str = ""
    scenarios: Mapping[str, Scenario] | None = None
    playable: bool = True

    @cached_property
    def dialogues(self) -> dict[tuple[str, int], Dialogue]:
        """Dialogues by case id and sample."""
        there = self.measured.dialogues.values() if self.measured else ()
        return {(f"{d.binding}-{d.evaluated_role}", d.sample): d for d in there}


def open_sources(run_dirs: str, judge: str, ledger_dir: str, rubric: Rubric | None = None, library: Library | None = None) -> list[Source]:
    """The sources that a notebook names, all of them optional: run folders with commas between them, as one judge saw
    them (as every judge did, if it is empty), and a ledger folder or "published".

    RunError for a run that is not judged so; FailuresError if nothing is named.
    """
    folders = list(dict.fromkeys(Path(part.strip()) for part in run_dirs.split(",") if part.strip()))
    measured = [m for f in folders for m in ([load_measured(f, judge, rubric)] if judge else load_all(f, rubric))]
    sources = [run_source(m, library) for m in measured]
    if ledger_dir == PUBLISHED:
        sources.append(published_source())
    elif ledger_dir:
        sources.append(ledger_source(read_ledger(Path(ledger_dir)), Run(Path(ledger_dir)).name))
    if not sources:
        raise FailuresError(f"nothing to show: name a judged run folder, or a ledger folder (or {PUBLISHED})")
    return sources


def run_source(measured: Measured, library: Library | None = None) -> Source:
    """A run as one judge saw it; with scenario titles where the library is the one that it was played with."""
    known = library is not None and library.content_hash() == measured.manifest["hashes"]["cards"]
    name = f"{measured.run} · {measured.judge_label}"
    note = "chats with a person, who cannot be asked again" if measured.with_people else ""
    scenarios = library.scenarios if library and known else None
    return Source(name, measured.ledger, measured, note=note, scenarios=scenarios, playable=not measured.with_people)


def ledger_source(ledger: Ledger, name: str) -> Source:
    """A ledger without a run folder."""
    return Source(name, ledger, note="a ledger alone: no chats and no reasons")


def published_source() -> Source:
    """The sixteen published systems, as reconstructed from the printed tables."""
    from anthrolab.bench.published import reconstructed_ledger

    note = "reconstructed ledger: no chats, not the authors' data"
    return Source("published (reconstructed)", reconstructed_ledger(), note=note, playable=False)

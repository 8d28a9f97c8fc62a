"""What a dialogue's record holds beside its messages: memories that it began with, summaries that it was played with."""

from dataclasses import dataclass

from anthrolab.cards.memory import SECTIONS
from anthrolab.runtime.dialogue import Dialogue, other

_KINDS = ("facts", "emotions", "commitments", "open_topics")


@dataclass(frozen=True)
class Note:
    """A memory or a summary in print: a title, and lines as (kind, text)."""

    title: str
    lines: list[tuple[str, str]]


def notes_of(dialogue: Dialogue) -> list[Note]:
    """The memories of both sides, then the summaries in the order in which they were shown."""
    names = {speaker: person.name for speaker, person in dialogue.speakers.items()}
    notes = [
        Note(
            f"{names[speaker]} remembers of {names[other(speaker)]} (as of {memory.as_of})",
            [(section, line) for section in SECTIONS for line in memory.of(section)],
        )
        for speaker, memory in sorted((dialogue.memories or {}).items())
    ]
    for summary in dialogue.summaries or []:
        lines = [(kind.replace("_", " "), line) for kind in _KINDS for line in getattr(summary, kind)]
        if summary.error is not None:
            lines.append(("error", summary.error))
        notes.append(Note(f"summary of the first {summary.upto} messages", lines))
    return notes

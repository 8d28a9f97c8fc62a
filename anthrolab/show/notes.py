"""What a dialogue's record holds beside its messages: memories that it began with, summaries that it was played with, and
whether a person took part."""

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


def person_in(dialogue: Dialogue) -> list[str]:
    """What is to be said of a chat that a person took part in; nothing of any other."""
    more = dialogue.model_extra or {}
    if not more.get("human"):
        return []
    back = more.get("rewinds", 0)
    return ["with a person", *([f"gone back {back} times and tried again"] if back else [])]

"""The dialogues of a pool: those that a loop accepted and repaired, and those written by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anthrolab.cards.library import Library
from anthrolab.cards.skill import Skill
from anthrolab.files import read_text
from anthrolab.loop.context import Context
from anthrolab.loop.filter import Filtered
from anthrolab.loop.filtering import read_filtered
from anthrolab.loop.folder import FILTERED, REPAIRS, Loop
from anthrolab.loop.repair import read_repairs
from anthrolab.loop.sft.samples import Source
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.written import load_gold


@dataclass(frozen=True)
class Entry:
    """A dialogue for the pool. `context`: what it was played with; `made_by`: whose words these are, for the data card,
    e.g. "qwen against gemma"."""

    dialogue: Dialogue
    context: Context
    source: Source
    round: int | None = None
    made_by: str = "not stated"

    @property
    def stale_from(self) -> int | None:
        """The first message (from 0) whose text is not the one that the record's summaries were made of; None: all fit.

        A model summarised a dialogue before it was repaired; summaries by rules are made anew.
        """
        if not isinstance(self.dialogue, Filtered) or self.dialogue.lineage is None or self.context.past != "logged":
            return None
        return min(self.dialogue.lineage.changed, default=None)


def loop_entries(loop: Loop, library: Library, *, upto: int) -> list[Entry]:
    """The accepted and the repaired dialogues of a loop's rounds 1 to `upto`, round by round in the order of their plans."""
    entries = []
    for number in range(1, upto + 1):
        run, folder = loop.run(number), loop.round_dir(number)
        context = Context.of_run(run, library, loop.skills_dir)
        settings = run.manifest()["settings"]
        players = f"{settings['system']['name']} against {settings['partner']['name']}"
        repairs = read_repairs(folder / REPAIRS) if (folder / REPAIRS).exists() else []
        repaired = {r.dialogue_id: r for r in repairs if r.dialogue is not None}
        for dialogue in read_filtered(folder / FILTERED):
            row = repaired.get(dialogue.dialogue_id)
            if dialogue.filter_result.status == "accepted":
                entries.append(Entry(dialogue, context, "accepted", number, players))
            elif row is not None and row.dialogue is not None:
                entries.append(Entry(row.dialogue, context, "repaired", number, f"{players}, repaired by {row.writer}"))
    return entries


def gold_entries(library: Library, cards_dir: Path, skills: Sequence[Skill] = ()) -> list[Entry]:
    """The hand-written dialogues of a folder of cards, played under the benchmark's limits (window of 12 messages, summaries
    by rules). `skills` stand in their prompts; give those that the model will be run with. Both sides are by hand, none was
    judged, so take `sides="both"`."""
    context = Context(library, tuple(skills))
    return [Entry(d, context, "gold", made_by="written by hand") for d in load_gold(cards_dir, library).values()]


def licence_of(cards_dir: Path) -> str:
    """The licence of a folder of cards as a line for the data card: the first line of its LICENSE."""
    path = cards_dir / "LICENSE"
    first = read_text(path).strip().split("\n")[0] if path.is_file() else "not stated (no LICENSE beside them)"
    return f"Cards and hand-written chats: {first}."

"""How steady a judge is: over repeats of the same judging, over the dialogue's course, and over lengths."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from anthrolab.intervals import Rate
from anthrolab.judging.calibration.measure import Unit, strict_outcome
from anthrolab.judging.labelled.items import Labelled
from anthrolab.judging.verdict import Verdict
from anthrolab.runtime.dialogue import Dialogue

THIRDS = ("first third", "middle third", "last third")


@dataclass(frozen=True)
class Bin:
    """The judge's answers in one part of the range; a rate is None where it has no meaning there."""

    label: str
    recall: Rate | None
    false_alarms: Rate | None


def flips(repeats: Sequence[Mapping[str, Verdict]]) -> dict[str, Rate]:
    """By id: pairs of judgings of the same checkbox (or constraint) that differ, of all pairs in which both answer.

    For two repeats that is the share of answers that changed; for more it is still the chance that two judgings
    differ. Pairs of one answer hang together then, and Wilson's interval is a little too narrow.
    """
    said: dict[tuple[str, str, int | None], list[bool]] = defaultdict(list)
    for verdicts in repeats:
        for key, verdict in verdicts.items():
            for turn in verdict.turns:
                for box in turn.boxes:
                    if box.passed is not None:
                        said[box.id, key, turn.turn_index].append(box.passed)
            for box in verdict.dialogue:
                if box.passed is not None:
                    said[box.id, key, None].append(box.passed)
            for answer in verdict.l0:
                if answer.violated is not None:
                    said[answer.id, key, None].append(answer.violated)
    rates: dict[str, Rate] = defaultdict(lambda: Rate(0, 0))
    for (box_id, _, _), answers in said.items():
        rates[box_id] += _pairs(answers)
    return dict(rates)


def outcome_flips(repeats: Sequence[Mapping[str, Verdict]], wanted: Iterable[str]) -> Rate:
    """Pairs of judgings of the same dialogue with another strict outcome, over the dialogues (ids) wanted."""
    rate = Rate(0, 0)
    for key in wanted:
        outcomes = [strict_outcome(verdicts[key]) for verdicts in repeats if key in verdicts]
        rate += _pairs([o for o in outcomes if o is not None])
    return rate


def by_position(found: Iterable[Unit], dialogues: Mapping[str, Dialogue], answered: set[str]) -> list[Bin]:
    """Recall by the third of the dialogue in which the failing message stands, over the ids that the judge answers."""
    parts: dict[int, list[Unit]] = defaultdict(list)
    for unit in found:
        if unit.source == "judge" and unit.positive and unit.message is not None and unit.id in answered:
            parts[3 * unit.message // len(dialogues[unit.item].messages)].append(unit)
    return [Bin(label, _recall(parts[third]), None) for third, label in enumerate(THIRDS)]


def by_dialogue_length(found: Iterable[Unit], dialogues: Mapping[str, Dialogue], answered: set[str]) -> list[Bin]:
    """Recall and false alarms in dialogues up to the median number of messages and in longer ones."""
    own = [u for u in found if u.source == "judge" and u.id in answered]
    lengths = {u.item: len(dialogues[u.item].messages) for u in own}
    if not own:
        return []
    middle = median(lengths.values())
    bins = []
    for label, part in (
        (f"dialogues up to {middle:g} messages", [u for u in own if lengths[u.item] <= middle]),
        (f"dialogues over {middle:g} messages", [u for u in own if lengths[u.item] > middle]),
    ):
        held = [u.failed for u in part if not u.positive and u.failed is not None]
        bins.append(Bin(label, _recall([u for u in part if u.positive]), Rate(sum(held), len(held))))
    return bins


def by_message_length(
    items: Iterable[Labelled], dialogues: Mapping[str, Dialogue], verdicts: Mapping[str, Verdict]
) -> list[Bin]:
    """False alarms on single messages up to the median length and on longer ones, in characters.

    Counted are the answers, turn by turn, to turn checkboxes that hold in the whole dialogue.
    """
    said: list[tuple[int, bool]] = []
    for item in items:
        for turn in verdicts[item.id].turns if item.id in verdicts else []:
            length = len(dialogues[item.id].messages[turn.message_index].content)
            said += [(length, not box.passed) for box in turn.boxes if box.id in item.holds and box.passed is not None]
    if not said:
        return []
    middle = median(length for length, _ in said)
    short = [failed for length, failed in said if length <= middle]
    long = [failed for length, failed in said if length > middle]
    return [
        Bin(f"messages up to {middle:g} characters", None, Rate(sum(short), len(short))),
        Bin(f"messages over {middle:g} characters", None, Rate(sum(long), len(long))),
    ]


def _recall(positives: Sequence[Unit]) -> Rate:
    return Rate(sum(u.failed is True for u in positives), len(positives))


def _pairs(answers: Sequence[bool]) -> Rate:
    """Pairs that differ, and all pairs."""
    yes, all_ = sum(answers), len(answers)
    return Rate(yes * (all_ - yes), all_ * (all_ - 1) // 2)

"""Blind rating: which dialogues, turns and checkboxes a person is asked about, in which order, and what they may see. Pure
but for the reading of dialogues.

A rater sees what was sent and when, nothing else:
- The rated side is A, the other B, whatever they are called: persona names beside user names would tell the kinds apart.
- No card, scenario or relationship, since chats of people have none; so checkboxes that need one are not asked.
- No date and no mark of a given opener, since virtual chats share both. They also begin at second 0, so the clock of every
  dialogue is put forward by some seconds, under a minute; and where one has whole minutes only, all are shown so.
- Ids, file names, why a chat stopped, drafts, silences, memories: never.
The messages themselves stand as they were sent, with any name in them: they are what is rated. How long a chat is and what
it says of itself ("I am an AI") can still give it away; whether it did, the guesses tell (`show.rating_guesses`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from anthrolab.cards.library import Library
from anthrolab.errors import AnthrolabError
from anthrolab.files import content_hash
from anthrolab.judging.calibration.outside import dialogue_lines
from anthrolab.judging.calibration.people import Place
from anthrolab.judging.rubric import Checkbox, Rubric
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.written import load_gold
from anthrolab.yaml_files import suggest

Kind = Literal["human-human", "human-model", "model-model", "written"]
PEOPLE: dict[Kind, int] = {"human-human": 2, "human-model": 1, "model-model": 0, "written": 0}
"""How many sides a person played. "written": invented by a writer, as the gold dialogues; neither a chat of people nor of models."""


class RatingError(AnthrolabError):
    """Dialogues, a choice of checkboxes or a rater that cannot be taken for rating."""


@dataclass(frozen=True)
class Rated:
    """A dialogue to be rated, its kind, and the sides that a person played as its record says (None: it does not say)."""

    dialogue: Dialogue
    kind: Kind
    human: frozenset[str] | None = None

    @property
    def machines(self) -> frozenset[str] | None:
        """The sides that a machine played; None where that is not known, and for what neither people nor machines spoke."""
        if self.kind == "human-model":
            return frozenset("ab") - self.human if self.human is not None else None
        return {"human-human": frozenset(), "model-model": frozenset("ab")}.get(self.kind)


@dataclass(frozen=True)
class Page:
    """What is asked at once: the checkboxes of one evaluated turn (from 1), or of the whole dialogue (None)."""

    dialogue: str
    turn: int | None
    boxes: tuple[Checkbox, ...]

    def places(self) -> list[Place]:
        """What is to be answered."""
        return [(self.dialogue, self.turn, box.id) for box in self.boxes]


@dataclass(frozen=True)
class BlindLine:
    """A message as a rater sees it: by A (`rated`) or B, its clock time, how many days after the message before, its text."""

    rated: bool
    at: str
    later: str
    text: str
    turn: int | None


def load_rated(files: Mapping[Kind, str]) -> list[Rated]:
    """The dialogues of some files by kind (paths with commas between; a run folder stands for its dialogues.jsonl).

    CheckError for a line that is no dialogue; RatingError names file and line of an id that stands twice or that a CSV file
    would not give back as it is (blanks at its ends, line breaks, unseen characters), and of a record whose own field `human`
    (the sides that a person played) says another kind.
    """
    found: dict[str, Rated] = {}
    places: dict[str, str] = {}
    for kind, text in files.items():
        for path in (Path(name.strip()) for name in text.split(",") if name.strip()):
            for number, dialogue in dialogue_lines(path / "dialogues.jsonl" if path.is_dir() else path):
                where, key = f"{path}: line {number}", dialogue.dialogue_id
                if not key or key != key.strip() or not key.isprintable():
                    raise RatingError(f"{where}: dialogue_id: {key!r:.80} is empty, or has blanks at its ends or unseen characters; rename it")
                if key in found:
                    raise RatingError(f"{where}: dialogue_id: '{key}' stands in {places[key]} too; rename one, or take one out")
                found[key], places[key] = Rated(dialogue, kind, _human(dialogue, kind, where)), where
    return list(found.values())


def written_rated(folder: Path, library: Library) -> list[Rated]:
    """The gold dialogues beside a folder's cards, a as the rated side, under the ids that judge-check knows them by."""
    return [
        Rated(d.model_copy(update={"dialogue_id": f"{d.dialogue_id}-a"}), "written", frozenset())
        for d in load_gold(folder, library).values()
    ]


def choose_boxes(rubric: Rubric, choice: str = "") -> list[Checkbox]:
    """The checkboxes of a choice ("D1, E4.2": dimensions and ids with commas; empty: all), in the rubric's order.

    Those that need a card are left out of a dimension; RatingError for one that is named itself, for a name that there is
    not, and where nothing is left.
    """
    named = [name.strip() for name in choice.split(",") if name.strip()] or [d.id for d in rubric.dimensions]
    by_dimension = {d.id: [box.id for box in d.checkboxes if not box.needs] for d in rubric.dimensions}
    all_boxes = {box.id: box for box in rubric.boxes()}
    wanted: set[str] = set()
    for name in named:
        if name not in all_boxes and name not in by_dimension:
            raise RatingError(f"boxes: '{name}' is no checkbox or dimension of the rubric {rubric.name}{suggest(name, [*by_dimension, *all_boxes])}")
        if name in all_boxes and (needs := all_boxes[name].needs):
            raise RatingError(f"boxes: {name} needs the {' and '.join(needs)} card, which would tell a rater what was made by a model; leave it out")
        wanted.update(by_dimension.get(name, [name]))
    if not wanted:
        raise RatingError(f"boxes: every checkbox of {', '.join(named)} needs a card, which a rater may not see; name others")
    return [box for box in rubric.boxes() if box.id in wanted]


@dataclass(frozen=True)
class Questions:
    """All that raters are asked. The same for everybody but for the order of the dialogues.

    rated: by dialogue id; loaded: these and all others that were given, drawn or not. rubric: the one of the checkboxes. pages: by
    dialogue id, turns first. silent: dialogues left out, in which the rated side says nothing after the opener. seconds:
    whether times are shown with seconds.
    """

    rated: Mapping[str, Rated]
    pages: Mapping[str, tuple[Page, ...]]
    silent: tuple[str, ...]
    seconds: bool
    seed: int
    loaded: Mapping[str, Rated]
    rubric: Rubric

    def order(self, rater: str) -> list[str]:
        """The dialogue ids in this rater's order, which the seed and the name decide; kinds stand as they fall."""
        return sorted(self.rated, key=lambda key: content_hash([self.seed, rater, key]))

    def pages_of(self, rater: str) -> list[Page]:
        """All pages in this rater's order."""
        return [page for key in self.order(rater) for page in self.pages[key]]

    def places(self) -> list[Place]:
        """Everything that is to be answered."""
        return [place for pages in self.pages.values() for page in pages for place in page.places()]

    def blind(self, dialogue: str) -> list[BlindLine]:
        """A dialogue as a rater sees it."""
        record = self.rated[dialogue].dialogue
        turns = {position: number for number, position in enumerate(record.turns(), 1)}
        forward = timedelta(seconds=int(content_hash([self.seed, "clock", dialogue]), 16) % 60 if self.seconds else 0)
        times = [message.at + forward for message in record.messages]
        return [
            BlindLine(
                rated=message.speaker == record.evaluated_role,
                at=times[i].strftime("%H:%M:%S" if self.seconds else "%H:%M"),
                later=_later(times[i], times[i - 1]) if i else "",
                text=message.content,
                turn=turns.get(i),
            )
            for i, message in enumerate(record.messages)
        ]


def ask(
    rated: Sequence[Rated], boxes: Sequence[Checkbox], rubric: Rubric, *, dialogues: int = 0, turns_per_dialogue: int = 3, seed: int = 0
) -> Questions:
    """What is asked of some dialogues; the draws depend on the seed and the ids alone, so all raters get the same.

    dialogues: how many are drawn, of every kind by turns (0: all). turns_per_dialogue: how many evaluated turns of each
    are asked about (0: all). RatingError where there is nothing to ask.
    """
    if dialogues < 0 or turns_per_dialogue < 0:
        raise RatingError("dialogues and turns_per_dialogue: are 0 (all) or more; change them")
    speaking = [r for r in rated if r.dialogue.turns()]
    chosen = _draw(speaking, dialogues, seed)
    if not chosen:
        raise RatingError("there is no dialogue in which the rated side says anything; name files that have some")
    of_turn, whole = (tuple(b for b in boxes if rubric.dimension_of[b.id].scope == scope) for scope in ("turn", "dialogue"))
    pages: dict[str, tuple[Page, ...]] = {}
    for key, one in chosen.items():
        numbers: list[int] = list(range(1, len(one.dialogue.turns()) + 1))
        drawn = sorted(sorted(numbers, key=lambda n: content_hash([seed, key, n]))[: turns_per_dialogue or None])
        turns = [Page(key, number, of_turn) for number in drawn] if of_turn else []
        pages[key] = (*turns, *([Page(key, None, whole)] if whole else []))
    silent = tuple(r.dialogue.dialogue_id for r in rated if not r.dialogue.turns())
    seconds = not any(_whole_minutes(r.dialogue) for r in chosen.values())
    return Questions(chosen, pages, silent, seconds, seed, {r.dialogue.dialogue_id: r for r in rated}, rubric)


def kinds(rated: Iterable[Rated]) -> dict[Kind, int]:
    """How many dialogues of each kind there are, of those that there are any."""
    found = [r.kind for r in rated]
    return {kind: found.count(kind) for kind in PEOPLE if kind in found}


def _human(dialogue: Dialogue, kind: Kind, where: str) -> frozenset[str] | None:
    """The sides that a person played, as the record says; RatingError if that is not the kind."""
    sides: Any = (dialogue.model_extra or {}).get("human")
    if sides is None:
        return None
    if not isinstance(sides, list) or any(side not in ("a", "b") for side in sides) or len({*sides}) < len(sides):
        raise RatingError(f"{where}: human: is {sides!r:.60}; write the sides that a person played, such as [\"b\"], or leave it out")
    if len(sides) != PEOPLE[kind]:
        played = {0: "no side was", 1: f"side {''.join(sides)} was", 2: "both sides were"}[len(sides)]
        raise RatingError(f"{where}: human: says that {played} played by a person, but the file is given as {kind}; give it as another kind, or mend the field")
    return frozenset(sides)


def _draw(rated: Sequence[Rated], most: int, seed: int) -> dict[str, Rated]:
    """Up to `most` dialogues, of every kind by turns (0: all)."""
    rounds: dict[Kind, int] = {}
    order = []
    for one in sorted(rated, key=lambda r: content_hash([seed, r.dialogue.dialogue_id])):
        rounds[one.kind] = rounds.get(one.kind, 0) + 1
        order.append((rounds[one.kind], list(PEOPLE).index(one.kind), one))
    order.sort(key=lambda entry: entry[:2])
    return {one.dialogue.dialogue_id: one for _, _, one in order[: most or None]}


def _whole_minutes(dialogue: Dialogue) -> bool:
    """Whether its clock seems to know no seconds."""
    return len(dialogue.messages) >= 2 and all(message.at.second == 0 for message in dialogue.messages)


def _later(at: datetime, before: datetime) -> str:
    days = (at.date() - before.date()).days
    return "" if days < 1 else "the next day" if days == 1 else f"{days} days later"

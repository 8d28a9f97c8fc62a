"""What raters answered, on disk.

    <folder>/<rater>.csv               a row an answer, as `labels` reads them; an answer without a value: cannot say
             guesses/<rater>.jsonl     a row a dialogue: which sides the rater took for a machine

Every answer is on disk before the form shows it. What was not answered has no row.
"""

import csv
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any, cast

from anthrolab.files import content_hash, read_text, write_atomic
from anthrolab.intervals import Rate
from anthrolab.judging.calibration.labels import (
    COLUMNS,
    HumanLabel,
    LabelsError,
    read_labels,
    rows_of,
    turn_in,
    value_in,
)
from anthrolab.judging.calibration.people import Place
from anthrolab.judging.calibration.rating import PEOPLE, Kind, Questions, Rated, RatingError
from anthrolab.judging.rubric import Rubric
from anthrolab.runtime.dialogue import Speaker

GUESSES = "guesses"
_LONGEST = 60


@dataclass(frozen=True)
class Rating:
    """One rater's answer to one checkbox; value: True for yes (passed), None for "cannot say"; note: in their own words."""

    dialogue: str
    turn: int | None
    box: str
    rater: str
    value: bool | None
    note: str = ""

    @property
    def place(self) -> Place:
        return self.dialogue, self.turn, self.box


@dataclass(frozen=True)
class Guess:
    """The sides of a dialogue that a rater took for a machine, in order; None: cannot say."""

    dialogue: str
    rater: str
    machines: tuple[Speaker, ...] | None


def rater_name(name: str) -> str:
    """A rater's name as it stands in the files; RatingError if it is none."""
    clean = " ".join(unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode("utf-8")).split())
    if not clean or clean == "majority":
        raise RatingError(f"rater: {clean!r} is no name of a rater; write your name or an alias, always the same one")
    return clean


def rater_file(folder: Path, rater: str) -> Path:
    """The file of a rater's answers. Characters that a file's name should not have become _, and a short hash of the name
    then keeps two raters apart.

    >>> rater_file(Path("r"), "王老师").as_posix()
    'r/王老师.csv'
    """
    return folder / f"{_stem(rater)}.csv"


def guess_file(folder: Path, rater: str) -> Path:
    """The file of a rater's guesses, in a folder of its own: they are no labels."""
    return folder / GUESSES / f"{_stem(rater)}.jsonl"


def load_ratings(folder: Path, rater: str) -> dict[Place, Rating]:
    """What a rater answered so far, in the order of the file; nothing if there is no file.

    LabelsError names the line of an answer that is none, of another rater's, and of one given twice.
    """
    path = rater_file(folder, rater)
    found: dict[Place, Rating] = {}
    for number, row in rows_of(path) if path.exists() else ():
        try:
            one = _rating(row)
            if one.rater != rater:
                raise ValueError(f"rater: is {one.rater}, but this is the file of {rater}; give every rater a file of their own")
            if one.place in found:
                raise ValueError(f"{one.box} of this turn or dialogue is answered above already; keep one of the two")
        except ValueError as e:
            raise LabelsError(f"{path}: line {number}: {e}") from e
        found[one.place] = one
    return found


def save_ratings(folder: Path, rater: str, changed: Iterable[Rating]) -> dict[Place, Rating]:
    """Put answers into the rater's file, where a new one replaces an older one, and return all that it holds now.

    The file is read again and written whole each time: a kill leaves the file before or the file after, and answers that
    came in by another window are kept.
    """
    ratings = load_ratings(folder, rater)
    ratings |= {one.place: one for one in changed}
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in ratings.values():
        value = "" if one.value is None else str(one.value).lower()
        writer.writerow([one.dialogue, "" if one.turn is None else one.turn, one.box, one.rater, value, _one_line(one.note)])
    write_atomic(rater_file(folder, rater), text.getvalue())
    return ratings


def labels_so_far(folder: Path, rated: Iterable[Rated], rubric: Rubric) -> list[HumanLabel]:
    """The answers of all raters in a folder; none if nobody has begun. LabelsError as `read_labels`."""
    if not any(folder.glob("*.csv")):
        return []
    return read_labels(folder, rubric, {r.dialogue.dialogue_id: len(r.dialogue.turns()) for r in rated})


def guesses_so_far(folder: Path, labels: Iterable[HumanLabel]) -> list[Guess]:
    """The guesses of all raters that answered something."""
    return [guess for rater in sorted({label.rater for label in labels}) for guess in load_guesses(folder, rater).values()]


def write_rated(path: Path, questions: Questions) -> int:
    """Write the dialogues that are rated to a file for `judge-check --dialogues`, and return how many; no file if there are
    none. Written ones are left out: judge-check has the gold dialogues by itself."""
    lines = [r.dialogue.to_line() + "\n" for r in questions.rated.values() if r.kind != "written"]
    if lines:
        write_atomic(path, "".join(lines))
    return len(lines)


def note_of(ratings: Mapping[Place, Rating], places: Sequence[Place]) -> str:
    """The note that stands with the answers of a page."""
    return next((ratings[p].note for p in places if p in ratings and ratings[p].note), "")


def with_note(ratings: Mapping[Place, Rating], places: Sequence[Place], note: str) -> list[Rating]:
    """The answers of a page that change when its note becomes `note`, which stands with the first of them."""
    given = [ratings[p] for p in places if p in ratings]
    wanted = [replace(one, note=_one_line(note) if i == 0 else "") for i, one in enumerate(given)]
    return [new for new, old in zip(wanted, given, strict=True) if new != old]


def load_guesses(folder: Path, rater: str) -> dict[str, Guess]:
    """A rater's guesses by dialogue; nothing if there is no file. RatingError names the line of one that is none."""
    path = guess_file(folder, rater)
    found: dict[str, Guess] = {}
    for number, line in enumerate(read_text(path).split("\n") if path.exists() else (), 1):
        if line.strip():
            try:
                row = json.loads(line)
                sides = row["machines"]
                if sides is not None and (not isinstance(sides, list) or any(s not in ("a", "b") for s in sides)):
                    raise ValueError("machines: are sides such as [\"b\"]")
                found[row["dialogue"]] = Guess(row["dialogue"], row["rater"], None if sides is None else tuple(sides))
            except (ValueError, KeyError, TypeError, RecursionError) as e:
                raise RatingError(f"{path}: line {number}: is no guess ({e}); mend that line or take it out") from e
    return found


def save_guess(folder: Path, guess: Guess) -> dict[str, Guess]:
    """Put a guess into the rater's file, where it replaces an older one, and return all that it holds now."""
    guesses = load_guesses(folder, guess.rater) | {guess.dialogue: guess}
    rows = [{"dialogue": g.dialogue, "rater": g.rater, "machines": g.machines} for g in guesses.values()]
    write_atomic(guess_file(folder, guess.rater), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return guesses


def guessed_right(guesses: Iterable[Guess], rated: Mapping[str, Rated]) -> dict[Kind, Rate]:
    """How often the guessed sides are exactly those that a machine played, by kind; "cannot say" is not right.

    Left out are written dialogues, which neither people nor machines spoke, dialogues not known, and those of a person and
    a model whose record does not say who is who.
    """
    rates: dict[Kind, Rate] = {}
    for guess in guesses:
        one = rated.get(guess.dialogue)
        machines = _machines(one) if one else None
        if one is not None and machines is not None:
            right = guess.machines is not None and {*guess.machines} == machines
            rates[one.kind] = rates.get(one.kind, Rate(0, 0)) + Rate(right, 1)
    return {kind: rates[kind] for kind in PEOPLE if kind in rates}


def _machines(rated: Rated) -> set[str] | None:
    """The sides that a machine played; None where that is not known."""
    if rated.kind == "written":
        return None
    if rated.kind == "human-model":
        return {"a", "b"} - rated.human if rated.human is not None else None
    return set() if rated.kind == "human-human" else {"a", "b"}


def _rating(row: Mapping[str, Any]) -> Rating:
    """The answer of a row; ValueError says what is wrong with it."""
    texts = {name: row.get(name) for name in ("dialogue", "box", "rater")}
    for name, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"{name}: is missing; write it, or take the line out")
    known = cast(dict[str, str], texts)
    return Rating(**known, turn=turn_in(row.get("turn")), value=value_in(row.get("value")), note=row.get("note") or "")


def _one_line(note: str) -> str:
    return " ".join(note.encode("utf-8", "replace").decode("utf-8").split())


def _stem(rater: str) -> str:
    """A rater's name as a file's name without ending."""
    safe = re.sub(r"[^\w-]", "_", rater)[:_LONGEST]
    return safe if safe == rater else f"{safe}-{content_hash(rater)[:6]}"

"""Raters' guesses which sides of a chat a machine played: on disk beside the answers, which they are not, and how often right.

    <folder>/guesses/<rater>.jsonl     a row a dialogue
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from anthrolab.files import read_text, write_atomic
from anthrolab.intervals import Rate
from anthrolab.judging.calibration.rating import PEOPLE, Kind, Questions, Rated, RatingError
from anthrolab.judging.calibration.rating_files import keep_texts, one_after_another, stem
from anthrolab.runtime.dialogue import Speaker, other

GUESS = ("neither", "A", "B", "both", "cannot say")
"""Which side was a machine; A is the rated side."""


@dataclass(frozen=True)
class Guess:
    """The sides of a dialogue that a rater took for a machine, in order; None: cannot say."""

    dialogue: str
    rater: str
    machines: tuple[Speaker, ...] | None


def guess_file(folder: Path, rater: str) -> Path:
    """The file of a rater's guesses, in a folder of its own: they are no labels."""
    return folder / "guesses" / f"{stem(rater)}.jsonl"


def load_guesses(folder: Path, rater: str) -> dict[str, Guess]:
    """A rater's guesses by dialogue; nothing if there is no file.

    RatingError names the line of one that is none, of another rater's, and of one given twice.
    """
    path = guess_file(folder, rater)
    return _guesses(path, rater) if path.exists() else {}


def save_guess(folder: Path, guess: Guess, questions: Questions, *, back: bool = False) -> dict[str, Guess]:
    """Put a guess into the rater's file, where it replaces an older one, or take it `back`, and return all that the file
    holds now. One window after the other. RatingError as `rating_files.check_texts`."""
    with one_after_another(folder):
        guesses = load_guesses(folder, guess.rater) | {guess.dialogue: guess}
        if back:
            del guesses[guess.dialogue]
        keep_texts(folder, [] if back else [guess.dialogue], questions)
        rows = [{"dialogue": g.dialogue, "rater": g.rater, "machines": g.machines} for g in guesses.values()]
        write_atomic(guess_file(folder, guess.rater), "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return guesses


def guesses_so_far(folder: Path) -> list[Guess]:
    """The guesses of all raters in a folder, whether they answered anything else or not. RatingError as `load_guesses`."""
    return [guess for path in sorted((folder / "guesses").glob("[!.]*.jsonl")) for guess in _guesses(path).values()]


def guessed_right(guesses: Iterable[Guess], rated: Mapping[str, Rated]) -> dict[Kind, Rate]:
    """How often the guessed sides are exactly those that a machine played, by kind; "cannot say" is not right.

    Left out are written dialogues, which neither people nor machines spoke, dialogues not known, and those of a person and
    a model whose record does not say who is who.
    """
    rates: dict[Kind, Rate] = {}
    for guess in guesses:
        one = rated.get(guess.dialogue)
        if one is not None and one.machines is not None:
            right = guess.machines is not None and {*guess.machines} == one.machines
            rates[one.kind] = rates.get(one.kind, Rate(0, 0)) + Rate(right, 1)
    return {kind: rates[kind] for kind in PEOPLE if kind in rates}


def best_single_guess(guesses: Iterable[Guess], rated: Mapping[str, Rated]) -> tuple[str, Rate]:
    """The guess with which somebody who always gives it, without reading, would have been right most often on these, and
    how often: what `guessed_right` has to be held against."""
    known = [one for guess in guesses if (one := rated.get(guess.dialogue)) is not None and one.machines is not None]
    played = [next(said for said in GUESS if {*(sides_of(said, one.dialogue.evaluated_role) or ())} == {*(one.machines or ())}) for one in known]
    best = max(GUESS[:4], key=played.count)
    return best, Rate(played.count(best), len(played))


def sides_of(said: str, a: Speaker) -> tuple[Speaker, ...] | None:
    """The sides that a guess of the form names, where `a` is the side shown as A; None for "cannot say"."""
    sides: dict[str, tuple[Speaker, ...] | None] = {"neither": (), "A": (a,), "B": (other(a),), "both": ("a", "b"), "cannot say": None}
    return sides[said]


def said_of(guess: Guess, a: Speaker) -> str:
    """The guess as the form shows it."""
    return next(said for said in GUESS if sides_of(said, a) == guess.machines)


def _guesses(path: Path, rater: str = "") -> dict[str, Guess]:
    """The guesses of a file, all of one rater (empty: whose they are, the first line says)."""
    found: dict[str, Guess] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            try:
                guess = _guess(json.loads(line))
                rater = rater or guess.rater
                if guess.rater != rater or guess_file(path.parent.parent, rater) != path:
                    raise ValueError(f"rater: is {guess.rater}, but this is the file of another")
                if guess.dialogue in found:
                    raise ValueError("dialogue: is guessed above already")
            except (ValueError, RecursionError) as e:
                raise RatingError(f"{path}: line {number}: is no guess ({e}); mend that line or take it out") from e
            found[guess.dialogue] = guess
    return found


def _guess(row: object) -> Guess:
    """The guess of a row; ValueError says what is wrong with it."""
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str) and row[name] for name in ("dialogue", "rater")) or "machines" not in row:
        raise ValueError("dialogue, rater, machines: one is missing or no text")
    sides = row["machines"]
    if sides not in (None, [], ["a"], ["b"], ["a", "b"]):
        raise ValueError('machines: are null or the sides in order, such as ["b"]')
    return Guess(row["dialogue"], row["rater"], None if sides is None else tuple(sides))

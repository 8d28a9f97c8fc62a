"""What raters answered, on disk.

    <folder>/<rater>.csv               a row an answer, as `labels` reads them; an answer without a value: cannot say
             guesses/<rater>.jsonl     a row a dialogue: which sides the rater took for a machine
             rated.json                the dialogues that somebody answered something about: a hash of what was said
             .lock                     held while one window saves

Every answer is on disk before the form shows it. What was not answered has no row.
"""

import contextlib
import csv
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from anthrolab.files import content_hash, read_text, unwritable, write_atomic
from anthrolab.judging.calibration.labels import COLUMNS, HumanLabel, LabelsError, label_in, read_labels, rows_of
from anthrolab.judging.calibration.people import Place
from anthrolab.judging.calibration.rating import Questions, Rated, RatingError
from anthrolab.runtime.dialogue import Dialogue

TEXTS = "rated.json"
_LONGEST = 50
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Characters that are letters, marks or signs by their class and show nothing."""
_NO_STEM = re.compile(r"(con|prn|aux|nul|com\d|lpt\d|.*-[0-9a-f]{6})")
"""What is no file on Windows, and what looks like a stem with a hash."""


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


def rater_name(name: str) -> str:
    """A rater's name as it stands in the files; RatingError if it is none."""
    clean = " ".join(unicodedata.normalize("NFC", name.encode("utf-8", "replace").decode("utf-8")).split())
    if not clean or clean == "majority":
        raise RatingError(f"rater: {clean!r} is no name of a rater; write your name or an alias, always the same one")
    if unseen := [c for c in clean if not c.isprintable() or _BLANK.match(c)]:
        raise RatingError(f"rater: {clean!r:.80} holds a character that cannot be seen (U+{ord(unseen[0]):04X}); type the name anew")
    return clean


def rater_file(folder: Path, rater: str) -> Path:
    """The file of a rater's answers. Large letters become small and characters that a file's name should not have _, since
    some systems do not tell Li.csv from li.csv, and a short hash of the name then keeps two raters apart.

    >>> rater_file(Path("r"), "王老师").as_posix()
    'r/王老师.csv'
    """
    return folder / f"{stem(rater)}.csv"


def load_ratings(folder: Path, rater: str, questions: Questions) -> dict[Place, Rating]:
    """What a rater answered so far, in the order of the file, of other dialogues too; nothing if there is no file.

    LabelsError names the line of an answer that is no label (as `read_labels`), of another rater's, and of one given twice.
    """
    path = rater_file(folder, rater)
    found: dict[Place, Rating] = {}
    for number, row in rows_of(path) if path.exists() else ():
        try:
            label = label_in(row, questions.rubric, _turns(questions), others=True)
            one = Rating(label.dialogue, label.turn, label.box, label.rater, label.passed, row.get("note") or "")
            if one.rater != rater:
                raise ValueError(f"rater: is {one.rater}, but this is the file of {rater}; give every rater a file of their own")
            if one.place in found:
                raise ValueError(f"{one.box} of this turn or dialogue is answered above already; keep one of the two")
        except ValueError as e:
            raise LabelsError(f"{path}: line {number}: {e}") from e
        found[one.place] = one
    return found


def save_ratings(folder: Path, rater: str, changed: Iterable[Rating], questions: Questions, *, back: Iterable[Place] = ()) -> dict[Place, Rating]:
    """Put answers into the rater's file, where a new one replaces an older one, take those at `back` out, and return all
    that it holds now.

    The file is read again and written whole each time, by one window after the other: a kill leaves the file before or the
    file after, and answers that came in by another window are kept. RatingError as `check_texts`.
    """
    new = {one.place: one for one in changed}
    with one_after_another(folder):
        ratings = load_ratings(folder, rater, questions) | new
        for place in back:
            ratings.pop(place, None)
        keep_texts(folder, {key for key, *_ in new}, questions)
        text = StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in ratings.values():
            value = "" if one.value is None else str(one.value).lower()
            writer.writerow([one.dialogue, "" if one.turn is None else one.turn, one.box, one.rater, value, _one_line(one.note)])
        write_atomic(rater_file(folder, rater), text.getvalue())
    return ratings


def check_texts(folder: Path, dialogues: Iterable[Dialogue]) -> None:
    """RatingError names a dialogue that says something else now than when raters answered: their answers are of no use to it."""
    kept = _kept_texts(folder)
    for one in dialogues:
        if kept.get(one.dialogue_id, own := _text_hash(one)) != own:
            raise RatingError(
                f"{folder / TEXTS}: {one.dialogue_id}: the dialogue is not the one that was rated under this id; restore its text, or rename it (the new one is then rated anew)"
            )


def labels_so_far(folder: Path, questions: Questions) -> list[HumanLabel]:
    """The answers of all raters in a folder, of dialogues that are not loaded too; none if nobody has begun.

    LabelsError as `read_labels`, RatingError as `check_texts`.
    """
    check_texts(folder, (r.dialogue for r in questions.loaded.values()))
    if not any(True for file in folder.glob("*.csv") for _ in rows_of(file)):
        return []
    return read_labels(folder, questions.rubric, _turns(questions), others=True)


def not_loaded(labels: Iterable[HumanLabel], rated: Iterable[Rated]) -> list[str]:
    """The ids of labelled dialogues that are not among these."""
    return sorted({label.dialogue for label in labels} - {r.dialogue.dialogue_id for r in rated})


def write_rated(path: Path, questions: Questions, labels: Iterable[HumanLabel]) -> int:
    """Write the loaded dialogues that are asked about or have a label to a file for `judge-check --dialogues`, and return
    how many; no file if there are none. Written ones are left out: judge-check has the gold dialogues by itself."""
    wanted = {label.dialogue for label in labels} | set(questions.rated)
    lines = [r.dialogue.to_line() + "\n" for key, r in questions.loaded.items() if key in wanted and r.kind != "written"]
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


def _one_line(note: str) -> str:
    return " ".join(note.encode("utf-8", "replace").decode("utf-8").split())


def _turns(questions: Questions) -> dict[str, int]:
    return {key: len(r.dialogue.turns()) for key, r in questions.loaded.items()}


def stem(rater: str) -> str:
    """A rater's name as a file's name without ending."""
    safe = re.sub(r"[^\w-]", "_", rater.upper().casefold())[:_LONGEST]
    return safe if safe == rater and not _NO_STEM.fullmatch(rater) else f"{safe}-{content_hash(rater)[:6]}"


@contextlib.contextmanager
def one_after_another(folder: Path) -> Iterator[None]:
    """Whoever saves in a folder, which is made if need be, waits until nobody else does."""
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".lock", "w")  # noqa: SIM115 - held until the block ends
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as e:
        raise unwritable(folder / ".lock", e) from e
    with lock:
        yield


def keep_texts(folder: Path, dialogues: Iterable[str], questions: Questions) -> None:
    """Write down what the dialogues say that something is answered about now. RatingError as `check_texts`."""
    new = {key: questions.loaded[key].dialogue for key in dialogues if key in questions.loaded}
    check_texts(folder, new.values())
    kept = _kept_texts(folder)
    if not set(new) <= set(kept):
        texts = {key: _text_hash(one) for key, one in new.items()} | kept
        write_atomic(folder / TEXTS, json.dumps(texts, ensure_ascii=False, indent=1, sort_keys=True) + "\n")


def _kept_texts(folder: Path) -> dict[str, str]:
    path = folder / TEXTS
    try:
        kept = json.loads(read_text(path)) if path.exists() else {}
        if not isinstance(kept, dict) or any(not isinstance(text, str) for text in kept.values()):
            raise ValueError("it is an object of hashes by dialogue id")
    except (ValueError, RecursionError) as e:
        raise RatingError(f"{path}: is broken ({e}); take it back from a copy, or delete it if no dialogue was changed since it was rated") from e
    return kept


def _text_hash(dialogue: Dialogue) -> str:
    """Of what answers are about: who is rated, who said what and when, and which messages are turns."""
    return content_hash([dialogue.evaluated_role, *([m.speaker, m.content, m.at.isoformat(), m.opener] for m in dialogue.messages)])

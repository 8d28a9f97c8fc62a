"""What there is of a loop, read for those who show it: rounds, versions of skills, A/Bs."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from anthrolab.files import whole_lines
from anthrolab.loop.ab import SkillTest, read_ab
from anthrolab.loop.folder import REPAIRS, Loop, LoopError
from anthrolab.loop.records import RECORDS, FailureRecord, read_records
from anthrolab.loop.repair import repaired_by_dimension
from anthrolab.loop.skill_files import Evolution, Version, history, read_evolution

T = TypeVar("T")


@dataclass(frozen=True)
class RoundView:
    """One round. statuses: dialogues by status, of bindings that teach and (`held_back`) of those that do not; None where
    nothing is filtered yet. repairs: by outcome; repaired: as in `repaired_by_dimension`. records: failures. evolution: what it did to the skills, if it came to that."""

    number: int
    statuses: Mapping[str, int] | None
    held_back: Mapping[str, int]
    repairs: Mapping[str, int]
    repaired: pl.DataFrame
    records: Sequence[FailureRecord]
    evolution: Evolution | None

    @property
    def taught_by(self) -> int:
        """Dialogues that teach."""
        return sum((self.statuses or {}).values())


@dataclass(frozen=True)
class LoopView:
    """A loop as it is shown. records of held-back bindings are in no round; tests: the A/Bs by round."""

    name: str
    rounds: Sequence[RoundView]
    versions: Sequence[Version]
    tests: Mapping[int, SkillTest]


def read_loop(path: Path) -> LoopView:
    """What is there of a loop; LoopError for a folder that is none, or that holds no round."""
    loop = Loop(path)
    held_back = set(loop.settings().held_back)
    numbers = loop.rounds()
    if not numbers:
        raise LoopError(f"{path}: holds no round yet; run: anthrolab loop run {path}")
    rounds = []
    for number in numbers:
        folder = loop.round_dir(number)
        done = _values(folder / "filtered.jsonl", lambda row: (row.get("binding") in held_back, str(row["filter_result"]["status"])))
        counts = [Counter(status for is_back, status in done if is_back is back) for back in (False, True)]
        outcomes = dict(_values(folder / REPAIRS, lambda row: (str(row["dialogue_id"]), str(row["outcome"]))))
        records = read_records(folder / RECORDS) if (folder / RECORDS).exists() else []
        own = [r for r in records if r.binding not in held_back]
        filtered = (folder / "filtered.jsonl").exists()
        repaired, evolution = repaired_by_dimension(own, outcomes), read_evolution(loop, number)
        rounds.append(RoundView(number, counts[0] if filtered else None, counts[1], Counter(outcomes.values()), repaired, own, evolution))
    tests = {number: test for number in numbers if (test := read_ab(loop, number)) is not None}
    return LoopView(loop.name, rounds, history(loop), tests)


def _values(path: Path, of: Callable[[Any], T]) -> list[T]:
    """What `of` takes from each line of a JSONL file; none if there is no file."""
    try:
        return [of(json.loads(line)) for line in whole_lines(path)] if path.exists() else []
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise LoopError(f"{path}: a line cannot be read ({e!r}); remove the file and give the loop's command again") from e

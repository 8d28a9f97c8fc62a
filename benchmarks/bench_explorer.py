"""How long the failure explorer takes: the first view, and a changed selection.

    python -m benchmarks.bench_explorer

On the reconstructed ledger of the sixteen published systems (1,600 cases, 504,145 checkboxes, no chats), and on 16 runs
of 100 cases each with the gold dialogues as chats and seeded verdicts. Python's share only, rendering included; the
browser test of the explorer reports what is seen in a browser. Aims: 2 s to the first view, 0.2 s to a changed selection.
"""

import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import polars as pl

from anthrolab.bench.cases import select_cases
from anthrolab.bench.ledger import Ledger
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.scores import box_rows
from anthrolab.judging.verdict import BoxVerdict, TurnVerdict, Verdict
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.written import load_gold
from anthrolab.show.explorer import FailureExplorer
from anthrolab.show.explorer_page import write_explorer_page
from anthrolab.show.explorer_state import ExplorerState
from anthrolab.show.failure_sources import Source, published_source, run_source
from anthrolab.show.failures import collect
from anthrolab.show.measured import Measured

REASONS = ("“首先”是作文腔", "答非所问", "语气像客服", "刚说过的话又说了一遍", "时间对不上", "没接住对方的情绪")


def made_runs(systems: int = 16, seed: int = 3) -> list[Measured]:
    """Runs of 100 cases: the gold dialogues as chats, and of every checkbox 4 in 100 failed, by a seeded draw."""
    rng, rubric, library = random.Random(seed), load_rubric(), load_library(default_cards_dir())
    gold = load_gold(default_cards_dir(), library)
    cases, hashes = select_cases(library, None), {"cards": library.content_hash()}
    runs = []
    for number in range(systems):
        run, system = f"run{number:02d}", f"system-{number:02d}"
        dialogues: dict[str, Dialogue] = {}
        planned: list[dict[str, Any]] = []
        boxes: list[dict[str, Any]] = []
        verdicts: dict[str, Verdict] = {}
        for case in cases:
            changes = {"dialogue_id": f"{run}-{case.id}-0", "evaluated_role": case.role}
            dialogue = gold[case.binding].model_copy(update=changes)
            verdict = _verdict(dialogue, rubric, rng)
            dialogues[dialogue.dialogue_id], verdicts[dialogue.dialogue_id] = dialogue, verdict
            of_case = {"system": system, "case_id": case.id, "sample": 0}
            planned.append({**of_case, "binding": case.binding, "role": case.role, "category": case.category, "valid": True})
            boxes += [{**of_case, **row._asdict()} for row in box_rows(verdict, rubric)]
        passed: dict[str, Any] = {"valid": True, "reason": None, "violations": [], "partner_violations": [], "executed": []}
        gate: dict[str, dict[str, Any]] = {key: {"dialogue_id": key, **passed} for key in dialogues}
        ledger = Ledger(pl.DataFrame(planned), pl.DataFrame(boxes, infer_schema_length=None))
        settings = {"system": {"name": system}, "partner": {"name": "partner"}}
        runs.append(Measured(run, "judge", {"settings": settings, "hashes": hashes}, ledger, dialogues, verdicts, gate, [], rubric, Path(run)))
    return runs


def _verdict(dialogue: Dialogue, rubric: Rubric, rng: random.Random) -> Verdict:
    def boxes(scope: Any) -> list[BoxVerdict]:
        drawn = [(b.id, rng.random() < 0.04) for b in rubric.boxes(scope)]
        return [BoxVerdict(id=id, passed=not failed, reason=rng.choice(REASONS) if failed else None) for id, failed in drawn]

    turns = [TurnVerdict(turn_index=n, message_index=i, boxes=boxes("turn")) for n, i in enumerate(dialogue.turns(), 1)]
    return Verdict(
        dialogue_id=dialogue.dialogue_id, judge="judge", judge_identity="0" * 16, rubric=rubric.hash, turns=turns, dialogue=boxes("dialogue")
    )  # fmt: skip


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def measure(name: str, sources: Sequence[Source]) -> None:
    """Print the figures of one set of sources."""
    seconds, failures = timed(lambda: collect(sources))
    boxes = sum(s.ledger.checkboxes.height for s in sources)
    print(f"{name}: {failures.cases.height:,} cases, {boxes:,} checkboxes, {failures.rows.height:,} failures")
    print(f"  all failures in one frame          {seconds:7.3f} s")
    first, explorer = timed(lambda: FailureExplorer(ExplorerState(failures), Path("selections")))
    print(f"  pickers, list and first case       {first:7.3f} s")
    print(f"  the list for readers without kernel {timed(explorer._repr_mimebundle_)[0]:6.3f} s")
    times = {what: _changes(explorer, change) for what, change in _CHANGES.items()}
    for what, taken in times.items():
        print(f"  {what:34} {median(taken):7.3f} s median, {max(taken):.3f} s at most, of {len(taken)}")
    with tempfile.TemporaryDirectory() as folder:
        seconds, page = timed(lambda: write_explorer_page(sources, Path(folder) / "failures.html"))
        print(f"  the static page                    {seconds:7.3f} s, {page.stat().st_size / 1e6:.1f} MB")


def _changes(explorer: FailureExplorer, change: Callable[[FailureExplorer, int], None]) -> list[float]:
    times = []
    for turn in range(24):
        times.append(timed(lambda: change(explorer, turn))[0])  # noqa: B023 - called at once
    for picker in explorer.pickers.values():
        picker.value = ""
    explorer.search.value = ""
    explorer.beside.value = ""
    return times


def _pick(facet: str) -> Callable[[FailureExplorer, int], None]:
    def change(explorer: FailureExplorer, turn: int) -> None:
        options = explorer.pickers[facet].options
        explorer.pickers[facet].value = options[1 + turn % (len(options) - 1)][1]

    return change


def _case(explorer: FailureExplorer, turn: int) -> None:
    explorer.list.value = explorer.list.options[(7 * turn + 1) % len(explorer.list.options)][1]


def _beside(explorer: FailureExplorer, turn: int) -> None:
    explorer.beside.value = explorer.beside.options[1 + turn % (len(explorer.beside.options) - 1)][1]


def _search(explorer: FailureExplorer, turn: int) -> None:
    explorer.search.value = ("客服", "gpt", "作文腔 首先", "b", "哈", "system-07")[turn % 6]


_CHANGES: dict[str, Callable[[FailureExplorer, int], None]] = {
    "another system": _pick("system"), "another checkbox": _pick("checkbox"), "another category": _pick("category"),
    "another case": _case, "another system beside": _beside, "other words": _search,
}  # fmt: skip


def main() -> None:
    """Print the figures of both."""
    seconds, published = timed(published_source)
    print(f"reading the reconstructed ledger     {seconds:7.3f} s")
    measure("Reconstructed ledger", [published])
    library = load_library(default_cards_dir())
    measure("16 runs with chats", [run_source(m, library) for m in made_runs()])


if __name__ == "__main__":
    main()

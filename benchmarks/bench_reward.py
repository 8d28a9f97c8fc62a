"""How long the reward of a batch takes once its dialogues are judged.

    python -m benchmarks.bench_reward [dialogues]

The capability filter and all rewards of 4,096 seeded dialogues with ten dimensions (some unassessed, some invalid, some not
judged), as the median of repeats in one process, and as a ratio to the literal version in plain loops that the tests hold
the product against. Then what comes before it: `scores_of` for a verdict of 13 turns, and a ledger of 1,600 dialogues.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from anthrolab.bench.ledger import Ledger
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.scores import box_rows
from anthrolab.judging.verdict import BoxVerdict, TurnVerdict, Verdict
from anthrolab.training.reward.batch import Batch, Dimensions
from anthrolab.training.reward.capability import Capability
from anthrolab.training.reward.ledger import LedgerBatch
from anthrolab.training.reward.reward import rewards
from anthrolab.training.reward.scores import scores_of
from anthrolab.training.reward.settings import PAPER
from tests.literal_reward import LiteralState, Row, observed, reward_of

TURNS = 13
LEDGER = 1_600


def made_up(dimensions: Dimensions, count: int, seed: int = 7) -> list[Row]:
    """`count` dialogues: 2% not judged, 5% invalid, 10% of the scores unassessed."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        scores = {i: None if rng.random() < 0.1 else rng.choice([0.25, 0.5, 0.75, 0.8, 1.0, rng.random()]) for i in dimensions.ids}
        passed = {i: None if s is None else float(s == 1) for i, s in scores.items()}
        rows.append(Row(rng.random() > 0.05, rng.random() > 0.02, scores, passed))
    return rows


def made_up_verdict(rubric: Rubric, seed: int) -> Verdict:
    """A verdict on 13 turns: 3 of 4 boxes passed, 1 in 20 unassessed."""
    rng = random.Random(seed)

    def card(scope: str) -> list[BoxVerdict]:
        return [
            BoxVerdict(id=b.id, unassessed="undecided") if rng.random() < 0.05 else BoxVerdict(id=b.id, passed=rng.random() < 0.75)
            for d in rubric.dimensions if d.scope == scope for b in d.checkboxes
        ]  # fmt: skip

    turns = [TurnVerdict(turn_index=i, message_index=2 * i, boxes=card("turn")) for i in range(1, TURNS + 1)]
    return Verdict(dialogue_id=f"d{seed}", judge="j", judge_identity="i", rubric=rubric.hash, turns=turns, dialogue=card("dialogue"))


def made_up_ledger(rubric: Rubric, count: int) -> Ledger:
    """The ledger of so many valid cases."""
    verdicts = [made_up_verdict(rubric, seed) for seed in range(40)]
    keys = [f"c{i:05d}" for i in range(count)]
    cases = {"system": ["m"] * count, "case_id": keys, "binding": keys, "role": ["a"] * count, "category": ["Sport"] * count, "valid": [True] * count}
    boxes = [{"system": "m", "case_id": key, **row._asdict()} for i, key in enumerate(keys) for row in box_rows(verdicts[i % 40], rubric)]
    return Ledger(pl.DataFrame(cases), pl.DataFrame(boxes, infer_schema_length=None))


def median_ms(do: Callable[[], object], repeats: int, clock: Callable[[], float] = time.process_time) -> tuple[float, float, float]:
    """Least, median and greatest milliseconds, after one call that is not counted."""
    do()
    taken = []
    for _ in range(repeats):
        start = clock()
        do()
        taken.append(1000 * (clock() - start))
    return min(taken), statistics.median(taken), max(taken)


def main(count: int = 4_096) -> None:
    """Print the times."""
    rubric = load_rubric()
    dimensions = Dimensions.of(rubric)
    rows = made_up(dimensions, count)
    batch = Batch.of([(dimensions.row(r.scores), dimensions.row(r.passed), r.valid, r.judged) for r in rows], len(dimensions.ids))
    begin = Capability.initial(dimensions, dict.fromkeys(dimensions.ids, 0.6))
    theta, rho = begin.by_dimension(), dict(zip(dimensions.ids, map(float, dimensions.rho), strict=True))
    local = [i for i, is_local in zip(dimensions.ids, dimensions.local, strict=True) if is_local]
    slow_state = LiteralState(theta, dict.fromkeys(dimensions.ids, PAPER.P0))

    def fast() -> tuple[np.ndarray, Capability]:
        return rewards(batch, begin.theta, dimensions).reward, begin.observe(batch)[0]

    def literal() -> tuple[list[float | None], LiteralState]:
        return [reward_of(r, theta, rho, local, PAPER).reward for r in rows], observed(slow_state, rows, PAPER)

    reward, after = fast()
    slow_reward, slow_after = literal()
    assert np.allclose(reward, np.array([np.nan if r is None else r for r in slow_reward]), rtol=0, atol=1e-9, equal_nan=True)
    assert np.allclose(after.theta, dimensions.row(slow_after.theta), rtol=0, atol=1e-9)
    least, median, most = median_ms(fast, 51)
    _, slow, _ = median_ms(literal, 5)
    print(f"filter and rewards, {count:,} judged dialogues: {median:.2f} ms ({least:.2f} to {most:.2f}, 51 repeats; aim 10 ms at 4,096)")
    print(f"the literal version in plain loops:        {slow:.1f} ms, {slow / median:.0f} times as long")
    verdicts = [made_up_verdict(rubric, seed) for seed in range(200)]
    _, each, _ = median_ms(lambda: [scores_of(v, rubric, dimensions) for v in verdicts], 11)
    print(f"scores of a verdict of {TURNS} turns:           {1000 * each / len(verdicts):.0f} us")
    ledger = made_up_ledger(rubric, LEDGER)
    least, median, most = median_ms(lambda: LedgerBatch.of(ledger), 21, time.perf_counter)
    print(f"a ledger of {LEDGER:,} dialogues as a batch:     {median:.1f} ms ({least:.1f} to {most:.1f}; {ledger.checkboxes.height:,} checkboxes)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4_096)

"""Two runs under the same conditions, compared case by case."""

from collections.abc import Sequence
from itertools import combinations

import polars as pl

from anthrolab.bench.scores import case_scores
from anthrolab.bench.stats import compare
from anthrolab.files import canonical_json
from anthrolab.intervals import Interval
from anthrolab.show.measured import Measured
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table


def comparisons(measured: Sequence[Measured], *, seed: int = 0) -> PrintedTable | None:
    """McNemar's test and paired differences of every two systems with the same judge, rubric, partner, cards and
    limits; None if there are no two such runs. Chats with a person have no case in common with any others."""
    rows = []
    for one, two in combinations(measured, 2):
        if one.with_people or two.with_people or one.system == two.system or _conditions(one) != _conditions(two):
            continue
        scores = pl.concat([case_scores(m.ledger, m.weights) for m in (one, two)])
        c = compare(scores, one.system, two.system, seed=seed)
        rows.append(
            {
                "Systems": f"{c.a} minus {c.b}",
                "Judge": one.judge_label,
                "Cases compared": str(c.compared),
                "Only first passes": str(c.test.only_a),
                "Only second passes": str(c.test.only_b),
                "McNemar p": f"{c.test.p:.3f}",
                "ACC, points": _difference(c.acc_difference, c.acc_interval, 100),
                "Score, points": _difference(c.score_difference, c.score_interval, 1),
            }
        )
    if not rows:
        return None
    return plain_table(
        "comparison", "Paired comparison", "Cases valid in both runs. Differences with 95% bootstrap intervals by binding.",
        pl.DataFrame(rows),
    )  # fmt: skip


def _conditions(m: Measured) -> str:
    """What must agree: everything but the tested system itself."""
    settings, judged = m.manifest["settings"], m.manifest["judges"][m.judge]
    hashes = {name: value for name, value in m.manifest["hashes"].items() if name != "system"}
    same = (judged["identity"], judged["rubric"], settings["partner"], settings["limits"], settings.get("summary"), hashes)
    return canonical_json(same)


def _difference(value: float | None, interval: Interval | None, scale: int) -> str:
    if value is None:
        return NO_VALUE
    ends = f" ({scale * interval.low:+.1f} to {scale * interval.high:+.1f})" if interval else ""
    return f"{scale * value:+.1f}{ends}"

"""Several definitions of "pass", each under its own name, so that nobody compares unlike numbers.

All are counted from the ledger alone. A *unit* is what passes or does not: a case (each sample of it counts), or a
binding played in both roles. Units that are not done or not valid are in no denominator; a valid unit of which the
judge's answers do not say whether it passes is undecided: in no denominator either, and counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import polars as pl

from anthrolab.bench.ledger import Ledger
from anthrolab.bench.printing import as_percent, ratio
from anthrolab.bench.scores import PAPER_WEIGHTS, Weights, case_scores, count_boxes, exact_weights
from anthrolab.bench.stats import bootstrap_mean
from anthrolab.intervals import Interval, wilson


@dataclass(frozen=True)
class Definition:
    """What one kind of pass means: its name in tables, one line, and what it does with unassessed checkboxes."""

    name: str
    meaning: str
    unassessed: str


STRICT = Definition(
    "strict ACC",
    "the paper's ACC: valid cases in which every assessed checkbox of every evaluated turn and of the dialogue card passes",
    "over the assessed checkboxes; a case without any is undecided",
)
BY_SCORE = {
    at: Definition(
        f"ACC@{at}",
        f"valid cases whose score S (0 to 100) is at least {at}; exactly {at} counts",
        "S is over the assessed checkboxes; a case without an assessed turn or an assessed dialogue card is undecided",
    )
    for at in (85, 90, 95)
}
BOTH_ROLES = Definition(
    "both roles",
    "bindings of which both cases are valid and pass strict ACC; sample k of one role is paired with sample k of the other",
    "as in strict ACC; a role that fails decides, whether or not the other is undecided",
)
TRAINING = Definition(
    "training filter",
    "valid cases with S_dialogue = 1 and S_turn above 0.9 (exactly 0.9 does not count): what the paper's sections 4.5 "
    "and 4.6 accept as training data",
    "a case is undecided if it passes with all of them passed and fails with all of them failed; else they do not matter",
)
PASSES = (STRICT, *BY_SCORE.values(), BOTH_ROLES, TRAINING)
"""All definitions in the order of the tables."""

PASSES_HEADERS = ("Model", "Definition", "Passed", "Of", "Undecided", "Planned", "Rate", "95% low", "95% high")
TRAINING_TURN_SCORE = Fraction(9, 10)
_CLEAR = 1e-6
"""A float score this far from a border is on its side of it for certain; nearer ones are counted in fractions."""


def passes(ledger: Ledger, weights: Weights = PAPER_WEIGHTS, *, seed: int = 0) -> pl.DataFrame:
    """One row for each system and definition, systems in the order of the ledger, definitions in that of `PASSES`.

    Columns: system; definition (its name); passed, of (counts: numerator and denominator); undecided (valid units that
    cannot be decided); planned (units, done or not); rate (0..1); low, high (95% interval as in `rate_interval`);
    partly (the rate is over assessed checkboxes only, since the judge left some of the system's unassessed).
    Rate and interval are null where nothing is counted. `seed` is that of the bootstrap over bindings.
    """
    cases = _outcomes(ledger, weights)
    pairs = _pairs(cases)
    partly = {
        system: assessed < boxes
        for system, assessed, boxes in cases.group_by("system").agg(pl.col("assessed", "boxes").sum()).iter_rows()
    }
    rows = []
    for system in ledger.systems:
        for definition in PASSES:
            of_all = pairs if definition is BOTH_ROLES else cases
            units = of_all.filter(pl.col("system") == system).select("valid", "cluster", outcome=definition.name)
            decided = units.drop_nulls("outcome")
            interval = rate_interval(decided["outcome"], decided["cluster"], seed=seed)
            passed, of = int(decided["outcome"].sum()), decided.height
            rows.append(
                {
                    "system": system, "definition": definition.name, "passed": passed, "of": of,
                    "undecided": int(units["valid"].sum()) - of, "planned": units.height,
                    "rate": passed / of if of else None, "low": interval.low if interval else None,
                    "high": interval.high if interval else None,
                    "partly": partly[system] and definition is not TRAINING,
                }
            )  # fmt: skip
    types = {"system": pl.String, "definition": pl.String, **dict.fromkeys(("passed", "of", "undecided", "planned"), pl.Int64)}
    return pl.DataFrame(rows, schema={**types, **dict.fromkeys(("rate", "low", "high"), pl.Float64), "partly": pl.Boolean})


def printed_passes(counted: pl.DataFrame) -> pl.DataFrame:
    """`passes` as the printed strings of passes.csv, without marks; what has no value is ""."""
    rows = [
        (
            row["system"], row["definition"], *(str(row[c]) for c in ("passed", "of", "undecided", "planned")),
            as_percent(ratio(row["passed"], row["of"]), 2), _percent(row["low"]), _percent(row["high"]),
        )
        for row in counted.iter_rows(named=True)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=dict.fromkeys(PASSES_HEADERS, pl.String), orient="row")


def rate_interval(outcomes: pl.Series, clusters: pl.Series, *, seed: int) -> Interval | None:
    """The 95% interval of the rate of true `outcomes`; None if there are none, or if a
    single cluster has some of each.

    Wilson if no two units share a cluster (a binding): it is sound for few independent units. Else a bootstrap over
    clusters. Where all outcomes are equal a bootstrap would claim certainty: then it is Wilson's interval of as many
    independent units as there are clusters.
    """
    passed, of, independent = int(outcomes.sum()), outcomes.len(), clusters.n_unique()
    if independent == of:
        return wilson(passed, of)
    if passed in (0, of):
        return wilson(independent if passed else 0, independent)
    return bootstrap_mean(outcomes.cast(pl.Float64), clusters, seed=seed)


def _outcomes(ledger: Ledger, weights: Weights) -> pl.DataFrame:
    """Every planned case: system, binding, sample, role, valid, cluster, boxes, assessed, and true, false or null for
    each definition that is about cases."""
    scores, exact = _scores(ledger, weights)
    best, worst = _accepted(ledger, weights, "best", True), _accepted(ledger, weights, "worst", False)
    return (
        scores.join(exact, on="case", how="left", maintain_order="left")
        .join(best, on="case", how="left", maintain_order="left")
        .join(worst, on="case", how="left", maintain_order="left")
        .with_columns(
            pl.coalesce(f"at {at}", pl.col("score") >= at).alias(BY_SCORE[at].name) for at in BY_SCORE
        )
        .with_columns(
            pl.col("passed").alias(STRICT.name),
            pl.when(pl.col("best") == pl.col("worst")).then("best").alias(TRAINING.name),
            cluster=pl.coalesce("binding", "case_id"),
        )
        .select(
            "system", "binding", "sample", "role", pl.col("valid").fill_null(False), "cluster", "boxes", "assessed",
            *(d.name for d in PASSES if d is not BOTH_ROLES),
        )
    )  # fmt: skip


def _scores(ledger: Ledger, weights: Weights) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`case_scores` with the number of the case, and `_exact_scores` of those near a border."""
    scores = case_scores(ledger, weights).with_row_index("case")
    borders = [("score", Fraction(at)) for at in BY_SCORE] + [("s_turn", TRAINING_TURN_SCORE)]
    near = pl.any_horizontal((pl.col(column) - float(at)).abs() < _CLEAR for column, at in borders)
    return scores, _exact_scores(ledger, weights, scores.filter(near)["case"].to_list())


def _accepted(ledger: Ledger, weights: Weights, name: str, unassessed: bool) -> pl.DataFrame:
    """What the training filter says (column `name`, by case) if all unassessed checkboxes had passed, or had failed."""
    filled = Ledger(ledger.cases, ledger.checkboxes.with_columns(pl.col("passed").fill_null(unassessed)))
    scores, exact = _scores(filled, weights)
    beyond = pl.coalesce("beyond", pl.col("s_turn") > float(TRAINING_TURN_SCORE))
    return scores.join(exact, on="case", how="left").select("case", (pl.col("dialogue_passed") & beyond).alias(name))


def _exact_scores(ledger: Ledger, weights: Weights, cases: Sequence[int]) -> pl.DataFrame:
    """Of cases with a score at a border, in fractions: case, `at 85` .. (S is at least that), beyond (S_turn is above
    0.9). A float that should be 90 can come out a little below it."""
    of = list(exact_weights(weights).values())
    turns: dict[int, list[Fraction]] = {case: [] for case in cases}
    dialogues: dict[int, Fraction] = {}
    shares = count_boxes(ledger).shares.filter(pl.col("case").is_in(cases)) if cases else pl.DataFrame()
    for card in shares.partition_by("card", maintain_order=True) if cases else ():
        rows = list(card.select("dimension", "passed", "assessed").iter_rows())
        s = sum(of[d] * Fraction(passed, assessed) for d, passed, assessed in rows) / sum(of[d] for d, _, _ in rows)
        if card["local"][0]:
            turns[card["case"][0]].append(s)
        else:
            dialogues[card["case"][0]] = s
    found: list[tuple[int | bool | None, ...]] = []
    for case in cases:
        s_turn = sum(turns[case], Fraction()) / len(turns[case])
        score = 50 * (s_turn + dialogues[case]) if case in dialogues else None
        at_least = [None if score is None else score >= at for at in BY_SCORE]
        found.append((case, *at_least, s_turn > TRAINING_TURN_SCORE))
    names = [*(f"at {at}" for at in BY_SCORE), "beyond"]
    return pl.DataFrame(found, schema={"case": pl.UInt32, **dict.fromkeys(names, pl.Boolean)}, orient="row")


def _pairs(cases: pl.DataFrame) -> pl.DataFrame:
    """Every binding and sample planned in both roles: system, valid (both cases are), cluster, and `both roles`: null
    where a case is not valid, or has nothing assessed and the other passes."""
    passed = pl.col(STRICT.name)
    return (
        cases.drop_nulls(["binding", "role"])
        .group_by("system", "binding", "sample", maintain_order=True)
        .agg(
            pl.col("cluster").first(),
            pl.when(pl.col("valid").all()).then(passed.all(ignore_nulls=False)).alias(BOTH_ROLES.name),
            cases=pl.len(), roles=pl.col("role").n_unique(), valid=pl.col("valid").all(),
        )
        .filter((pl.col("cases") == 2) & (pl.col("roles") == 2))
    )  # fmt: skip


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"

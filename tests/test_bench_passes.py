"""Definitions of a pass: known answers by hand, borders that floats miss, a slow literal count, the published ACC."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.bench.ledger import DIMENSIONS, GLOBAL_DIMENSIONS, LOCAL_DIMENSIONS, Ledger
from anthrolab.bench.passes import (
    BOTH_ROLES,
    BY_SCORE,
    PASSES,
    PASSES_HEADERS,
    STRICT,
    TRAINING,
    passes,
    printed_passes,
    rate_interval,
)
from anthrolab.bench.printing import as_percent, ratio
from anthrolab.bench.published import published_table, reconstructed_ledger
from anthrolab.bench.scores import PAPER_WEIGHTS, case_scores
from anthrolab.bench.stats import bootstrap_mean
from anthrolab.intervals import wilson
from tests.test_bench_tables import BOXES, CASES, Row, boxes

NAMES = [d.name for d in PASSES]


def planned(binding: str | None, role: str | None, *, valid: bool | None = True, sample: int = 0, system: str = "new") -> Row:
    case_id = f"{binding or 'x'}-{role}"
    return dict(zip(CASES, (system, case_id, binding, role, "Sport", valid, sample), strict=True))


def made(*cases: tuple[Row, list[Row]]) -> Ledger:
    rows = [row for _, found in cases for row in found]
    return Ledger(pl.DataFrame([c for c, _ in cases], schema=CASES), pl.DataFrame(rows, schema=BOXES))


def share(case: Row, turn: int | None, dimension: str, passed: int, of: int, unassessed: int = 0) -> list[Row]:
    return boxes(case, turn, dimension, [True] * passed + [False] * (of - passed) + [None] * unassessed)


def simple(case: Row, turns: Sequence[int], dialogue: int, *, unassessed: int = 0) -> tuple[Row, list[Row]]:
    """A case with this many of 10 boxes passed in D1 of each turn and in E1."""
    rows = [r for i, passed in enumerate(turns, 1) for r in share(case, i, "D1", passed, 10)]
    return case, [*rows, *share(case, None, "E1", dialogue, 10, unassessed)]


def counts(ledger: Ledger, system: str = "new") -> dict[str, tuple[int, int, int, int]]:
    """By definition: passed, of, undecided, planned."""
    rows = passes(ledger).filter(pl.col("system") == system)
    assert rows["definition"].to_list() == NAMES
    return dict(zip(NAMES, rows.select("passed", "of", "undecided", "planned").rows(), strict=True))


def test_six_definitions_by_hand() -> None:
    ledger = made(
        simple(planned("b01", "a"), [10, 10], 10),  # S = 100
        simple(planned("b01", "b"), [10, 9], 10),  # S_turn 0.95, S_dialogue 1: S = 97.5
        simple(planned("b02", "a"), [9, 9], 9),  # S = 90
        simple(planned("b02", "b"), [8, 9], 9),  # S_turn 0.85, S_dialogue 0.9: S = 87.5
        simple(planned("b03", "a"), [10], 10),
        simple(planned("b03", "b"), [10], 10),
        simple(planned("b04", "a"), [9], 10),  # S_turn is 0.9 and not above it; S = 95
        (planned("b04", "b", valid=False), []),
        simple(planned("b05", "a"), [10], 10),
        (planned("b05", "b", valid=None), []),
        simple(planned("b06", "a"), [3], 10),  # S = 65
    )
    assert counts(ledger) == {
        "strict ACC": (4, 9, 0, 11),
        "ACC@85": (8, 9, 0, 11),
        "ACC@90": (7, 9, 0, 11),
        "ACC@95": (6, 9, 0, 11),
        "both roles": (1, 3, 0, 5),  # b03 of b01, b02, b03; b04 and b05 lack a valid case, b06 was planned in one role
        "training filter": (5, 9, 0, 11),
    }


@pytest.mark.parametrize(
    ("turn", "dialogue", "score_is_90", "float_is"),
    [
        ((6, 10, 10, 10, 10), 9, True, "below"),  # (13 x 0.6 + 39)/52 is 0.9, and a float just below it
        ((9, 9, 9, 9, 9), 9, True, "above"),
        ((6, 10, 10, 10, 9), 9, False, "below"),
    ],
)
def test_a_score_of_exactly_the_border_counts_whatever_floats_say(
    turn: tuple[int, ...], dialogue: int, score_is_90: bool, float_is: str
) -> None:
    case = planned("b01", "a")
    rows = [r for d, passed in zip(LOCAL_DIMENSIONS, turn, strict=True) for r in share(case, 1, d, passed, 10)]
    ledger = made((case, [*rows, *share(case, None, "E1", dialogue, 10)]))
    s_turn = case_scores(ledger)["s_turn"].item()
    assert (s_turn < 0.9) == (float_is == "below")
    assert s_turn != 0.9  # else the case tests nothing
    assert counts(ledger)["ACC@90"][0] == score_is_90
    full = made((case, [*rows, *share(case, None, "E1", 10, 10)]))
    assert counts(full)["training filter"][:2] == (0, 1)  # S_turn is at most 0.9


def test_weights_decide_the_border_too() -> None:
    case = planned("b01", "a")
    ledger = made((case, [*share(case, 1, "D1", 0, 1), *share(case, 1, "D2", 1, 1), *share(case, None, "E1", 1, 1)]))
    # S_turn is the weight of D2 in both: 0.7/(0.3 + 0.7) gives S = 85
    tenths: dict[str, float] = dict.fromkeys(DIMENSIONS, 0.1) | {"D1": 0.3, "D2": 0.7}
    by_name = dict(passes(ledger, tenths).select("definition", "passed").rows())
    assert by_name["ACC@85"] == 1
    below = dict(passes(ledger, tenths | {"D2": 0.699}).select("definition", "passed").rows())
    assert below["ACC@85"] == 0


def test_the_training_filter_never_takes_an_unassessed_box_as_passed() -> None:
    ledger = made(
        simple(planned("b01", "a"), [10], 10, unassessed=1),  # would pass on what was assessed
        simple(planned("b01", "b"), [10], 9, unassessed=1),
        simple(planned("b02", "a"), [10], 10),
    )
    found = counts(ledger)
    assert found["training filter"] == (1, 2, 1, 3)
    assert found["strict ACC"] == (2, 3, 0, 3)
    partly = dict(passes(ledger).select("definition", "partly").rows())
    assert partly == dict.fromkeys(NAMES, True) | {"training filter": False}
    assert not passes(made(simple(planned("b02", "a"), [10], 10)))["partly"].any()


def test_what_fails_whatever_the_missing_answers_are_is_no_undecided_case() -> None:
    failing = [simple(planned(f"b0{n}", "a"), [10], 9, unassessed=1) for n in range(1, 5)]
    clean = [simple(planned(f"b0{n}", "a"), [10], 10) for n in (5, 6)]
    assert counts(made(*failing, *clean))["training filter"] == (2, 6, 0, 6)


@pytest.mark.parametrize(
    ("passed", "failed", "missing", "outcome"),
    [
        (8, 1, 1, (0, 1, 0, 1)),  # with the missing one passed S_turn is 0.9, and not above it
        (17, 1, 2, (0, 0, 1, 1)),  # 0.95 at best
        (0, 1, 9, (0, 1, 0, 1)),
        (0, 0, 10, (0, 0, 1, 1)),
        (9, 0, 1, (0, 0, 1, 1)),
        (19, 0, 1, (1, 1, 0, 1)),  # above 0.9 even with the missing one failed
    ],
)
def test_the_training_filter_is_decided_where_the_missing_answers_of_a_turn_do_not_matter(
    passed: int, failed: int, missing: int, outcome: tuple[int, int, int, int]
) -> None:
    case = planned("b01", "a")
    turn = boxes(case, 1, "D1", [True] * passed + [False] * failed + [None] * missing)
    assert counts(made((case, [*turn, *share(case, None, "E1", 10, 10)])))["training filter"] == outcome
    # a dialogue card without an answer could still fail, and helps no turn
    unknown = counts(made((case, [*turn, *share(case, None, "E1", 0, 0, 10)])))["training filter"]
    assert unknown == (outcome if outcome[0] == 0 else (0, 0, 1, 1))


def test_one_role_that_fails_decides_for_both() -> None:
    nothing, invalid = planned("b01", "b"), planned("b02", "b", valid=False)
    ledger = made(
        simple(planned("b01", "a"), [9], 10),
        (nothing, share(nothing, 1, "D1", 0, 0, 5)),
        simple(planned("b02", "a"), [9], 10),  # its other role is not valid: no unit
        (invalid, []),
        simple(planned("b03", "a"), [10], 10),
        (undecided := planned("b03", "b"), share(undecided, 1, "D1", 0, 0, 5)),
    )
    assert counts(ledger)["both roles"] == (0, 1, 1, 3)


def test_what_cannot_be_decided_is_counted_and_in_no_denominator() -> None:
    no_turn, no_dialogue, nothing = planned("b01", "a"), planned("b01", "b"), planned("b02", "a")
    ledger = made(
        (no_turn, share(no_turn, None, "E1", 10, 10)),
        (no_dialogue, share(no_dialogue, 1, "D1", 9, 10)),
        (nothing, [*share(nothing, 1, "D1", 0, 0, 5), *share(nothing, None, "E1", 0, 0, 5)]),
        simple(planned("b02", "b"), [10], 10),
    )
    assert counts(ledger) == {
        "strict ACC": (2, 3, 1, 4),
        **{f"ACC@{at}": (1, 1, 3, 4) for at in BY_SCORE},
        "both roles": (0, 1, 1, 2),
        "training filter": (1, 2, 2, 4),  # no_dialogue has S_turn = 0.9 and not above it, whatever the dialogue card says
    }


def test_roles_are_paired_sample_by_sample() -> None:
    ledger = made(
        simple(planned("b01", "a", sample=0), [10], 10),
        simple(planned("b01", "a", sample=1), [10], 9),
        simple(planned("b01", "b", sample=0), [10], 10),
        simple(planned("b01", "b", sample=1), [10], 10),
        simple(planned("b01", "a", sample=2), [10], 10),  # no such sample of the other role
    )
    assert counts(ledger)["both roles"] == (1, 2, 0, 2)
    assert counts(ledger)["strict ACC"] == (4, 5, 0, 5)


def test_cases_without_a_binding_or_a_role_make_no_pair_and_systems_are_apart() -> None:
    ledger = made(
        simple(planned(None, "a"), [10], 10),
        simple(planned(None, "b"), [10], 10),
        simple(planned("b01", "a"), [10], 10),
        simple(planned("b01", "b", system="old"), [0], 0),
    )
    twice = [simple(planned("b01", "a") | {"case_id": name}, [10], 10) for name in ("x", "y")]  # one role under two names
    assert counts(made(*twice))["both roles"] == (0, 0, 0, 0)
    assert counts(ledger)["both roles"] == (0, 0, 0, 0)
    assert counts(ledger)["strict ACC"] == (3, 3, 0, 3)
    assert counts(ledger, "old")["strict ACC"] == (0, 1, 0, 1)
    row = passes(ledger).filter(pl.col("definition") == "both roles").row(0, named=True)
    assert (row["rate"], row["low"], row["high"]) == (None, None, None)


def test_the_interval_is_wilsons_for_independent_units_and_by_binding_for_others() -> None:
    alone = pl.Series([True, False, False, True, True])
    assert rate_interval(alone, pl.Series(list("abcde")), seed=0) == wilson(3, 5)
    shared = pl.Series(list("aabbc"))
    assert rate_interval(alone, shared, seed=3) == bootstrap_mean(alone.cast(pl.Float64), shared, seed=3)
    # two cases of each of 3 bindings, none of which passes: no more certain than 3 units of which none does
    assert rate_interval(pl.Series([False] * 6), pl.Series(list("aabbcc")), seed=0) == wilson(0, 3)
    assert rate_interval(pl.Series([True] * 6), pl.Series(list("aabbcc")), seed=0) == wilson(3, 3)
    assert rate_interval(pl.Series([], dtype=pl.Boolean), pl.Series([], dtype=pl.String), seed=0) is None


def test_printed_rows_have_no_marks() -> None:
    ledger = made(simple(planned("b01", "a"), [10, 10, 9], 10, unassessed=1), (planned("b02", "a", valid=None), []))
    printed = printed_passes(passes(ledger))
    assert tuple(printed.columns) == PASSES_HEADERS
    assert printed.row(0) == ("new", "strict ACC", "0", "1", "0", "2", "0.00%", "0.0%", "79.3%")
    assert printed.row(-1) == ("new", "training filter", "0", "0", "1", "2", "", "", "")
    assert "*" not in "".join("".join(row) for row in printed.rows())


def test_strict_acc_of_the_reconstructed_ledger_is_table_7s_for_all_sixteen_systems() -> None:
    strict = passes(reconstructed_ledger()).filter(pl.col("definition") == STRICT.name)
    acc = [as_percent(ratio(passed, of), 2) for passed, of in strict.select("passed", "of").rows()]
    assert dict(zip(strict["system"], acc, strict=True)) == dict(published_table(7).select("Model", "ACC").rows())
    assert strict.height == 16


# ---- the definitions word by word, slowly


def literal(ledger: Ledger, system: str) -> dict[str, tuple[int, int, int, int]]:
    """Passed, of, undecided, planned of each definition: one case after the other, in fractions."""
    verdicts: dict[tuple[str, int], dict[str, bool | None]] = {}
    cases = [c for c in ledger.cases.iter_rows(named=True) if c["system"] == system]
    for case in cases:
        mine = ledger.checkboxes.filter(pl.col("case") == case["case"]).iter_rows(named=True)
        cards = groupby(sorted(mine, key=lambda b: b["turn_index"] or 0), key=lambda b: b["turn_index"])
        answers = {turn: list(found) for turn, found in cards}
        everything = [b["passed"] for found in answers.values() for b in found]
        known = [a for a in everything if a is not None]
        scores = {turn: _score(found) for turn, found in answers.items()}
        turns = [s for turn, s in scores.items() if turn is not None and s is not None]
        s_turn = sum(turns, Fraction()) / len(turns) if turns else None
        s_dialogue = scores.get(None)
        found: dict[str, bool | None] = {STRICT.name: all(known) if known else None}
        for at, definition in BY_SCORE.items():
            both = s_turn is not None and s_dialogue is not None
            found[definition.name] = 100 * (s_turn / 2 + s_dialogue / 2) >= at if both else None  # type: ignore[operator]
        found[TRAINING.name] = _trains(answers)
        verdicts[case["case_id"], case["sample"]] = found
    valid = [verdicts[c["case_id"], c["sample"]] for c in cases if c["valid"] is True]
    result = {name: _count([v[name] for v in valid], len(cases)) for name in NAMES if name != BOTH_ROLES.name}
    both, pairs = [], 0
    for a in cases:
        for b in cases:
            if (a["role"], b["role"]) != ("a", "b") or (a["binding"], a["sample"]) != (b["binding"], b["sample"]):
                continue
            pairs += 1
            if a["valid"] is True and b["valid"] is True:
                one, two = (verdicts[c["case_id"], c["sample"]][STRICT.name] for c in (a, b))
                both.append(False if False in (one, two) else None if None in (one, two) else True)
    return result | {BOTH_ROLES.name: _count(both, pairs)}


def _trains(answers: dict[int | None, list[dict[str, Any]]]) -> bool | None:
    """What the filter says with the missing answers all failed and all passed: decided if both say the same.

    Answers only help: what lies between the two lies between their scores. A card that is not there could say anything.
    """
    said = []
    for filled in (False, True):
        cards = {turn: [{**b, "passed": filled if b["passed"] is None else b["passed"]} for b in found] for turn, found in answers.items()}
        turns = [_score(found) for turn, found in cards.items() if turn is not None]
        mean = sum((s for s in turns if s is not None), Fraction()) / len(turns) if turns else Fraction(filled)
        whole = _score(cards[None]) if None in cards else Fraction(filled)
        said.append(whole == 1 and mean > Fraction(9, 10))
    return said[0] if said[0] == said[1] else None


def _score(found: list[dict[str, Any]]) -> Fraction | None:
    total, weights = Fraction(), 0
    for dimension in DIMENSIONS:
        known = [b["passed"] for b in found if b["dimension"] == dimension and b["passed"] is not None]
        if known:
            total += PAPER_WEIGHTS[dimension] * Fraction(sum(known), len(known))
            weights += PAPER_WEIGHTS[dimension]
    return total / weights if weights else None


def _count(outcomes: list[bool | None], planned: int) -> tuple[int, int, int, int]:
    decided = [o for o in outcomes if o is not None]
    return sum(decided), len(decided), len(outcomes) - len(decided), planned


# mostly passes, so that scores come near the borders
answer = st.sampled_from([True] * 12 + [False, None])


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    cases = []
    for system in draw(st.sampled_from([("new",), ("new", "old")])):
        for binding in ("b01", "b02"):
            for role in draw(st.sampled_from([("a",), ("b",), ("a", "b")])):
                for sample in range(draw(st.integers(1, 2))):
                    valid = draw(st.sampled_from([True, True, True, False, None]))
                    case = planned(binding, role, valid=valid, sample=sample, system=system)
                    rows: list[Row] = []
                    for turn in range(1, draw(st.integers(0, 3)) + 1) if valid else ():
                        for d in draw(st.sampled_from([("D1",), ("D1", "D2"), LOCAL_DIMENSIONS])):
                            rows += boxes(case, turn, d, draw(st.lists(answer, min_size=1, max_size=5)))
                    for d in draw(st.sampled_from([(), ("E1",), GLOBAL_DIMENSIONS])) if valid else ():
                        rows += boxes(case, None, d, draw(st.lists(answer, min_size=1, max_size=5)))
                    cases.append((case, rows))
    return made(*cases)


@settings(max_examples=100, deadline=None)
@given(ledgers())
def test_equals_the_slow_literal_count_and_definitions_contain_each_other(ledger: Ledger) -> None:
    for system in ledger.systems:
        found = counts(ledger, system)
        assert found == literal(ledger, system)
        for passed, of, undecided, units in found.values():
            assert 0 <= passed <= of <= of + undecided <= units
        assert found["ACC@85"][0] >= found["ACC@90"][0] >= found["ACC@95"][0]
        assert found["training filter"][0] <= found["ACC@95"][0]  # above 0.9 and 1: S is above 95
    rows = passes(ledger).drop_nulls("rate")
    assert rows.filter((pl.col("rate") < 0) | (pl.col("rate") > 1)).height == 0


def test_every_definition_says_what_it_means_and_what_it_does_with_unassessed_boxes() -> None:
    assert len(set(NAMES)) == len(NAMES) == 6
    assert all(d.meaning and d.unassessed and "\n" not in d.meaning + d.unassessed for d in PASSES)

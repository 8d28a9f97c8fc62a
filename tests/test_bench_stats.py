"""Intervals and paired tests against known answers."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.bench.stats import bootstrap_mean, compare, mcnemar, mcnemar_range, system_intervals, wilson
from anthrolab.errors import AnthrolabError


def test_wilson_against_its_formula() -> None:
    k, n, z = 39, 100, 1.959963984540054
    middle = (k / n + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (k / n * (1 - k / n) / n + z**2 / (4 * n**2)) ** 0.5
    made = wilson(k, n)
    assert made is not None
    assert (made.low, made.high) == pytest.approx((middle - half, middle + half))


def test_wilson_of_nothing_and_of_no_pass() -> None:
    assert wilson(0, 0) is None
    none = wilson(0, 10)
    assert none is not None
    assert none.low == 0
    assert none.high == pytest.approx(0.2775, abs=1e-4)  # z^2 / (n + z^2)


def test_mcnemar_by_hand() -> None:
    # 1 of 6 discordant pairs: 2 * (1 + 6) / 2^6 = 14/64
    assert mcnemar(1, 5).p == pytest.approx(14 / 64)
    assert mcnemar(5, 1).p == mcnemar(1, 5).p
    assert mcnemar(7, 0).p == pytest.approx(2 / 2**7)
    assert mcnemar(3, 3).p == mcnemar(0, 0).p == 1


def test_mcnemar_over_all_overlaps() -> None:
    made = mcnemar_range(3, 2, 4)  # at least one and at most two cases pass in both
    assert made.drop("p").rows() == [(1, 2, 1), (2, 1, 0)]
    assert made["p"].to_list() == pytest.approx([1.0, 1.0])
    assert mcnemar_range(39, 32, 100).height == 33
    assert mcnemar_range(39, 32, 100).row(-1)[:3] == (32, 7, 0)


def test_equal_values_have_an_interval_without_width() -> None:
    made = bootstrap_mean([0.1] * 7, list("aabbbcd"), seed=1)
    assert made is not None
    assert made.low == made.high == 0.1


def test_one_binding_has_no_interval() -> None:
    assert bootstrap_mean([1, 2, 3], ["b01"] * 3, seed=1) is None
    assert bootstrap_mean([], [], seed=1) is None


def test_two_bindings_by_hand() -> None:
    # resamples: both a (1/4), both b (1/4), one of each (1/2); with a quarter at each end they are the ends
    made = bootstrap_mean([0, 0, 1], ["a", "a", "b"], seed=3)
    assert made is not None
    assert (made.low, made.high) == pytest.approx((0, 1))
    middle = bootstrap_mean([0, 0, 1], ["a", "a", "b"], seed=3, confidence=0.2)  # 40% to 60%: one of each
    assert middle is not None
    assert (middle.low, middle.high) == pytest.approx((1 / 3, 1 / 3))


def test_the_bootstrap_is_the_literal_resampling_of_bindings() -> None:
    rng = np.random.default_rng(5)
    values, clusters = rng.normal(90, 5, 60), np.repeat(np.arange(20), 3)
    groups = [values[clusters == c] for c in range(20)]
    means = [np.concatenate([groups[i] for i in rng.integers(0, 20, 20)]).mean() for _ in range(20_000)]
    made = bootstrap_mean(values, list(clusters), seed=8, resamples=20_000)
    assert made is not None
    assert (made.low, made.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.06)


def test_repeating_every_case_of_a_binding_does_not_narrow_the_interval() -> None:
    values, clusters = [1.0, 0, 0, 1, 1, 0, 1, 1], list("abcdefgh")
    once = bootstrap_mean(values, clusters, seed=2)
    ten_times = bootstrap_mean(values * 10, clusters * 10, seed=2)
    assert once == ten_times


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 5)), min_size=2, max_size=30), st.integers(0, 9))
def test_an_interval_lies_within_the_values_and_depends_on_the_seed_alone(
    rows: list[tuple[float, int]], seed: int
) -> None:
    values, clusters = zip(*rows, strict=True)
    made = bootstrap_mean(values, clusters, seed=seed, resamples=200)
    assert made == bootstrap_mean(values, clusters, seed=seed, resamples=200)
    if len(set(clusters)) == 1:
        assert made is None
    else:
        assert made is not None
        assert min(values) - 1e-9 <= made.low <= made.high <= max(values) + 1e-9


def scores(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """case_scores rows: system, case_id, sample, binding, valid, passed, score."""
    types = [pl.String, pl.String, pl.Int64, pl.String, pl.Boolean, pl.Boolean, pl.Float64]
    names = ["system", "case_id", "sample", "binding", "valid", "passed", "score"]
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")


def test_intervals_by_system() -> None:
    made = system_intervals(
        scores(
            [
                ("s", "1", 0, "b01", True, True, 90.0),
                ("s", "2", 0, "b02", True, False, 80.0),
                ("s", "3", 0, "b02", False, None, None),
                ("lone", "1", 0, "b01", True, True, 70.0),
                ("lone", "2", 0, "b01", True, True, 50.0),
                ("dead", "1", 0, "b01", None, None, None),
            ]
        ),
        seed=1,
    )
    s, lone, dead = made.rows(named=True)
    assert (s["n_acc"], s["acc"], s["n_score"], s["score"]) == (2, 0.5, 2, 85.0)
    assert (s["score_low"], s["score_high"], s["acc_binding_low"], s["acc_binding_high"]) == (80, 90, 0, 1)
    assert 0 < s["acc_low"] < 0.5 < s["acc_high"] < 1
    assert (lone["acc"], lone["score_low"], lone["acc_binding_low"]) == (1, None, None)
    assert lone["acc_high"] == pytest.approx(1)
    assert (dead["n_acc"], dead["acc"], dead["acc_low"], dead["score"]) == (0, None, None, None)


def test_a_paired_comparison_by_hand() -> None:
    table = [  # case, binding, a: valid passed score, b: valid passed score
        ("1", "b01", (True, True, 90.0), (True, True, 80.0)),
        ("2", "b01", (True, True, 90.0), (True, False, 80.0)),
        ("3", "b02", (True, False, 70.0), (True, True, 90.0)),
        ("4", "b02", (True, True, 90.0), (True, False, 80.0)),
        ("5", "b03", (True, False, 70.0), (True, False, 70.0)),
        ("6", "b03", (True, True, 99.0), (False, None, None)),
        ("7", "b04", (None, None, None), (True, True, 99.0)),
        ("8", "b04", (True, None, None), (True, True, 50.0)),  # valid, but nothing assessed
    ]
    rows = [(s, c, 0, b, *o) for c, b, *both in table for s, o in zip("ab", both, strict=True)]
    rows.append(("b", "only b", 0, "b05", True, True, 99.0))
    made = compare(scores(rows), "a", "b", seed=4)
    assert (made.compared, made.not_comparable) == (5, 3)
    assert (made.both_pass, made.neither_passes, made.test.only_a, made.test.only_b) == (1, 1, 2, 1)
    assert made.test.p == 1
    assert made.acc_difference == pytest.approx(1 / 5)
    assert made.score_difference == pytest.approx((10 + 10 - 20 + 10 + 0) / 5)
    assert made.score_interval is not None
    assert made.score_interval.low < 2 < made.score_interval.high
    mirrored = compare(scores(rows), "b", "a", seed=4)
    assert mirrored.score_difference == pytest.approx(-2)
    assert (mirrored.test.only_a, mirrored.test.only_b) == (1, 2)


def test_several_samples_count_once_in_the_test_and_as_their_mean_in_the_difference() -> None:
    rows = [
        ("a", "1", 0, "b01", True, True, 80.0),
        ("a", "1", 1, "b01", True, False, 60.0),
        ("b", "1", 0, "b01", True, False, 40.0),
        ("b", "1", 1, "b01", True, False, 50.0),
        ("a", "2", 0, "b02", True, True, 70.0),
        ("b", "2", 0, "b02", True, True, 70.0),
    ]
    made = compare(scores(rows), "a", "b", seed=4)
    assert (made.compared, made.test.only_a, made.both_pass) == (2, 1, 1)
    assert made.score_difference == pytest.approx((70 - 45 + 0) / 2)
    assert made.acc_difference == pytest.approx(0.25)


def test_systems_without_a_common_case_and_unknown_ones() -> None:
    rows = scores([("a", "1", 0, "b01", True, True, 80.0), ("b", "2", 0, "b01", True, True, 80.0)])
    made = compare(rows, "a", "b", seed=4)
    assert (made.compared, made.not_comparable, made.score_difference, made.score_interval) == (
        0,
        0,
        None,
        None,
    )
    with pytest.raises(AnthrolabError, match="no system 'c' in this ledger; it has: a, b"):
        compare(rows, "a", "c", seed=4)


def test_a_difference_within_one_binding_has_no_interval() -> None:
    rows = [(s, c, 0, "b01", True, True, 50.0 + 9 * (s + c == "a1")) for s in "ab" for c in "12"]
    made = compare(scores(rows), "a", "b", seed=4)
    assert (made.score_difference, made.score_interval) == (4.5, None)


def test_a_case_of_unknown_binding_is_a_cluster_of_its_own() -> None:
    rows = [("s", str(i), 0, None, True, i < 2, 50.0 + i) for i in range(4)]
    made = system_intervals(scores(rows), seed=1).row(0, named=True)
    assert made["score_low"] < 51.5 < made["score_high"]

"""The capability filter and the reward: known answers, the slow literal version beside the fast one, and what must always hold."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.judging.rubric import load_rubric
from anthrolab.training.reward.batch import Batch, Dimensions, Floats
from anthrolab.training.reward.capability import Capability
from anthrolab.training.reward.reward import adaptive_weights, deficits, rewards, zpd_match
from anthrolab.training.reward.settings import PAPER, RewardSettings, read_reward_settings, write_reward_settings
from anthrolab.training.settings import TrainingError
from tests.literal_reward import LiteralState, Row, observed, reward_of
from tests.spec import reward as vectors

VECTORS = Path(__file__).parent / "data" / "spec" / "reward_vectors.json"
IDS = ("D1", "D2", "D3", "E1", "E2")
LOCAL = ("D1", "D2", "D3")
NEAR = 1e-9
ABLATIONS = ("full", "legacy", "deficit_only", "zpd_only", "static")

unit = st.floats(0, 1, allow_subnormal=False) | st.sampled_from([0.0, 1.0, 0.5, 1 / 3])
weights = st.fixed_dictionaries({i: st.floats(0.1, 20) for i in IDS})


@st.composite
def rows(draw: st.DrawFn, least: int = 0) -> list[Row]:
    """Dialogues of any kind: scored, with gaps, invalid, not judged."""
    made = []
    for _ in range(draw(st.integers(least, 7))):
        judged, valid = draw(st.sampled_from([(True, True), (True, True), (True, False), (False, True), (False, False)]))
        scores = {i: draw(st.none() | unit) if draw(st.booleans()) else draw(unit) for i in IDS}
        passed = {i: None if x is None else float(x == 1.0) for i, x in scores.items()}
        made.append(Row(valid, judged, scores, passed))
    return made


@st.composite
def any_settings(draw: st.DrawFn, ablation: str | None = None) -> RewardSettings:
    mix, local, continuous = draw(unit), draw(unit), draw(unit)
    return RewardSettings.of(
        epsilon=draw(st.floats(0.01, 2)), p=draw(st.floats(0, 4)), sigma=draw(st.floats(0.05, 3)),
        mix_legacy=mix, mix_adaptive=1 - mix, local=local, holistic=1 - local, continuous=continuous, strict=1 - continuous,
        P0=draw(st.floats(0.001, 1)), Q=draw(st.floats(0, 1)), R_floor=draw(st.floats(0.001, 1)),
        ablation=ablation or draw(st.sampled_from(ABLATIONS)),
    )  # fmt: skip


thetas = st.fixed_dictionaries({i: st.none() | unit for i in IDS})


def columns(rho: dict[str, float]) -> Dimensions:
    return Dimensions(IDS, np.array([i in LOCAL for i in IDS]), np.array([rho[i] for i in IDS]))


def batch(dimensions: Dimensions, made: list[Row]) -> Batch:
    return Batch.of([(dimensions.row(r.scores), dimensions.row(r.passed), r.valid, r.judged) for r in made], len(dimensions.ids))


def one(scores: dict[str, float | None], *, passed: dict[str, float | None] | None = None, valid: bool = True, judged: bool = True) -> Row:
    scores = {**dict.fromkeys(IDS, 1.0), **scores}
    flags: dict[str, float | None] = {i: None if x is None else float(x == 1.0) for i, x in scores.items()}
    return Row(valid, judged, scores, flags if passed is None else {**flags, **passed})


EQUAL = columns(dict.fromkeys(IDS, 1.0))


def same(expected: float | None, found: float) -> bool:
    return bool(np.isnan(found)) if expected is None else abs(expected - found) <= NEAR


# the vectors


def test_the_known_answers_match(capsys: pytest.CaptureFixture[str]) -> None:
    assert vectors.main(str(VECTORS)) == 0
    assert capsys.readouterr().out.strip().endswith("6/6 matched")


def test_the_check_says_so_on_the_command_line() -> None:
    found = subprocess.run([sys.executable, "-m", "tests.spec.reward", str(VECTORS)], capture_output=True, text=True, timeout=120)
    assert (found.returncode, found.stdout) == (0, "6/6 matched\n")


@pytest.mark.parametrize(
    ("step", "path"),
    [
        (0, ("rewards", 0, "reward")), (1, ("rewards", 1, "legacy")), (2, ("rewards", 0, "alpha", "E3")), (3, ("after", "D1", "theta")),
        (4, ("after", "E5", "P")), (5, ("after", "D2", "gain")), (5, ("after", "D2", "noise")), (5, ("rewards", 0, "cdt_zpd")),
    ],
)  # fmt: skip
def test_a_changed_number_is_found_and_the_exit_code_says_so(step: int, path: tuple[Any, ...], tmp_path: Path) -> None:
    held = json.loads(VECTORS.read_text(encoding="utf-8"))
    place = held["steps"][step]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] += 1e-6
    (tmp_path / "changed.json").write_text(json.dumps(held), encoding="utf-8")
    found = subprocess.run(
        [sys.executable, "-m", "tests.spec.reward", str(tmp_path / "changed.json")], capture_output=True, text=True, timeout=120
    )
    assert (found.returncode, found.stdout.splitlines()) == (1, [f"step {step} differs", "5/6 matched"])


@pytest.mark.parametrize("constant", ["epsilon", "p", "sigma", "mix", "local", "continuous", "Q", "R_floor", "rho"])
def test_the_constants_come_from_the_file(constant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = json.loads(VECTORS.read_text(encoding="utf-8"))
    pairs = {"mix": ("mix_legacy", "mix_adaptive"), "local": ("local", "holistic"), "continuous": ("continuous", "strict")}
    if constant in pairs:
        for name in pairs[constant]:
            held["config"][name] = 0.5
    elif constant == "rho":
        held["config"]["rho"]["D1"] = 5
    else:
        held["config"][constant] += 0.1
    (tmp_path / "other.json").write_text(json.dumps(held), encoding="utf-8")
    assert vectors.main(str(tmp_path / "other.json")) == 1
    assert not capsys.readouterr().out.endswith("6/6 matched\n")


def test_a_file_without_steps_matches_nothing(tmp_path: Path) -> None:
    held = {**json.loads(VECTORS.read_text(encoding="utf-8")), "steps": []}
    (tmp_path / "none.json").write_text(json.dumps(held), encoding="utf-8")
    assert vectors.main(str(tmp_path / "none.json")) == 1


# by hand


def test_a_reward_made_by_hand() -> None:
    # two dimensions of a group, theta 0.5 and 1: d = 0.7 and 0.2; s = theta in both, so omega = 1 and alpha = 7/9 and 2/9
    two = Dimensions(("D1", "D2", "E1"), np.array([True, True, False]), np.array([1.0, 1.0, 4.0]))
    b = Batch(np.array([[0.5, 1.0, 1.0]]), np.array([[0.0, 1.0, 1.0]]), np.array([True]), np.array([True]))
    found = rewards(b, np.array([0.5, 1.0, 0.3]), two)
    assert found.alpha[0] == pytest.approx([7 / 9, 2 / 9, 1.0])
    assert found.legacy[0] == pytest.approx(0.7 * 0.9 * 0.75 + 0.3)
    assert found.adaptive[0] == pytest.approx(0.7 * 0.9 * (0.5 * 7 / 9 + 2 / 9) + 0.3)
    assert found.reward[0] == pytest.approx(0.7 * found.legacy[0] + 0.3 * found.adaptive[0])


def test_an_observation_made_by_hand() -> None:
    # s = 0, 1, 1, 1: mean 0.75, unbiased variance 0.25, R = max(0.05, 0.0625) = 0.0625; K = 0.022 / 0.0845
    b = batch(EQUAL, [one({"D1": x}) for x in (0.0, 1.0, 1.0, 1.0)])
    after, seen = Capability.initial(EQUAL, dict.fromkeys(IDS, 0.5)).observe(b)
    gain = 0.022 / 0.0845
    assert (seen.mean[0], seen.noise[0], seen.count[0]) == (0.75, 0.0625, 4.0)
    assert seen.gain[0] == pytest.approx(gain)
    assert after.theta[0] == pytest.approx(0.5 + 0.25 * gain)
    assert after.P[0] == pytest.approx((1 - gain) * 0.022)
    assert seen.noise[1] == 0.05, "the floor holds where all scores are equal"


def test_the_parts_of_the_weight_are_the_papers() -> None:
    assert deficits(np.array([0.0, 0.5, 1.0])) == pytest.approx([1.2, 0.7, 0.2])
    assert deficits(np.array([0.5]), RewardSettings.of(p=2.0, epsilon=0.1)) == pytest.approx([0.35])
    assert zpd_match(np.array([0.5, 0.75]), np.array([0.5, 0.5])) == pytest.approx([1.0, np.exp(-0.5)])


def test_the_paper_s_constants_are_the_defaults() -> None:
    assert (PAPER.epsilon, PAPER.p, PAPER.P0, PAPER.Q, PAPER.R_floor) == (0.2, 1.0, 0.02, 0.002, 0.05)
    assert (PAPER.mix_legacy, PAPER.mix_adaptive, PAPER.local, PAPER.holistic, PAPER.continuous, PAPER.strict) == (0.7, 0.3, 0.7, 0.3, 0.9, 0.1)
    assert PAPER.sigma == 0.25


# the slow version beside the fast one


@given(rows(), thetas, weights, any_settings())
def test_rewards_are_those_of_the_literal_version(made: list[Row], theta: dict[str, float | None], rho: dict[str, float], s: RewardSettings) -> None:
    dimensions = columns(rho)
    found = rewards(batch(dimensions, made), dimensions.row(theta), dimensions, s)
    for i, row in enumerate(made):
        slow = reward_of(row, theta, rho, LOCAL, s)
        assert same(slow.reward, found.reward[i])
        assert same(slow.legacy, found.legacy[i])
        assert same(slow.adaptive, found.adaptive[i])
        assert all(same(slow.alpha[k], a) for k, a in zip(IDS, found.alpha[i], strict=True))


@given(st.lists(rows(), min_size=1, max_size=4), thetas, any_settings())
def test_the_filter_is_that_of_the_literal_version(steps: list[list[Row]], theta: dict[str, float | None], s: RewardSettings) -> None:
    fast, slow = Capability.initial(EQUAL, theta, s), LiteralState(theta, dict.fromkeys(IDS, s.P0))
    for made in steps:
        fast, _ = fast.observe(batch(EQUAL, made), s)
        slow = observed(slow, made, s)
        assert all(same(slow.theta[k], t) for k, t in zip(IDS, fast.theta, strict=True))
        assert all(same(slow.P[k], v) for k, v in zip(IDS, fast.P, strict=True))


# what must always hold


@given(rows(least=1), thetas, weights, any_settings())
def test_the_weights_of_a_group_add_up_to_1_and_are_there_for_what_was_assessed(
    made: list[Row], theta: dict[str, float | None], rho: dict[str, float], s: RewardSettings
) -> None:
    dimensions = columns(rho)
    b = batch(dimensions, made)
    alpha = adaptive_weights(b.scores, dimensions.row(theta), dimensions, s)
    assert (np.isnan(alpha) == np.isnan(b.scores)).all()
    for group in dimensions.groups:
        some = ~np.isnan(b.scores[:, group]).all(axis=1)
        assert np.allclose(np.nansum(alpha[some][:, group], axis=1), 1, atol=1e-12)
        assert (alpha[:, group][~np.isnan(alpha[:, group])] >= 0).all()


@given(rows(least=1), thetas, weights, any_settings())
def test_a_reward_lies_between_0_and_1(made: list[Row], theta: dict[str, float | None], rho: dict[str, float], s: RewardSettings) -> None:
    dimensions = columns(rho)
    found = rewards(batch(dimensions, made), dimensions.row(theta), dimensions, s)
    for part in (found.reward, found.legacy, found.adaptive):
        there = part[~np.isnan(part)]
        assert ((there >= 0) & (there <= 1)).all()


@given(any_settings(), weights)
def test_all_passed_gives_1_and_nothing_passed_gives_0(s: RewardSettings, rho: dict[str, float]) -> None:
    made = [one({}), one(dict.fromkeys(IDS, 0.0))]
    found = rewards(batch(EQUAL, made), np.full(5, 0.5), columns(rho), s)
    assert found.reward == pytest.approx([1.0, 0.0])


@given(st.lists(rows(), max_size=4), thetas, any_settings())
def test_estimates_stay_in_range_and_their_variance_positive(steps: list[list[Row]], theta: dict[str, float | None], s: RewardSettings) -> None:
    state = Capability.initial(EQUAL, theta, s)
    for made in steps:
        state, seen = state.observe(batch(EQUAL, made), s)
        known = state.theta[~np.isnan(state.theta)]
        assert ((known >= 0) & (known <= 1)).all()
        assert (state.P > 0).all()
        gain = seen.gain[~np.isnan(seen.gain)]
        assert ((gain > 0) & (gain < 1)).all()


@given(st.data(), rows(least=2), thetas, any_settings())
def test_the_order_of_the_dialogues_does_not_matter(data: st.DataObject, made: list[Row], theta: dict[str, float | None], s: RewardSettings) -> None:
    order = data.draw(st.permutations(range(len(made))))
    there, moved = batch(EQUAL, made), batch(EQUAL, [made[i] for i in order])
    before = Capability.initial(EQUAL, theta, s)
    a, b = rewards(there, before.theta, EQUAL, s), rewards(moved, before.theta, EQUAL, s)
    assert np.array_equal(a.reward[order], b.reward, equal_nan=True)
    assert np.array_equal(a.alpha[order], b.alpha, equal_nan=True)
    (x, _), (y, _) = before.observe(there, s), before.observe(moved, s)
    assert np.allclose(x.theta, y.theta, rtol=0, atol=1e-12, equal_nan=True)
    assert np.allclose(x.P, y.P, rtol=0, atol=1e-12)


@given(st.data(), rows(least=1), thetas, weights, any_settings())
def test_the_order_of_the_dimensions_does_not_matter(
    data: st.DataObject, made: list[Row], theta: dict[str, float | None], rho: dict[str, float], s: RewardSettings
) -> None:
    here = columns(rho)
    order = data.draw(st.permutations(range(len(IDS))))
    there = Dimensions(tuple(IDS[i] for i in order), here.local[order], here.rho[order])
    a, b = batch(here, made), batch(there, made)
    x, y = (rewards(part, d.row(theta), d, s) for part, d in ((a, here), (b, there)))
    assert np.allclose(x.reward, y.reward, rtol=0, atol=1e-12, equal_nan=True)
    assert np.allclose(x.alpha[:, order], y.alpha, rtol=0, atol=1e-12, equal_nan=True)
    after, moved = (Capability.initial(d, theta, s).observe(part, s)[0].by_dimension() for part, d in ((a, here), (b, there)))
    assert all(moved[i] == (None if t is None else pytest.approx(t, abs=1e-12)) for i, t in after.items())


@given(rows(least=1), st.fixed_dictionaries(dict.fromkeys(IDS, unit)), weights, any_settings())
def test_a_dimension_that_was_not_assessed_is_as_if_the_rubric_had_none(
    made: list[Row], theta: dict[str, float | None], rho: dict[str, float], s: RewardSettings
) -> None:
    without = [replace(r, scores={**r.scores, "D2": None}, passed={**r.passed, "D2": None}) for r in made]
    here = columns(rho)
    kept = [i for i in range(len(IDS)) if IDS[i] != "D2"]
    short = Dimensions(tuple(IDS[i] for i in kept), here.local[kept], here.rho[kept])
    x = rewards(batch(here, without), here.row(theta), here, s)
    y = rewards(batch(short, without), short.row(theta), short, s)
    assert np.allclose(x.reward, y.reward, rtol=0, atol=1e-12, equal_nan=True)
    assert np.allclose(x.alpha[:, kept], y.alpha, rtol=0, atol=1e-12, equal_nan=True)
    before = Capability.initial(here, theta, s)
    after, seen = before.observe(batch(here, [r for r in without if r.valid]), s)
    assert (after.theta[1], after.P[1], seen.count[1]) == (before.theta[1], before.P[1], 0)
    assert np.isnan([seen.mean[1], seen.noise[1], seen.gain[1]]).all()


@pytest.mark.parametrize("group", [LOCAL, ("E1", "E2")])
@pytest.mark.parametrize("ablation", ABLATIONS)
def test_a_group_with_nothing_assessed_gives_no_reward(group: tuple[str, ...], ablation: str) -> None:
    found = rewards(batch(EQUAL, [one(dict.fromkeys(group))]), np.full(5, 0.5), EQUAL, RewardSettings.of(ablation=ablation))
    assert np.isnan([found.reward[0], found.legacy[0], found.adaptive[0]]).all()
    assert np.isnan(found.alpha).all()


@given(rows(), thetas, any_settings())
def test_a_judge_failure_is_no_reward_and_no_observation(made: list[Row], theta: dict[str, float | None], s: RewardSettings) -> None:
    failed = [one({}, judged=False), one({"D1": 0.0}, valid=False, judged=False)]
    with_them, without = batch(EQUAL, [*made, *failed]), batch(EQUAL, made)
    before = Capability.initial(EQUAL, theta, s)
    found = rewards(with_them, before.theta, EQUAL, s)
    for part in (found.reward, found.legacy, found.adaptive):
        assert np.isnan(part[-2:]).all()
    assert np.isnan(found.alpha[-2:]).all()
    assert np.array_equal(found.reward[:-2], rewards(without, before.theta, EQUAL, s).reward, equal_nan=True)
    (a, _), (b, _) = before.observe(with_them, s), before.observe(without, s)
    assert a.to_json() == b.to_json()


@given(thetas, any_settings(), st.booleans())
def test_an_invalid_dialogue_is_0_whatever_its_scores(theta: dict[str, float | None], s: RewardSettings, scored: bool) -> None:
    row = one({} if scored else dict.fromkeys(IDS), valid=False)
    found = rewards(batch(EQUAL, [row]), EQUAL.row(theta), EQUAL, s)
    assert (found.reward[0], found.legacy[0], found.adaptive[0]) == (0.0, 0.0, 0.0)
    assert np.isnan(found.alpha).all()


def test_an_invalid_dialogue_counts_0_in_what_is_tracked() -> None:
    theta: dict[str, float | None] = {**dict.fromkeys(IDS, 0.5), "D2": None, "D3": None}
    made = [one(dict.fromkeys(IDS, 0.8) | {"D3": None}), one({}, valid=False)]
    after, seen = Capability.initial(EQUAL, theta).observe(batch(EQUAL, made))
    assert seen.mean[0] == pytest.approx(0.4)
    assert seen.mean[1] == after.theta[1] == pytest.approx(0.4), "assessed for the first time, the invalid one counts"
    assert np.isnan(seen.mean[2]) and np.isnan(after.theta[2]), "nobody has assessed it yet"


def test_a_dimension_assessed_for_the_first_time_begins_at_what_was_seen() -> None:
    after, _ = Capability.initial(EQUAL, {}).observe(batch(EQUAL, [one({"D1": 0.2}), one({"D1": 0.4})]))
    assert after.theta[0] == pytest.approx(0.3)
    assert after.P[0] == PAPER.P0


# ablations


@given(rows(least=1), thetas, thetas, weights)
def test_legacy_is_the_rubric_s_weights_alone(
    made: list[Row], theta: dict[str, float | None], other: dict[str, float | None], rho: dict[str, float]
) -> None:
    dimensions, s = columns(rho), RewardSettings.of(ablation="legacy")
    b = batch(dimensions, made)
    here, there = (rewards(b, dimensions.row(t), dimensions, s) for t in (theta, other))
    assert np.array_equal(here.reward, there.reward, equal_nan=True)
    assert np.array_equal(here.reward, rewards(b, dimensions.row(theta), dimensions).legacy, equal_nan=True)


@given(rows(least=1), thetas, weights)
def test_deficit_only_does_not_look_at_the_dialogue(made: list[Row], theta: dict[str, float | None], rho: dict[str, float]) -> None:
    full = [replace(r, scores={i: x or 0.0 for i, x in r.scores.items()}) for r in made]
    dimensions = columns(rho)
    scores: Floats = np.array([dimensions.row(r.scores) for r in full])
    alpha = adaptive_weights(scores, dimensions.row(theta), dimensions, RewardSettings.of(ablation="deficit_only"))
    assert np.allclose(alpha, alpha[0], rtol=0, atol=1e-12)
    d = dimensions.rho * deficits(dimensions.row(theta, 0.5))
    assert alpha[0][:3] == pytest.approx(d[:3] / d[:3].sum())


@given(rows(least=1), st.fixed_dictionaries(dict.fromkeys(IDS, unit)), st.floats(0, 5), st.floats(0.01, 2))
def test_zpd_only_does_not_look_at_the_deficit(made: list[Row], theta: dict[str, float | None], p: float, epsilon: float) -> None:
    scores: Floats = np.array([EQUAL.row(r.scores, 0.0) for r in made])
    s = RewardSettings.of(ablation="zpd_only", p=p, epsilon=epsilon)
    alpha = adaptive_weights(scores, EQUAL.row(theta), EQUAL, s)
    assert np.array_equal(alpha, adaptive_weights(scores, EQUAL.row(theta), EQUAL, RewardSettings.of(ablation="zpd_only")))
    omega = zpd_match(scores, EQUAL.row(theta))
    assert np.allclose(alpha[:, 3:], omega[:, 3:] / omega[:, 3:].sum(axis=1, keepdims=True), rtol=0, atol=1e-9)


@given(rows(least=1), thetas)
def test_static_rewards_as_full_and_never_moves(made: list[Row], theta: dict[str, float | None]) -> None:
    static, b = RewardSettings.of(ablation="static"), batch(EQUAL, made)
    before = Capability.initial(EQUAL, theta)
    after, seen = before.observe(b, static)
    assert after.to_json() == before.to_json()
    assert np.array_equal(seen.mean, before.observe(b)[1].mean, equal_nan=True), "what was seen is still told"
    assert np.array_equal(rewards(b, before.theta, EQUAL, static).reward, rewards(b, before.theta, EQUAL).reward, equal_nan=True)


def test_every_ablation_is_another_reward() -> None:
    b, theta = batch(EQUAL, [one({"D1": 0.3, "D2": 0.9, "E1": 0.5, "E2": 0.9})]), EQUAL.row({"D1": 0.2, "D2": 0.9, "D3": 0.6, "E1": 0.1, "E2": 0.8})
    found = {a: float(rewards(b, theta, EQUAL, RewardSettings.of(ablation=a)).reward[0]) for a in ABLATIONS}
    assert found.pop("static") == found["full"]
    assert len(set(found.values())) == 4


# state


@given(st.lists(rows(), min_size=2, max_size=5), thetas, any_settings(), st.data())
def test_a_training_that_stops_and_goes_on_has_the_same_state_to_the_last_bit(
    steps: list[list[Row]], theta: dict[str, float | None], s: RewardSettings, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(steps)))
    whole = Capability.initial(EQUAL, theta, s)
    parts = whole
    for number, made in enumerate(steps):
        if number == cut:
            parts = Capability.from_json(parts.to_json())
        whole, parts = whole.observe(batch(EQUAL, made), s)[0], parts.observe(batch(EQUAL, made), s)[0]
    back = Capability.from_json(parts.to_json())
    assert back.ids == whole.ids
    assert back.theta.tobytes() == whole.theta.tobytes()
    assert back.P.tobytes() == whole.P.tobytes()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"theta": {"D1": 0.5}, "P": {}}', '{"theta": {"D1": 1.5}, "P": {"D1": 0.1}}', '{"theta": {"D1": 0.5}, "P": {"D1": NaN}}', '{"theta": {"D1": NaN}, "P": {"D1": 0.1}}']
)  # fmt: skip
def test_a_text_that_holds_no_state_is_refused(text: str) -> None:
    with pytest.raises(TrainingError, match="capability state"):
        Capability.from_json(text)


def test_a_beginning_that_does_not_fit_is_refused() -> None:
    with pytest.raises(TrainingError, match="between 0 and 1"):
        Capability.initial(EQUAL, {"D1": 87.0})
    with pytest.raises(TrainingError, match="D9 is no dimension"):
        Capability.initial(EQUAL, {"D9": 0.5})


# edges


@given(rows(least=1), st.fixed_dictionaries({i: st.sampled_from([0.0, 1.0, None]) for i in IDS}), st.sampled_from([0.0, 0.5, 10.0]), st.sampled_from(ABLATIONS))
def test_the_edges_of_the_settings_give_numbers(made: list[Row], theta: dict[str, float | None], p: float, ablation: str) -> None:
    """sigma so small that omega underflows, p = 0, capabilities of exactly 0 and 1: no warning, weights that add up to 1."""
    s = RewardSettings.of(sigma=0.001, p=p, epsilon=0.0 if p == 0 or ablation in ("legacy", "zpd_only") else 1e-12, ablation=ablation)
    b = batch(EQUAL, made)
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        found = rewards(b, EQUAL.row(theta), EQUAL, s)
    for i, row in enumerate(made):
        scored = row.judged and row.valid and all(any(row.scores[k] is not None for k in IDS if (k in LOCAL) == g) for g in (True, False))
        assert np.isnan(found.reward[i]) == (not scored and not (row.judged and not row.valid))
        if scored:
            assert np.nansum(found.alpha[i]) == pytest.approx(2)


def test_far_from_every_estimate_the_nearest_dimension_has_the_weight() -> None:
    """exp(-500000) is 0 in floating point for all of them; the weights are still those of the formula."""
    alpha = adaptive_weights(np.array([[0.0, 0.0, 0.0, 1.0, 1.0]]), np.array([1.0, 1.0, 0.9, 0.0, 0.0]), EQUAL, RewardSettings.of(sigma=0.001))
    assert alpha[0] == pytest.approx([0, 0, 1, 0.5, 0.5])


def test_an_empty_batch_changes_nothing() -> None:
    before = Capability.initial(EQUAL, dict.fromkeys(IDS, 0.5))
    after, seen = before.observe(batch(EQUAL, []))
    assert after.to_json() == before.to_json()
    assert len(rewards(batch(EQUAL, []), before.theta, EQUAL).reward) == 0
    assert (seen.count == 0).all()


@pytest.mark.parametrize(("values", "said"), [
    ({"sigma": 0.0}, "sigma"), ({"epsilon": 0.0}, "epsilon is 0"), ({"mix_legacy": 0.7, "mix_adaptive": 0.7}, "mix_legacy"), ({"local": 0.5}, "local"),
    ({"strict": 0.3}, "continuous"), ({"rho": {"D1": 0.0}}, "rho.D1"), ({"R_floor": 0.0}, "R_floor"), ({"ablation": "none"}, "ablation"), ({"sgima": 1.0}, "sgima"),
    ({"p": float("nan")}, "p"), ({"epsilon": "0.2"}, "epsilon"),
])  # fmt: skip
def test_settings_that_make_no_reward_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainingError, match=said):
        RewardSettings.of(**values)


def test_settings_come_back_from_their_file(tmp_path: Path) -> None:
    s = RewardSettings.of(sigma=1 / 3, rho={"D1": 2.0}, ablation="zpd_only")
    write_reward_settings(tmp_path / "reward.json", s)
    assert read_reward_settings(tmp_path / "reward.json") == s
    (tmp_path / "reward.json").write_text('{"sigma": -1.0}', encoding="utf-8")
    with pytest.raises(TrainingError, match=r"reward\.json: .*sigma"):
        read_reward_settings(tmp_path / "reward.json")
    (tmp_path / "reward.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(TrainingError, match=r"reward\.json: not valid JSON"):
        read_reward_settings(tmp_path / "reward.json")


def test_the_rubric_s_weights_are_taken_unless_others_are_given() -> None:
    rubric = load_rubric()
    assert list(Dimensions.of(rubric).rho) == [13, 9, 14, 8, 8, 14, 10, 11, 9, 4]
    assert list(Dimensions.of(rubric).local) == [True] * 5 + [False] * 5
    ours = {d.id: 1.0 for d in rubric.dimensions}
    assert list(Dimensions.of(rubric, ours).rho) == [1.0] * 10
    with pytest.raises(TrainingError, match="the rubric has"):
        Dimensions.of(rubric, {"D1": 1.0})
    with pytest.raises(TrainingError, match=r"rho\.D3 is 0"):
        Dimensions.of(rubric, {**ours, "D3": 0.0})


@pytest.mark.parametrize(("score", "flag"), [(1.5, 1.0), (-0.1, 0.0), (0.5, np.nan), (np.nan, 1.0), (0.5, 0.5)])
def test_a_batch_refuses_what_no_judge_says(score: float, flag: float) -> None:
    with pytest.raises(ValueError, match="score"):
        Batch(np.array([[score]]), np.array([[flag]]), np.array([True]), np.array([True]))

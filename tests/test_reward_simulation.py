"""The filter against its closed forms, the reward's slopes, and synthetic learners whose true ability is known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.judging.rubric import load_rubric
from anthrolab.training.reward.batch import Batch, Dimensions, Floats
from anthrolab.training.reward.capability import Capability
from anthrolab.training.reward.closed_forms import least_sigma, reward_slopes, steady
from anthrolab.training.reward.reward import rewards
from anthrolab.training.reward.settings import PAPER, RewardSettings
from anthrolab.training.reward.simulation import (
    TURNS,
    World,
    abilities,
    checkboxes_of,
    draw,
    simulate,
    skills,
)
from anthrolab.training.reward.study import (
    LEAST_EPSILON,
    WIDTHS_IN,
    Scene,
    changed,
    compare,
    compare_all,
    quantities,
    scenes,
    variants,
    widths,
)
from anthrolab.training.settings import TrainingError

RUBRIC = load_rubric()
DIMENSIONS = Dimensions.of(RUBRIC)
ONE = Dimensions(("D1",), np.array([True]), np.array([1.0]))


def batch_of(score: float) -> Batch:
    """One dialogue: no spread, so that R is the floor."""
    return Batch(np.array([[score]]), np.array([[0.0]]), np.array([True]), np.array([True]))


def filtered(values: Floats, chosen: RewardSettings = PAPER) -> tuple[Floats, Floats, Floats]:
    """theta, P and gain of the product's filter over batch means, begun at rest in 0.2 or at the first value."""
    state, found = Capability(("D1",), values[:1].copy(), np.array([steady(chosen).P])), []
    for value in values[1:]:
        state, seen = state.observe(batch_of(value), chosen)
        found.append((state.theta[0], state.P[0], seen.gain[0]))
    theta, variance, gain = np.array(found).T
    return theta, variance, gain


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-4, 0.1), st.floats(1e-3, 0.3), st.floats(0, 1))
def test_the_filter_comes_to_rest_where_the_closed_form_says(q: float, r: float, p0: float) -> None:
    chosen = RewardSettings.of(Q=q, R_floor=r, P0=p0)
    state = Capability.initial(ONE, {"D1": 0.5}, chosen)
    for _ in range(600):
        state, seen = state.observe(batch_of(0.5), chosen)
    rest = steady(chosen)
    assert seen.gain[0] == pytest.approx(rest.gain, rel=1e-6)
    assert state.P[0] == pytest.approx(rest.P, rel=1e-6)
    assert (1 - rest.gain) * (rest.P + q) == pytest.approx(rest.P)


def test_the_papers_constants_mean_this_gain_and_lag() -> None:
    """M = (Q + sqrt(Q^2 + 4 Q R)) / 2 = 0.01105, K = M / (M + R) = 0.1810, by hand."""
    rest = steady()
    assert (round(rest.gain, 3), round(rest.P, 5), round(rest.time_constant, 2), round(rest.lag, 2)) == (0.181, 0.00905, 5.01, 4.52)
    _, seen = Capability.initial(ONE, {"D1": 0.5}).observe(batch_of(0.5))
    assert seen.gain[0] == pytest.approx(0.022 / 0.072), "the first batch counts for more"


def test_a_batch_of_six_or_more_never_lifts_the_noise_above_the_papers_floor() -> None:
    """The variance of scores in 0..1 is at most n / (4 (n - 1)), so R = 1 / (4 (n - 1)) <= 0.05 from n = 6 on."""
    for n, above in ((4, True), (6, False), (64, False)):
        scores = (np.arange(n) % 2).astype(float)[:, None]
        batch = Batch(scores, scores, np.ones(n, dtype=bool), np.ones(n, dtype=bool))
        _, seen = Capability.initial(ONE, {"D1": 0.5}).observe(batch)
        assert bool(seen.noise[0] > PAPER.R_floor + 1e-12) is above


def test_a_step_is_followed_with_the_closed_forms_time_constant() -> None:
    theta, _, gain = filtered(np.array([0.2] + [0.7] * 40))
    rest = steady()
    assert gain == pytest.approx(np.full(40, rest.gain))
    followed = (theta - 0.2) / 0.5
    assert followed == pytest.approx(1 - np.exp(-np.arange(1, 41) / rest.time_constant))
    assert followed[4] < 1 - np.exp(-1) + 1e-3 < followed[5], "63% after five steps"


def test_a_steady_rise_is_followed_with_the_closed_forms_lag() -> None:
    rise = 0.1 + 0.004 * np.arange(200)
    theta, _, _ = filtered(rise)
    assert (rise[-1] - theta[-1]) / 0.004 == pytest.approx(steady().lag, rel=1e-6)
    assert (rise[-1] - theta[-2]) / 0.004 == pytest.approx(1 / steady().gain, rel=1e-6), "what the rewards of the batch know"


def test_of_the_random_error_so_much_is_left() -> None:
    values = 0.5 + 0.1 * np.random.default_rng(0).uniform(-1, 1, 20_000)
    theta, _, _ = filtered(values)
    assert theta[50:].std() / values.std() == pytest.approx(steady().noise_kept, rel=0.03)


@pytest.mark.parametrize("ablation", ["full", "legacy", "deficit_only", "zpd_only", "static"])
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.08, 1.5))
def test_the_slopes_are_those_of_the_real_rewards(ablation: str, seed: int, sigma: float) -> None:
    draws, h = np.random.default_rng(seed), 1e-6
    scores, theta = draws.uniform(0.05, 0.95, (1, 10)), draws.uniform(0, 1, 10)
    scores[0, draws.integers(0, 10)] = np.nan
    chosen = RewardSettings.of(ablation=ablation, sigma=sigma)

    def made(at: Floats) -> tuple[float, float]:
        found = rewards(Batch(at, 0 * at, np.array([True]), np.array([True])), theta, DIMENSIONS, chosen)
        return float(found.adaptive[0]), float(found.reward[0])

    adaptive, final = reward_slopes(scores, theta, DIMENSIONS, chosen)
    for k in range(10):
        if np.isnan(scores[0, k]):
            assert np.isnan(adaptive[0, k]) and np.isnan(final[0, k])
            continue
        step = np.zeros((1, 10))
        step[0, k] = h
        (a1, r1), (a0, r0) = made(scores + step), made(scores - step)
        assert (a1 - a0) / (2 * h) == pytest.approx(adaptive[0, k], rel=1e-4, abs=1e-6)
        assert (r1 - r0) / (2 * h) == pytest.approx(final[0, k], rel=1e-4, abs=1e-6)


def test_more_score_earns_less_adaptive_reward_exactly_beyond_the_bound() -> None:
    """theta 0.5 for both, D2 at 0.5. At s = 0.9 D1 has omega = exp(-1.28) = 0.278 and M = 0.587, so 0.4 * 0.313 = 0.125 > 0.0625."""
    two = Dimensions(("D1", "D2", "E1"), np.array([True, True, False]), np.ones(3))
    theta = np.full(3, 0.5)

    def adaptive(score: float) -> float:
        batch = Batch(np.array([[score, 0.5, 0.5]]), np.zeros((1, 3)), np.array([True]), np.array([True]))
        return float(rewards(batch, theta, two).adaptive[0])

    assert adaptive(0.6) > adaptive(0.5) and adaptive(1.0) < adaptive(0.9) < adaptive(0.8)
    scores = np.random.default_rng(1).uniform(0, 1, (4000, 10))
    theta = np.random.default_rng(2).uniform(0, 1, 10)
    slope, _ = reward_slopes(scores, theta, DIMENSIONS)
    alpha = rewards(Batch(scores, np.zeros(scores.shape), np.ones(4000, bool), np.ones(4000, bool)), theta, DIMENSIONS).alpha
    for group in DIMENSIONS.groups:
        mean = (alpha * scores)[:, group].sum(axis=1, keepdims=True)
        turns = (scores - theta)[:, group] * (scores[:, group] - mean) > PAPER.sigma**2
        assert (turns == (slope[:, group] < 0)).all() and turns.any() and not turns.all()


def worst_case(sigma: float) -> tuple[Floats, Floats]:
    """Scores and theta in which the final reward first falls: E5 at 1 with theta 0, the other E at 0, with their theta such that
    E5 has the weight (1 - sigma^2) / 2."""
    low, high, e5 = 0.0, 1.0, DIMENSIONS.ids.index("E5")
    scores = np.where(DIMENSIONS.local, 0.5, 0.0)[None, :]
    scores[0, e5] = 1.0
    for _ in range(60):
        middle = (low + high) / 2
        theta = np.where(DIMENSIONS.local, 0.5, middle)
        theta[e5] = 0.0
        batch = Batch(scores, np.zeros(scores.shape), np.array([True]), np.array([True]))
        weight = rewards(batch, theta, DIMENSIONS, RewardSettings.of(sigma=sigma)).alpha[0, e5]
        low, high = (middle, high) if weight < (1 - sigma**2) / 2 else (low, middle)
    return scores, theta


def test_the_final_reward_is_monotone_from_just_this_sigma_on() -> None:
    limit = least_sigma(DIMENSIONS)
    assert limit == pytest.approx(0.652, abs=5e-4)
    scores, theta = worst_case(limit)
    e5 = DIMENSIONS.ids.index("E5")
    slopes = [reward_slopes(scores, theta, DIMENSIONS, RewardSettings.of(sigma=s * limit))[1][0, e5] for s in (0.97, 1.0, 1.03)]
    assert slopes[0] < 0 and slopes[1] == pytest.approx(0, abs=1e-6) and slopes[2] > 0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.1, 1.0), st.floats(0.2, 1.0))
def test_from_the_least_sigma_on_no_score_is_too_good(seed: int, mix: float, gap: float) -> None:
    """Half of the scores and estimates lie at their ends, where it is worst."""
    draws = np.random.default_rng(seed)
    middle = draws.uniform(gap / 2, 1 - gap / 2)
    ends = draws.choice([-0.5, 0.5], (500, 20))
    values = middle + gap * np.where(draws.random((500, 20)) < 0.5, ends, draws.uniform(-0.5, 0.5, (500, 20)))
    chosen = RewardSettings.of(mix_adaptive=mix, mix_legacy=1 - mix)
    limit = least_sigma(DIMENSIONS, chosen, gap)
    for row in np.clip(values, 0, 1):
        _, final = reward_slopes(row[None, :10], row[10:], DIMENSIONS, chosen.model_copy(update={"sigma": limit}))
        assert final.min() > -1e-12


def test_rewards_without_a_match_are_monotone_with_any_sigma() -> None:
    for name in ("legacy", "deficit_only"):
        assert least_sigma(DIMENSIONS, RewardSettings.of(ablation=name)) == 0
    assert least_sigma(DIMENSIONS, RewardSettings.of(mix_legacy=0.0, mix_adaptive=1.0)) == 1


def world(**changes: object) -> World:
    return replace(World((0.5,) * 10, checkboxes_of(RUBRIC), (1.0,) * 10), **changes)  # type: ignore[arg-type]


def test_checkboxes_are_those_of_all_turns_or_of_the_dialogue() -> None:
    assert checkboxes_of(RUBRIC) == (*(n * TURNS for n in (5, 4, 5, 4, 3)), 5, 4, 5, 5, 4)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.02, 0.98), st.floats(0, 1.5))
def test_a_skill_has_the_ability_that_it_was_made_from(ability: float, spread: float) -> None:
    assert abilities(skills(np.array([ability]), spread), spread)[0] == pytest.approx(ability, abs=1e-4)


def test_a_learners_mean_score_is_its_true_ability() -> None:
    w = world(start=(0.1, 0.9) * 5, cases=4000, judge_noise=1.0, step_noise=0.0)
    batch, _ = draw(w, skills(np.array(w.start), w.spread), np.random.default_rng(0))
    assert batch.scores.mean(axis=0) == pytest.approx(np.array(w.start), abs=0.015)
    assert (batch.passed == (batch.scores == 1)).all()


def test_the_pull_is_the_mean_of_a_groups_advantage_times_what_was_tried() -> None:
    """The first step again by hand: neighbours are a group, and each reward is compared with the mean of its own."""
    w = world(steps=1, cases=3, group=4)
    batch, tried = draw(w, skills(np.array(w.start), w.spread), np.random.default_rng([7, 1]))
    reward = rewards(batch, np.array(w.start), DIMENSIONS).reward
    pull = np.zeros(10)
    for case in range(3):
        own = reward[4 * case : 4 * case + 4]
        for place in range(4):
            pull += (own[place] - own.mean()) / (own.std(ddof=1) + 1e-4) * tried[4 * case + place] / 12
    assert simulate(w, DIMENSIONS, seed=7).pressure[0] == pytest.approx(pull)


def test_the_same_seed_gives_the_same_training_and_another_another() -> None:
    w = world(steps=5)
    one, again, other = (simulate(w, DIMENSIONS, seed=s) for s in (3, 3, 4))
    assert all(np.array_equal(getattr(one, name), getattr(again, name)) for name in ("theta", "ability", "alpha", "pressure", "P", "falling"))
    assert not np.array_equal(one.theta, other.theta)


def test_theta_is_what_the_real_filter_makes_of_the_batch_means() -> None:
    run = simulate(world(steps=8), DIMENSIONS, seed=1)
    for t in range(8):
        assert run.theta[t + 1] == pytest.approx(run.theta[t] + run.gain[t] * (run.mean[t] - run.theta[t]))
    assert (run.noise == PAPER.R_floor).all()


def test_what_cannot_be_learnt_does_not_move_and_drift_and_jumps_do() -> None:
    run = simulate(world(steps=12, teachable=(0.0,) + (1.0,) * 9), DIMENSIONS)
    assert np.ptp(run.ability[:, 0]) == 0 and (run.ability[-1, 1:] > 0.5).sum() >= 7
    fallen = simulate(world(steps=12, learning_rate=0.0, jump_at=5, jump=(-2.0,) + (0.0,) * 9), DIMENSIONS).ability
    assert (fallen[:5, 0] == fallen[0, 0]).all() and (fallen[5:, 0] == fallen[5, 0]).all() and fallen[5, 0] < 0.25
    assert np.ptp(fallen[:, 1:]) < 1e-9
    forgotten = simulate(world(steps=12, learning_rate=0.0, drift=-0.1), DIMENSIONS).ability
    assert (np.diff(forgotten[1:], axis=0) < 0).all()


def test_the_legacy_reward_teaches_every_dimension() -> None:
    run = simulate(world(steps=60, cases=64), DIMENSIONS, RewardSettings.of(ablation="legacy"))
    assert (run.ability[-1] > run.ability[0]).all() and (run.pressure.mean(axis=0) > 0).all()
    assert (run.falling == 0).all()


def test_the_comparison_is_paired_and_its_intervals_are_students() -> None:
    scene = Scene("two", "two", world(steps=11), ("D1",))
    chosen = {name: variants()[name] for name in ("legacy", "full")}
    measured = {(m.variant, m.quantity): m for m in compare(scene, DIMENSIONS, chosen, (0, 1))}
    runs = {n: [quantities(simulate(scene.world, DIMENSIONS, s, seed), scene, DIMENSIONS)["mean ability"] for seed in (0, 1)] for n, s in chosen.items()}
    difference = np.array(runs["full"]) - np.array(runs["legacy"])
    found = measured["full", "mean ability"]
    assert found.difference == pytest.approx(difference.mean())
    assert found.difference_high - found.difference == pytest.approx(12.7062 * abs(difference[0] - difference[1]) / 2, rel=1e-4), "t with one degree of freedom"
    same = measured["legacy", "mean ability"]
    assert (same.difference, same.difference_low, same.difference_high) == (0, 0, 0)
    with pytest.raises(TrainingError, match="at least 2 seeds"):
        compare(scene, DIMENSIONS, chosen, (0,))


def test_quantities_are_what_their_names_say() -> None:
    scene = Scene("one", "one", world(steps=12), ("D1", "E1"))
    run = simulate(scene.world, DIMENSIONS, seed=2)
    found = quantities(run, scene, DIMENSIONS)
    gained = run.ability[-1] - run.ability[1]
    assert found["gain of weak"] == pytest.approx((gained[0] + gained[5]) / 2)
    assert found["gain of others"] == pytest.approx(np.delete(gained, [0, 5]).mean())
    assert found["pull on weak, early"] == pytest.approx(run.pressure[:10, [0, 5]].mean())
    assert found["error of theta"] == pytest.approx(np.sqrt(((run.theta[11:] - run.ability[11:]) ** 2).mean()))
    local, whole = DIMENSIONS.local, ~DIMENSIONS.local
    mean = [(DIMENSIONS.rho[g] * run.ability[-1, g]).sum() / DIMENSIONS.rho[g].sum() for g in (local, whole)]
    assert found["mean ability"] == pytest.approx(0.7 * mean[0] + 0.3 * mean[1])


def test_the_two_claims_come_out_as_the_docs_say() -> None:
    """docs/kalman.md has 200 seeds; what is clear there is clear with eight."""
    by_name = {s.name: s for s in scenes(RUBRIC)}
    chosen = {n: variants()[n] for n in ("legacy", "full", "deficit_only", "zpd_only, alone")}
    measured = {(m.variant, m.quantity): m for m in compare(by_name["uneven"], DIMENSIONS, chosen, range(8))}
    theta, raw = measured["full", "error of theta"], measured["full", "error of batch mean"]
    assert theta.high < raw.low, "the filter is nearer to the truth than the batch mean"
    assert measured["full", "band holds"].low > 0.99, "and its band is far too wide"
    assert measured["deficit_only", "gain of weak"].difference_low > 0, "the deficit helps weak dimensions"
    assert measured["zpd_only, alone", "gain of weak"].difference_high < 0, "the match by itself holds them back"
    assert measured["full", "gain of weak"].mean < measured["deficit_only", "gain of weak"].mean


def test_right_after_a_fall_the_whole_reward_pulls_less_at_what_fell() -> None:
    """docs/kalman.md says so of 200 seeds: 8% less with `full`, more yet with static weights, and not so with the deficit alone."""
    drop = next(s for s in scenes(RUBRIC) if s.name == "sudden drop")
    chosen = {n: variants()[n] for n in ("legacy", "full", "deficit_only", "static")}
    early = {m.variant: m for m in compare(drop, DIMENSIONS, chosen, range(8)) if m.quantity == "pull on weak, early"}
    assert early["full"].difference_high < 0 < early["deficit_only"].difference_low
    assert early["static"].difference < early["full"].difference
    assert early["static"].mean > early["legacy"].mean / 2, "nothing in the paper's mix is starved"


def test_an_epsilon_of_nothing_is_lifted_just_where_a_variant_needs_one() -> None:
    """What notebook 08 may write for zpd_only or legacy, which do not use epsilon."""
    for ablation in ("zpd_only", "legacy"):
        given = RewardSettings.of(ablation=ablation, epsilon=0.0)
        found = {name: chosen.epsilon for name, chosen in variants(given).items()}
        lifted = {"full", "deficit_only", "static", "full, alone", "deficit_only, alone"}
        assert {name for name, epsilon in found.items() if epsilon == LEAST_EPSILON} == lifted
        assert all(epsilon == 0 for name, epsilon in found.items() if name not in lifted)
    assert changed(RewardSettings.of(epsilon=0.0, p=0.0), "full").epsilon == 0, "then the deficit is 1 whatever theta is"
    assert all(chosen.epsilon == 0.3 for chosen in variants(RewardSettings.of(epsilon=0.3)).values())


def test_widths_are_the_whole_reward_with_these_sigmas_beside_two_without_a_match() -> None:
    found = widths(RewardSettings.of(p=2.0, ablation="static"), " 0.1, 0.65,")
    assert [(name, s.ablation, s.p) for name, s in found.items()] == [
        ("legacy", "legacy", 2.0), ("deficit_only", "deficit_only", 2.0), ("full, sigma 0.1", "full", 2.0), ("full, sigma 0.65", "full", 2.0)]  # fmt: skip
    assert [s.sigma for s in found.values()][2:] == [0.1, 0.65]
    assert widths(PAPER, " ") == {}
    for wrong in ("0.1;0.2", "0"):
        with pytest.raises(TrainingError, match="sigma"):
            widths(PAPER, wrong)
    assert {s.name for s in scenes(RUBRIC)} >= set(WIDTHS_IN)


def test_a_narrow_match_turns_more_score_into_less_reward_and_a_wide_one_never_does() -> None:
    """docs/kalman.md, Wider matches: 0.1 harms the mean of both worlds, and from 0.652 on no reward falls."""
    uneven = scenes(RUBRIC)[0]
    found = {(m.variant, m.quantity): m for m in compare(uneven, DIMENSIONS, widths(PAPER, "0.1,0.66"), range(4))}
    assert found["full, sigma 0.1", "more score, less reward"].mean > 0.03
    assert found["full, sigma 0.66", "more score, less reward"].mean == 0
    assert found["full, sigma 0.1", "mean ability"].difference_high < 0


def test_a_study_says_after_every_variant_how_far_it_is() -> None:
    two = [Scene(name, name, world(steps=11), ("D1",)) for name in ("one", "two")]
    chosen, lines = {n: variants()[n] for n in ("legacy", "full")}, list[str]()
    found = compare_all(two, DIMENSIONS, chosen, (0, 1), lines.append)
    assert found == {scene: compare(scene, DIMENSIONS, chosen, (0, 1)) for scene in two}
    assert [line[:3] for line in lines] == ["1/4", "2/4", "3/4", "4/4"]
    assert all("s left: " in line for line in lines[:3]) and lines[1].endswith(": one, full") and lines[3] == "4/4: two, full"
    assert compare_all(two, DIMENSIONS, {}, (0, 1), lines.append) == {} and len(lines) == 4


def test_shares_are_the_weights_within_their_groups() -> None:
    found = Dimensions(("D1", "E1", "D2"), np.array([True, False, True]), np.array([3.0, 5.0, 1.0])).shares
    assert found == pytest.approx([0.75, 1, 0.25])
    great = Dimensions(("D1", "D2"), np.array([True, True]), np.array([1.5e308, 1.5e308])).shares
    assert great == pytest.approx([0.5, 0.5]), "their sum is infinite"


def test_the_simulation_agrees_with_the_closed_forms() -> None:
    """A learner that stands still shows what is left of the random error, one that drifts the lag."""
    rest = steady()
    still = simulate(world(steps=800, learning_rate=0.0, cases=8), DIMENSIONS)
    error, raw = ((x[50:] - still.ability[51:]) for x in (still.theta[1:], still.mean))
    assert error.std() / raw.std() == pytest.approx(rest.noise_kept, rel=0.06)
    assert still.gain[-1] == pytest.approx(np.full(10, rest.gain)) and still.P[-1] == pytest.approx(np.full(10, rest.P))
    drifting = simulate(world(steps=60, learning_rate=0.0, drift=0.02, cases=400), DIMENSIONS)
    rise = np.diff(drifting.ability[31:], axis=0).mean()
    assert (drifting.ability[31:] - drifting.theta[31:]).mean() / rise == pytest.approx(rest.lag, rel=0.15)

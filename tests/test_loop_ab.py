"""The A/B of skills: known answers, false alarms, and scripted speakers who read their skills, or do not."""

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.loop.ab import SkillTest, read_ab, run_ab
from anthrolab.loop.filter import Filtered, FilterResult
from anthrolab.loop.folder import Loop, LoopError
from anthrolab.loop.paired import (
    EXACT,
    LEAST_BINDINGS,
    Outcome,
    Quantity,
    compare,
    holm,
    outcome_of,
    sentences,
    sign_flip_p,
    verdict_of,
)
from anthrolab.loop.skill_files import history
from anthrolab.models.scripted import Answer, Call, Served, serve
from anthrolab.runtime.dialogue import Dialogue, Participant
from tests.cards_for_tests import small_cards
from tests.loop_for_tests import add_failures, begin_loop
from tests.test_bench_run import quiet
from tests.test_loop_evolution import NEW, answer, over_http

LIBRARY = load_library(default_cards_dir())
BINDINGS = list(LIBRARY.bindings)[:11]
MAGIC = "别排一二三"  # stands in the new skill, and not in the old one
DIMENSIONS = ["D1", "D2"]


# --- the test and its correction


def literal_p(differences: list[float], clusters: list[str]) -> float:
    """Every choice of a sign for each cluster, word by word."""
    sums: dict[str, float] = {}
    for value, cluster in zip(differences, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0) + value
    values = list(sums.values())
    seen = abs(sum(values))
    choices = list(product((1, -1), repeat=len(values)))
    return sum(abs(sum(s * v for s, v in zip(c, values, strict=True))) >= seen - 1e-9 for c in choices) / len(choices)


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from("abcdef")), min_size=1, max_size=12))
def test_p_is_the_share_of_all_signs_that_go_as_far(pairs: list[tuple[int, str]]) -> None:
    differences, clusters = [float(d) for d, _ in pairs], [c for _, c in pairs]
    p = sign_flip_p(differences, clusters)
    assert p == pytest.approx(literal_p(differences, clusters))
    assert sign_flip_p([-d for d in differences], clusters) == pytest.approx(p), "both directions count alike"


def test_known_p_values() -> None:
    names = [f"b{i}" for i in range(10)]
    assert sign_flip_p([1.0] * 10, names) == 2 / 2**10
    assert sign_flip_p([0.0] * 10, names) == 1.0
    assert sign_flip_p([1.0] * 10, ["b"] * 10) == 1.0, "ten cases of one binding are one observation"
    assert sign_flip_p([1.0] * 5, names[:5]) > 0.05 and sign_flip_p([1.0] * LEAST_BINDINGS, names[:LEAST_BINDINGS]) < 0.05
    assert sign_flip_p([0.1, 0.2, -0.3], names[:3]) == 1.0, "0.1 + 0.2 - 0.3 is 0, whatever floats say"


def test_many_bindings_are_drawn_and_agree_with_the_exact_answer() -> None:
    draw = np.random.default_rng(1)
    values = draw.normal(0.2, 1, EXACT)
    names = [str(i) for i in range(EXACT)]
    exact = sign_flip_p(values, names)
    # two more that hardly matter push it over to drawing
    drawn = sign_flip_p([*values, 1e-9, 1e-9], [*names, "x", "y"], seed=3)
    assert 0.02 < exact < 0.9 and drawn == pytest.approx(exact, abs=0.02)
    assert sign_flip_p([*values, 1e-9, 1e-9], [*names, "x", "y"], seed=3) == drawn


def test_skills_that_change_nothing_are_called_better_as_rarely_as_said() -> None:
    draw = np.random.default_rng(7)
    names = [f"b{i // 2}" for i in range(20)]
    found = []
    for _ in range(400):
        of_binding = np.repeat(draw.normal(0, 3, 10), 2)  # the two cases of a binding move together
        found.append(sign_flip_p(of_binding + draw.normal(0, 3, 20), names))
    assert 0.02 < np.mean(np.array(found) < 0.05) < 0.08


def test_holm_is_holms() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([None, 0.5, 0.02]) == [None, 0.5, 0.04]
    assert holm([0.9, 0.8]) == [1.0, 1.0] and holm([]) == []


# --- comparing


def outcomes(scores: list[float | None], *, bindings: int | None = None, accepted: float | None = 0.0) -> list[Outcome]:
    return [
        Outcome(f"b{i % (bindings or len(scores))}-{i}", f"b{i % (bindings or len(scores))}", {"score": s, "accepted": accepted, "valid": float(s is not None), "D1": None})
        for i, s in enumerate(scores)
    ]  # fmt: skip


def test_a_difference_of_every_binding_is_found_and_its_numbers_are_right() -> None:
    before, after = outcomes([70.0, 80.0, 90.0, 60.0, 75.0, 85.0]), outcomes([72.0, 83.0, 91.0, 64.0, 80.0, 86.0], accepted=1.0)
    score, accepted, valid, d1, _ = compare(before, after, DIMENSIONS, seed=0)
    assert (score.cases, score.bindings, score.p) == (6, 6, 2 / 64)
    assert score.difference == pytest.approx(16 / 6) and score.low is not None and 1 <= score.low <= 16 / 6 <= (score.high or 0) <= 5
    assert (accepted.before, accepted.after, accepted.only_after, accepted.only_before) == (0, 1, 6, 0)
    assert (valid.difference, valid.p, valid.low, valid.high) == (0, 1, 0, 0)
    assert (d1.cases, d1.p, d1.holm) == (0, None, None)
    assert accepted.holm == 4 / 64, "corrected for accepted and valid; dimensions without a value do not count"
    assert score.holm is None and verdict_of(score) == "better"


def test_only_cases_with_a_value_in_both_arms_are_compared_and_samples_are_averaged() -> None:
    before = [*outcomes([70.0, None, 50.0]), *outcomes([80.0])]
    after = [*outcomes([75.0, 90.0, None])]
    score = compare(before, after, [], seed=0)[0]
    assert (score.cases, score.before, score.after, score.difference) == (1, 75, 75, 0)
    valid = compare(before, after, [], seed=0)[2]
    assert (valid.cases, valid.only_before, valid.only_after) == (3, 1, 1)


@pytest.mark.parametrize(
    ("gains", "bindings", "verdict"),
    [
        ([3.0] * 8, 8, "better"), ([-3.0] * 8, 8, "worse"), ([3.0, -3.0] * 4, 8, "not told apart"), ([0.0] * 8, 8, "not told apart"),
        ([9.0] * 10, 5, "too few bindings"), ([9.0] * 10, 1, "too few bindings"), ([], 1, "nothing to compare"),
    ],
)  # fmt: skip
def test_what_may_be_said(gains: list[float], bindings: int, verdict: str) -> None:
    before, after = outcomes([50.0 for _ in gains], bindings=bindings), outcomes([50 + g for g in gains], bindings=bindings)
    quantities = compare(before, after, DIMENSIONS, seed=0)
    assert verdict_of(quantities[0]) == verdict
    said = " ".join(sentences(quantities, verdict_of(quantities[0]), {}))
    claims = {"better": "a higher score", "worse": "a lower score"}
    for name, claim in claims.items():
        assert (claim in said) == (verdict == name)
    if verdict == "not told apart":
        assert "does not say that they are equal" in said


def test_a_higher_score_of_fewer_valid_chats_is_no_improvement() -> None:
    """Twelve bindings: half of the chats are invalid with the new skills, the others gain three points."""
    before = [Outcome(f"b{i}-a", f"b{i}", {"score": 50.0, "accepted": 0.0, "valid": 1.0}) for i in range(12)]
    after = [Outcome(f"b{i}-a", f"b{i}", {"score": None if i < 6 else 53.0, "accepted": 0.0, "valid": float(i >= 6)}) for i in range(12)]
    quantities = compare(before, after, [], seed=0)
    valid = next(q for q in quantities if q.name == "valid")
    assert verdict_of(quantities[0]) == "better" and verdict_of(quantities[0], valid) == "mixed"
    counts = {arm: {"planned": 12, "accepted": 0, "rejected": 12 - n, "invalid": n, "undecided": 0} for arm, n in (("before", 0), ("after", 6))}
    said = " ".join(sentences(quantities, "mixed", counts))
    assert "no improvement that can be claimed" in said and "after: 6 of 12 dialogues are invalid and in no score" in said


def test_what_is_missing_or_undecided_is_said() -> None:
    counts = {"before": {"planned": 4, "accepted": 1, "rejected": 2, "invalid": 0, "undecided": 0},
              "after": {"planned": 4, "accepted": 0, "rejected": 0, "invalid": 0, "undecided": 4}}  # fmt: skip
    said = sentences([Quantity(name="score", cases=0, bindings=0)], "nothing to compare", counts)
    assert any("before: 1 of 4 dialogues are not there" in s for s in said)
    assert any("after: 4 of 4 dialogues have checkboxes without an answer" in s for s in said)
    assert not any("before: " in s and "without an answer" in s for s in said)


@pytest.mark.parametrize(
    ("status", "accepted", "valid", "score"),
    [("accepted", 1, 1, 87.5), ("rejected", 0, 1, 87.5), ("invalid", 0, 0, None), ("undecided", None, 1, 87.5)],
)
def test_an_outcome_is_what_the_filter_says(status: Any, accepted: float | None, valid: float, score: float | None) -> None:
    dialogue = Dialogue(
        dialogue_id="d", binding="b01", evaluated_role="b", speakers={"a": Participant(name="甲"), "b": Participant(name="乙")}, messages=[]
    )
    result = FilterResult(status=status, why="", final_score=None, grade=None, turn_score=0.75, dialogue_score=1.0, dimensions={"D1": 0.5, "D2": None})
    outcome = outcome_of(Filtered.of(dialogue, result))
    assert (outcome.case_id, outcome.binding) == ("b01-b", "b01")
    assert outcome.values == {"accepted": accepted, "valid": valid, "score": score, "D1": 0.5 if valid else None, "D2": None}


# --- scripted speakers


def played(says: Callable[[str, str], str]) -> Callable[[Call], str | Answer]:
    """A server for all: speakers (the tested one's words by its system text and its line's number), a judge that fails the
    naturalness of every turn with 首先 in it, and a writer."""

    def handler(call: Call) -> str | Answer:
        system, user = (m["content"] for m in call.body["messages"])
        if call.body["model"] == "oracle":
            ids = call.body["response_format"]["json_schema"]["schema"]["properties"]
            bad = any("待评" in line and "首先" in line for line in user.split("\n"))
            entries = {i: {"reason": "无", "violated": False, "message": None} if i.startswith("L0") else
                       {"reason": "无", "passed": not (bad and i.startswith("D1"))} for i in ids}  # fmt: skip
            return json.dumps(entries, ensure_ascii=False)
        if call.body["model"] == "pen":
            return answer()
        name, now = re.search(r"你就是(.+?)。\n", system), re.search(r"现在是 (\S+)（", user)
        assert name and now
        lines = user.count("\n[")
        text = says(system, f"第{lines}句") if call.body["model"] == "toy" else f"嗯 第{lines}句呀"
        decision = {"role": name[1], "response": {"content": text, "timestamp": now[1][:-2] + "59", "end": lines > 4}}
        return json.dumps(decision, ensure_ascii=False)

    return handler


def setting(tmp_path: Path, served: Served, bindings: int = 10, **changes: Any) -> tuple[Loop, dict[str, Any]]:
    """A loop whose first round has rewritten a skill, and the files that its A/B needs."""
    common = {"endpoint": served.url, "server": "openai", "policy": "chat", "retries": 0, "timeout_s": 20.0}
    entries = [{"name": n, "model": n, "partner": "mate", **common} for n in ("toy", "mate", "oracle", "pen")]
    systems = tmp_path / "systems.yaml"
    systems.write_text(json.dumps({"systems": entries}), encoding="utf-8")
    cards = small_cards(tmp_path / "cards", LIBRARY, BINDINGS)
    loop = begin_loop(tmp_path / "圈", held_back=BINDINGS[:bindings], cases=[f"{BINDINGS[10]}-a"], max_messages=6, **changes)
    add_failures(loop, 1, {"D1.3": 3}, binding=BINDINGS[10])
    over_http(loop, 1, served.url)
    return loop, {"systems_file": systems, "cards_dir": cards, "progress": quiet}


def test_speakers_who_read_the_new_skill_and_get_better_are_found_better(tmp_path: Path) -> None:
    def says(system: str, line: str) -> str:
        return f"明儿见 {line}" if MAGIC in system else f"首先 {line}"

    with serve(played(says)) as served:
        loop, files = setting(tmp_path, served)
        result = run_ab(loop, 1, **files)
        asked, content = len(served.calls), (loop.ab_dir(1) / "result.json").read_bytes()
        assert run_ab(loop, 1, **files) == result == read_ab(loop, 1)
        assert len(served.calls) == asked, "what was paid for was asked again"
    assert (loop.ab_dir(1) / "result.json").read_bytes() == content
    by_name = {q.name: q for q in result.quantities}
    assert result.verdict == "better" and result.versions == ["v1", "v2"]
    score = by_name["score"]
    assert (score.before, score.after, score.difference) == pytest.approx((87.5, 100, 12.5))
    assert (score.cases, score.bindings, score.p) == (20, 10, 2 / 2**10)
    assert (by_name["accepted"].difference, by_name["D1"].difference) == (1, 1)
    assert {n for n, q in by_name.items() if q.holm is not None and q.holm < 0.05} == {"accepted", "D1"}
    assert result.counts["before"] == {"planned": 20, "accepted": 0, "rejected": 20, "invalid": 0, "undecided": 0}
    assert result.counts["after"]["accepted"] == 20
    for arm, version, magic in (("before", "v1", False), ("after", "v2", True)):
        run = loop.ab_dir(1) / "runs" / arm
        manifest = json.loads((run / "manifest.json").read_text("utf-8"))
        assert any(label.startswith(f"message_style {version} ") for label in manifest["hashes"]["skills"])
        prompts = "".join(p.read_text("utf-8") for p in run.glob("calls/b*.jsonl"))
        assert (MAGIC in prompts) == magic


def test_speakers_who_do_not_care_are_not_told_apart(tmp_path: Path) -> None:
    with serve(played(lambda system, line: f"首先 {line}" if "3" in line else f"好 {line}")) as served:
        loop, files = setting(tmp_path, served, bindings=6)
        result = run_ab(loop, 1, **files)
    assert result.verdict == "not told apart"
    assert all(q.difference == 0 and q.p == 1 for q in result.quantities if q.cases)
    assert not [s for s in result.said if "higher" in s or "lower" in s]


def test_with_the_rules_judge_acceptance_stays_unknown_and_that_is_said(tmp_path: Path) -> None:
    def says(system: str, line: str) -> str:
        return f"明儿见 {line}" if MAGIC in system else f"首先，我同意；其次，{line}也行"

    with serve(played(says)) as served:
        loop, files = setting(tmp_path, served, bindings=2, judge="rules")
        result = run_ab(loop, 1, **files)
    by_name = {q.name: q for q in result.quantities}
    assert result.verdict == "too few bindings"
    assert by_name["accepted"].cases == 0 and (by_name["D1"].difference or 0) > 0
    assert any("without an answer" in s for s in result.said)


def test_there_must_be_a_rewrite_and_something_held_back(tmp_path: Path) -> None:
    with serve(played(lambda system, line: line)) as served:
        loop, files = setting(tmp_path, served)
        asked = len(served.calls)
        with pytest.raises(LoopError, match="round 2 rewrote no skill"):
            run_ab(loop, 2, **files)
        (tmp_path / "two").mkdir()
        other, files = setting(tmp_path / "two", served, bindings=0)
        with pytest.raises(LoopError, match="holds no binding back"):
            run_ab(other, 1, **files)
        assert len(served.calls) == asked + 1
    assert NEW in [v.skill.text for v in history(loop)]


def test_a_damaged_result_names_its_file(tmp_path: Path) -> None:
    loop = begin_loop(tmp_path / "l")
    assert read_ab(loop, 1) is None
    loop.ab_dir(1).mkdir(parents=True)
    (loop.ab_dir(1) / "result.json").write_text("{", encoding="utf-8")
    with pytest.raises(LoopError, match=r"result\.json: "):
        read_ab(loop, 1)
    assert "said" in SkillTest.model_fields

"""Two judges on one run, and one judge twice: agreement against slow literal versions, flips over real HTTP, killed and resumed."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from anthrolab.bench.effort import Effort
from anthrolab.bench.judge import judge_run
from anthrolab.bench.second_judge import (
    ALL,
    OUTCOME,
    RETESTS,
    Retest,
    agreements,
    retest,
    retest_of,
    retested,
    sample,
)
from anthrolab.bench.store import Run, RunError
from anthrolab.cli import app
from anthrolab.files import whole_lines
from anthrolab.intervals import Interval, Rate
from anthrolab.judging.calibration.agreement import kappa, kappa_by_cluster
from anthrolab.judging.calibration.judged import CheckError
from anthrolab.judging.verdict import Verdict
from anthrolab.models.client import ModelError
from anthrolab.models.scripted import Answer, Call, reply_body, serve
from tests.labelled_for_tests import SMALL, verdict
from tests.test_bench_judge import CASES, answering, fine, make_run
from tests.test_bench_run import quiet

# --- two judges -----------------------------------------------------------------------------------------------------

A = {
    "d1": verdict("d1", {"D1.1": "++--", "D1.2": "++++"}, "+", {"L0-07": False, "L0-09": False}),
    "d2": verdict("d2", {"D1.1": "+-+?", "D1.2": "++++"}, "+", {"L0-07": 3, "L0-09": False}),
    "d3": verdict("d3", {"D1.1": "++++", "D1.2": "++++"}, "+", {"L0-07": False, "L0-09": None}),
}
B = {
    "d1": verdict("d1", {"D1.1": "+--+", "D1.2": "++++"}, "?", {"L0-07": 1, "L0-09": None}),
    "d2": verdict("d2", {"D1.1": "+-?-", "D1.2": "++++"}, "?"),
    "d4": verdict("d4", {"D1.1": "----", "D1.2": "----"}, "-"),
}
BINDINGS = {"d1": "b01", "d2": "b02", "d3": "b02", "d4": "b03"}


def test_agreement_by_hand() -> None:
    rows = {r.of: r for r in agreements(A, B, BINDINGS, SMALL)}
    assert list(rows) == [OUTCOME, ALL, "D1.1", "D1.2", "E1.1", "L0-07"], "L0-09 has no place that both answer"
    spoken = rows["D1.1"]
    # d1: ++ +- -- -+; d2: ++ -- (and two places that one judge leaves): 2 pass, 2 fail, one each way
    assert (spoken.kappa.agree, spoken.kappa.both_passed, spoken.one_only) == (Rate(4, 6), Rate(2, 6), 2)
    assert (spoken.kappa.failed_a, spoken.kappa.failed_b) == (Rate(3, 6), Rate(3, 6))
    assert spoken.kappa.value == pytest.approx((4 / 6 - 1 / 2) / (1 - 1 / 2))
    assert spoken.no_kappa("A", "B") is None
    assert rows["D1.2"].kappa.value is None and rows["D1.2"].no_kappa("A", "B") == "both always say passed"
    assert (rows["D1.2"].kappa.agree, rows["D1.2"].kappa.interval) == (Rate(8, 8), None)
    assert rows["E1.1"].no_kappa("A", "B") == "nothing that both answer" and rows["E1.1"].one_only == 2
    assert rows["L0-07"].kappa.agree == Rate(0, 1)
    assert rows[ALL].kappa.agree == Rate(12, 14)
    # d1 fails for both, d2 fails for both: never d3 and d4, which one of them has not judged
    assert rows[OUTCOME].kappa.agree == Rate(2, 2) and rows[OUTCOME].no_kappa("A", "B") == "both always say failed"


def test_a_case_that_one_judge_cannot_decide_is_no_disagreement() -> None:
    nothing = {"d1": verdict("d1", {"D1.1": "????", "D1.2": "????"}, "?")}
    row = agreements(A, nothing, BINDINGS, SMALL)[0]
    assert (row.of, row.kappa.agree, row.one_only, row.no_kappa("A", "B")) == (OUTCOME, Rate(0, 0), 1, "nothing that both answer")
    assert agreements(A, {}, BINDINGS, SMALL)[0].kappa.agree == Rate(0, 0)


def test_a_fatal_violation_rejects_a_case_whatever_its_checkboxes() -> None:
    clean = {"d1": verdict("d1", {"D1.1": "++++", "D1.2": "++++"}, "+")}
    fatal = {"d1": verdict("d1", {"D1.1": "++++", "D1.2": "++++"}, "+", {"L0-09": 1})}
    assert agreements(clean, fatal, BINDINGS, SMALL)[0].kappa.agree == Rate(0, 1)
    assert agreements(clean, clean, BINDINGS, SMALL)[0].kappa.agree == Rate(1, 1)


def test_intervals_resample_bindings_and_not_dialogues() -> None:
    good, bad = {"D1.1": "++++", "D1.2": "++++"}, {"D1.1": "+-+-", "D1.2": "++++"}
    ids = [f"d{n:02}" for n in range(24)]
    one, two = [n % 2 == 0 for n in range(24)], [n % 3 == 0 for n in range(24)]
    a, b = ({key: verdict(key, good if fine else bad) for key, fine in zip(ids, judge, strict=True)} for judge in (one, two))
    bindings = {key: f"b{n // 2:02}" for n, key in enumerate(ids)}
    apart = {r.of: r.kappa for r in agreements(a, b, bindings, SMALL)}
    together = {r.of: r.kappa for r in agreements(a, b, dict.fromkeys(ids, "b01"), SMALL)}
    for of in (OUTCOME, ALL, "D1.1"):
        assert apart[of].interval is not None and together[of].interval is None
        assert apart[of].value == together[of].value
    pairs = list(zip(one, two, strict=True))
    assert apart[OUTCOME] == kappa_by_cluster([pairs[n : n + 2] for n in range(0, 24, 2)], seed=0)
    assert apart[OUTCOME].interval != kappa_by_cluster([[pair] for pair in pairs], seed=0).interval


SIGNS = st.text("+-?", min_size=4, max_size=4)
VERDICTS = st.dictionaries(
    st.sampled_from(sorted(BINDINGS)), st.tuples(SIGNS, SIGNS, st.sampled_from("+-?")), max_size=4
).map(lambda said: {key: verdict(key, {"D1.1": one, "D1.2": two}, whole) for key, (one, two, whole) in said.items()})


@settings(max_examples=60, deadline=None)
@given(VERDICTS, VERDICTS)
def test_agreement_is_the_literal_one(a: dict[str, Verdict], b: dict[str, Verdict]) -> None:
    def said(v: Verdict, box: str) -> list[bool | None]:
        return [x.passed for x in v.boxes() if x.id == box]

    rows = {r.of: r for r in agreements(a, b, BINDINGS, SMALL)}
    both = [key for key in a if key in b]
    for box in ("D1.1", "D1.2", "E1.1"):
        pairs = [p for key in both for p in zip(said(a[key], box), said(b[key], box), strict=True)]
        full = [(x, y) for x, y in pairs if x is not None and y is not None]
        slow, row = kappa(full), rows[box]
        assert (row.kappa.value, row.kappa.agree, row.kappa.failed_a, row.kappa.failed_b) == (slow.value, slow.agree, slow.failed_a, slow.failed_b)
        assert row.kappa.both_passed == Rate(sum(x and y for x, y in full), len(full))
        assert row.one_only == sum((x is None) != (y is None) for x, y in pairs)
        both_kinds = len({x for x, _ in full}) == len({y for _, y in full}) == 2
        assert (row.no_kappa("A", "B") is None) == both_kinds
        assert row.kappa.interval is None or both_kinds
    sums = [sum(getattr(rows[box].kappa, part).part for box in ("D1.1", "D1.2", "E1.1")) for part in ("agree", "both_passed", "failed_a", "failed_b")]
    whole = rows[ALL].kappa
    assert [whole.agree.part, whole.both_passed.part, whole.failed_a.part, whole.failed_b.part] == sums
    assert whole.agree.of == sum(rows[box].kappa.agree.of for box in ("D1.1", "D1.2", "E1.1"))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"d1": ("+", "+"), "d2": ("+", "-"), "d3": ("+", "+"), "d4": ("+", "-")}, "A always says passed"),
        ({"d1": ("+", "-"), "d2": ("-", "-"), "d3": ("+", "-"), "d4": ("-", "-")}, "B always says failed"),
        ({"d1": ("+", "-"), "d2": ("+", "-"), "d3": ("+", "-"), "d4": ("+", "-")}, "A always says passed, B always says failed"),
        ({"d1": ("-", "-"), "d2": ("-", "-"), "d3": ("-", "-"), "d4": ("-", "-")}, "both always say failed"),
    ],
)
def test_a_judge_with_one_kind_of_answer_is_named_and_nothing_is_certain(said: dict[str, tuple[str, str]], why: str) -> None:
    a, b = ({key: verdict(key, {"D1.1": "++++"}, pair[i]) for key, pair in said.items()} for i in (0, 1))
    row = next(r for r in agreements(a, b, {key: key for key in said}, SMALL) if r.of == "E1.1")
    assert row.no_kappa("A", "B") == why
    assert row.kappa.interval is None


def test_a_failure_in_too_few_bindings_leaves_the_interval_out() -> None:
    passes, fails = [(True, True)] * 3, [(False, False), (True, True)]
    # both judges agree on every place; without the binding that fails kappa has no value, so its spread is unknown: a bootstrap
    # that leaves those draws out would say [1, 1]
    for failing in (1, 2):
        found = kappa_by_cluster([passes] * 20 + [fails] * failing, seed=0)
        assert (found.value, found.interval) == (1.0, None)
    found = kappa_by_cluster([passes] * 20 + [fails] * 8, seed=0)
    assert found.interval == Interval(1.0, 1.0)
    # one judge fails in one binding only: where it is not drawn, kappa is 0 whatever the other says
    assert kappa_by_cluster([[(True, False), (True, True)]] * 20 + [[(False, False)]], seed=0).interval is None


PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=6)


def both_kinds(pairs: list[tuple[bool, bool]]) -> bool:
    return len({x for x, _ in pairs}) == len({y for _, y in pairs}) == 2


@settings(max_examples=60, deadline=None)
@given(st.lists(PAIRS, max_size=9) | st.lists(PAIRS.filter(both_kinds), min_size=2, max_size=5), st.integers(0, 3))
def test_the_interval_of_kappa_resamples_whole_clusters(clusters: list[list[tuple[bool, bool]]], seed: int) -> None:
    found = kappa_by_cluster(clusters, seed=seed, resamples=40)
    filled, whole = [c for c in clusters if c], [p for c in clusters for p in c]
    assert found.value == kappa(whole).value
    if not both_kinds(whole) or len(filled) < 2:
        assert found.interval is None
        return
    draws = np.random.default_rng(seed).multinomial(len(filled), [1 / len(filled)] * len(filled), 40)
    drawn = [[p for c, times in zip(filled, draw, strict=True) for p in c * times] for draw in draws]
    values = [kappa(pairs).value for pairs in drawn if both_kinds(pairs)]
    if len(values) < 38:
        assert found.interval is None, "more than one draw of twenty says nothing"
        return
    low, high = np.quantile(values, [0.025, 0.975])  # type: ignore[arg-type]
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((float(low), float(high)), abs=1e-12)


def test_clusters_alike_leave_no_doubt_and_one_cluster_says_nothing() -> None:
    alike = [(True, True), (False, False), (True, False)]
    value = kappa(alike).value
    assert value is not None
    assert kappa_by_cluster([alike] * 4, seed=0).interval == Interval(value, value)
    assert kappa_by_cluster([alike, []], seed=0).interval is None


# --- one judge twice ------------------------------------------------------------------------------------------------


def test_flips_by_hand() -> None:
    first = {"d1": A["d1"], "d2": A["d2"], "d3": A["d3"]}
    second = {
        "d1": verdict("d1", {"D1.1": "+---", "D1.2": "++++"}, "-", {"L0-07": False}),
        "d3": verdict("d3", {"D1.1": "++-?", "D1.2": "++++"}, "+", {"L0-07": 5}),
    }
    found = retest_of("hand", first, second, SMALL)
    assert found == Retest(
        judge="hand", judged=3, dialogues=2, incomplete=0,
        flips={"D1.1": Rate(2, 7), "D1.2": Rate(0, 8), "E1.1": Rate(1, 2), "L0-07": Rate(1, 2), "L0-09": Rate(0, 0)},
        flips_all=Rate(3, 17),
        outcome_flips=Rate(1, 2),
    )  # fmt: skip


def test_a_sample_is_seeded_in_order_and_held_by_a_larger_one() -> None:
    ids = [f"d{i:02}" for i in range(30)]
    assert sample(ids, 5, 1) == sample(ids, 5, 1) == sorted(sample(ids, 5, 1))
    assert sample(ids, 5, 1) != sample(ids, 5, 2)
    assert set(sample(ids, 5, 1)) < set(sample(ids, 9, 1))
    assert sample(ids, 99, 1) == ids
    assert set(sample(reversed(ids), 5, 1)) == set(sample(ids, 5, 1)), "the draw does not depend on the order of the file"
    drawn = Counter(i for seed in range(200) for i in sample(ids, 15, seed))
    assert set(drawn) == set(ids) and 60 < min(drawn.values()) <= max(drawn.values()) < 140


Handler = Callable[[Call], str | Answer]


def fickle() -> Handler:
    """A judge that fails D1.2 of message 1 or 2 where it is asked about it for the second time; all else passes."""
    seen: Counter[str] = Counter()

    def handler(call: Call) -> str | Answer:
        prompt = json.dumps(call.body["messages"], ensure_ascii=False)
        seen[prompt] += 1
        again = seen[prompt] == 2 and re.search(r"#[12] [^#]*（待评）", prompt) is not None
        return answering(lambda box: {"reason": "这回长了", "passed": False} if again and box == "D1.2" else fine(box))(call)

    return handler


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run `r` of four cases, judged by oracle, and the systems file that was used."""
    folder = tmp_path_factory.mktemp("judged")
    with serve(answering(fine)) as served:
        run, systems = make_run(folder, served.url)
        judge_run(run, "oracle", systems_file=systems, progress=quiet)
        (folder / "url").write_text(served.url, encoding="utf-8")
    return folder


@pytest.fixture
def folder(judged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged, tmp_path / "copy"))


def moved(folder: Path, url: str) -> None:
    """Have the run, as it were, judged at `url`: the address is part of the judge's identity."""
    old = (folder / "url").read_text(encoding="utf-8")
    systems = folder / "systems.yaml"
    systems.write_text(systems.read_text(encoding="utf-8").replace(old, url), encoding="utf-8")
    (folder / "url").write_text(url, encoding="utf-8")
    judge_run(folder / "r", "oracle", systems_file=systems, effort=Effort(cache=folder / "replies.sqlite"), progress=quiet)


def again(folder: Path, dialogues: int = CASES, **options: Any) -> Retest:
    return retest(folder / "r", "oracle", dialogues, systems_file=folder / "systems.yaml", progress=quiet, **options)


def files(run: Path) -> dict[str, bytes]:
    return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob("*") if p.is_file() and p.name != ".lock"}


def test_a_retest_counts_what_changed_and_asks_everything_anew_once(folder: Path) -> None:
    handler = fickle()
    with serve(handler) as served:
        moved(folder, served.url)
        before, first = files(folder / "r"), Run(folder / "r").verdicts("oracle")
        asked = len(served.calls)
        found = again(folder, effort=Effort(cache=folder / "replies.sqlite"))
        # a turn is flipped if its message is #1 or #2: the first turn of every case
        early = sum(t.message_index in (1, 2) for v in first.values() for t in v.turns)
        turns = sum(len(v.turns) for v in first.values())
        assert (found.dialogues, found.judged, found.incomplete) == (CASES, CASES, 0)
        assert early == CASES and found.flips["D1.2"] == Rate(early, turns)
        assert found.flips["D1.1"] == Rate(0, turns) and found.flips["L0-07"] == Rate(0, CASES)
        assert found.flips_all == Rate(early, 21 * turns + 23 * CASES)
        assert found.outcome_flips == Rate(CASES, CASES), "every case fails strictly the second time"
        assert len(served.calls) - asked == turns + CASES, "the call log, or the replies that runs share, answered"
        now = len(served.calls)
        assert again(folder) == found
        assert len(served.calls) == now, "what is on disk was asked again"
    after = files(folder / "r")
    assert set(after) - set(before) == {RETESTS, "calls/retest-oracle.jsonl"}
    assert {name: after[name] for name in before} == before, "first verdicts, ledger and manifest stay as they were"
    Run(folder / "r").check_own()


def test_a_larger_retest_asks_only_for_the_further_dialogues(folder: Path) -> None:
    with serve(answering(fine)) as served:
        moved(folder, served.url)
        again(folder, 1, seed=3)
        (small,) = retested(Run(folder / "r"), Run(folder / "r").verdicts("oracle"))
        asked = len(served.calls)
        assert again(folder, 3, seed=3).dialogues == 3
        there = retested(Run(folder / "r"), Run(folder / "r").verdicts("oracle"))
        assert small in there and len(there) == 3
        prompts = [json.dumps(c.body["messages"]) for c in served.calls[asked:]]
        assert len(prompts) == sum(len(v.turns) + 1 for key, v in there.items() if key != small)
        assert again(folder, 1, seed=3).dialogues == 1, "only the draw of this command is counted"
        assert len(retested(Run(folder / "r"), Run(folder / "r").verdicts("oracle"))) == 3


def test_the_file_is_in_the_order_of_the_plan_and_a_torn_line_is_judged_anew(folder: Path) -> None:
    path = folder / "r" / RETESTS
    with serve(answering(fine)) as served:
        moved(folder, served.url)
        found = again(folder)
        whole = path.read_bytes()
        ids = [json.loads(line)["dialogue_id"] for line in whole_lines(path)]
        assert ids == list(Run(folder / "r").verdicts("oracle"))
        path.write_bytes(whole[:-20])
        asked = len(served.calls)
        assert again(folder) == found
        assert path.read_bytes() == whole
        assert len(served.calls) == asked, "the replies are in the call log"
        path.write_text("{}\n" + whole.decode("utf-8"), encoding="utf-8")
        with pytest.raises(CheckError, match=r"retests.jsonl: line 1: dialogue_id: .*remove that line"):
            again(folder)


def test_an_incomplete_second_verdict_is_asked_for_again(folder: Path) -> None:
    broken = True

    def failing(call: Call) -> str | Answer:
        return Answer("<html>502</html>", status=502) if broken and "（待评）" in json.dumps(call.body, ensure_ascii=False) else answering(fine)(call)

    with serve(failing) as served:
        broken = False
        moved(folder, served.url)
        broken = True
        found = again(folder)
        assert found.incomplete == CASES
        assert found.flips["D1.1"] == Rate(0, 0) and found.flips["E1.1"] == Rate(0, CASES)
        result = CliRunner().invoke(app, ["agreement", str(folder / "r"), "--retest", "oracle", "--systems", str(folder / "systems.yaml")])
        assert result.exit_code == 1, "an incomplete retest ended well"
        broken, asked = False, len(served.calls)
        mended = again(folder)
        assert mended.incomplete == 0 and mended.flips["D1.1"].of > 0
        turns = sum(len(v.turns) for v in Run(folder / "r").verdicts("oracle").values())
        assert len(served.calls) - asked == turns, "answers that were had are asked for again"
    assert len(list(whole_lines(folder / "r" / RETESTS))) == CASES, "only the later verdict stays"


def test_a_dialogue_that_takes_too_long_again_is_incomplete_and_can_be_had_later(folder: Path) -> None:
    delay = 0.0

    def slow(call: Call) -> str | Answer:
        said = answering(fine)(call)
        assert isinstance(said, str)
        return Answer(reply_body(call, said), delay=delay)

    with serve(slow) as served:
        moved(folder, served.url)
        asked, judged = len(served.calls), sum(1 for p in (folder / "r" / "calls").glob("*-oracle.jsonl") for _ in whole_lines(p))
        delay = 1.5
        found = again(folder, 2, effort=Effort(deadline_s=0.4))
        assert (found.dialogues, found.incomplete, found.flips_all) == (2, 2, Rate(0, 0))
        assert {e.fault for line in whole_lines(folder / "r" / RETESTS) for e in Verdict.model_validate_json(line).errors} == {"model_error:deadline"}
        delay = 0.0
        assert again(folder, 2).incomplete == 0
        logged = [p for p in (folder / "r" / "calls").glob("*-oracle.jsonl") for _ in whole_lines(p)]
        assert len(logged) - judged == len(served.calls) - asked, "a reply that came in after the deadline is asked for again"


def test_the_verb_retests_through_the_replies_beside_the_run_and_within_its_deadline(folder: Path) -> None:
    with serve(answering(fine)) as served:
        moved(folder, served.url)
        twin = Path(shutil.copytree(folder / "r", folder / "twin"))
        command = ["agreement", "--retest", "oracle", "--dialogues", "2", "--systems", str(folder / "systems.yaml")]
        assert CliRunner().invoke(app, [*command, str(folder / "r")]).exit_code == 0
        asked = len(served.calls)
        assert CliRunner().invoke(app, [*command, str(twin)]).exit_code == 0
        assert len(served.calls) == asked, "the same dialogues of a neighbour are asked about once"
        wrong = CliRunner().invoke(app, [*command, str(twin), "--deadline", "0"])
        assert "--deadline 0: minutes, more than 0" in str(wrong.exception)


def test_an_unreachable_judge_ends_the_command_and_nothing_is_counted(folder: Path) -> None:
    with pytest.raises(ModelError, match="is the server running"):
        again(folder)
    assert not (folder / "r" / RETESTS).exists() or not [
        v for line in whole_lines(folder / "r" / RETESTS) if (v := Verdict.model_validate_json(line)).complete
    ]


def test_a_retest_survives_kill_dash_nine(folder: Path) -> None:
    with serve(answering(fine)) as served:
        moved(folder, served.url)
        whole = Path(shutil.copytree(folder, folder.parent / "whole"))
        found = again(whole)
        begun = len(served.calls)
        command = [
            sys.executable, "-m", "anthrolab", "agreement", str(folder / "r"), "--retest", "oracle", "--dialogues", str(CASES),
            "--systems", str(folder / "systems.yaml"),
        ]  # fmt: skip
        for enough in (2, 12):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while process.poll() is None and len(served.calls) - begun < enough:
                time.sleep(0.002)
            process.kill()
            process.wait()
        subprocess.run(command, check=True, capture_output=True)
        logged = [json.loads(line)["key"] for line in whole_lines(folder / "r" / "calls" / "retest-oracle.jsonl")]
        assert len(logged) == len(set(logged))
        asked = len(served.calls)
        assert again(folder) == found
        assert len(served.calls) == asked
    assert (folder / "r" / RETESTS).read_bytes() == (whole / "r" / RETESTS).read_bytes()


def test_the_rules_judge_never_changes_its_mind(folder: Path) -> None:
    judge_run(folder / "r", progress=quiet)
    found = retest(folder / "r", "rules", 3, progress=quiet)
    assert found.dialogues == 3 and found.flips_all.of > 0 == found.flips_all.part
    with serve(answering(fine)) as served:
        moved(folder, served.url)
        again(folder, 2)
    by = Counter(json.loads(line)["judge"] for line in whole_lines(folder / "r" / RETESTS))
    assert by == {"rules": 3, "oracle": 2}, "one judge's retest takes away the other's"


def test_a_retest_of_other_dialogues_another_judge_or_other_cards_is_refused(folder: Path) -> None:
    run = folder / "r"
    with pytest.raises(RunError, match=r"not judged by rules; do: anthrolab judge .*--judge rules"):
        retest(run, "rules", 2, progress=quiet)
    with pytest.raises(RunError, match="judge at least one again"):
        again(folder, 0)
    with pytest.raises(RunError, match="no run"):
        retest(folder / "nothing", "oracle", 2, progress=quiet)
    with Run(run).locked(), pytest.raises(RunError, match="another anthrolab command works here"):
        again(folder)
    systems = folder / "systems.yaml"
    kept = systems.read_text(encoding="utf-8")
    systems.write_text(kept.replace('"model": "m"', '"model": "n"'), encoding="utf-8")
    with pytest.raises(RunError, match="judge oracle is not asked as it was"):
        again(folder)
    systems.write_text(kept, encoding="utf-8")
    manifest = Run(run).manifest()
    Run(run).write_manifest({**manifest, "hashes": {**manifest["hashes"], "cards": "0" * 16}})
    with pytest.raises(RunError, match="its cards are not those of this folder"):
        again(folder)
    Run(run).write_manifest(manifest)
    path = run / "dialogues.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("第", "弟", 1), encoding="utf-8")
    with pytest.raises(RunError, match="is of another dialogue or rubric; judge the run again first"):
        again(folder)
    assert not (run / RETESTS).exists()


def test_second_verdicts_by_another_identity_are_not_counted(folder: Path) -> None:
    with serve(answering(fine)) as served:
        moved(folder, served.url)
        again(folder, 2)
    first = Run(folder / "r").verdicts("oracle")
    assert len(retested(Run(folder / "r"), first)) == 2
    others = {key: v.model_copy(update={"judge_identity": "0" * 16}) for key, v in first.items()}
    assert retested(Run(folder / "r"), others) == {}
    assert retested(Run(folder / "r"), {}) == {}


# --- the verb -------------------------------------------------------------------------------------------------------


def run_verb(*args: str) -> tuple[int, str, Exception | None]:
    result = CliRunner().invoke(app, ["agreement", *args])
    return result.exit_code, result.stdout, result.exception  # type: ignore[return-value]


@pytest.fixture
def both(folder: Path) -> Path:
    judge_run(folder / "r", progress=quiet)
    return folder


def test_the_verb_prints_both_judges_and_the_retest(both: Path) -> None:
    code, said, _ = run_verb(str(both / "r"), "--judges", "oracle,rules", "--retest", "rules", "--dialogues", "2")
    assert code == 0
    assert "Run r: oracle and rules judge" in said and "Run r: judge rules asked twice" in said
    assert "2 of 4 dialogues" in said
    code, whole, _ = run_verb(str(both / "r"))
    assert code == 0 and "Run r: oracle and rules judge" in whole and "judge rules asked twice" in whole


def test_the_verb_says_what_is_missing(folder: Path) -> None:
    _, _, error = run_verb(str(folder / "r"))
    assert "only one judge judged it, and once; judge it by another, or again with --retest NAME" in str(error)
    _, _, error = run_verb(str(folder / "r"), "--judges", "oracle,rules")
    assert "not judged by rules; do: anthrolab judge" in str(error)
    for wrong in ("oracle", "oracle,oracle", "a,b,c", ","):
        _, _, error = run_verb(str(folder / "r"), "--judges", wrong)
        assert "name two of the run's judges" in str(error), wrong


def test_a_judge_of_the_tested_family_is_warned_about_before_it_is_asked(folder: Path) -> None:
    command = ["judge", str(folder / "r"), "--judge", "oracle", "--systems", str(folder / "systems.yaml"), "--cache", "none"]
    result = CliRunner().invoke(app, command)  # all is judged already, so no server is needed
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0].startswith("warning: judge oracle and tested system toy are the same model (m)")
    rules = CliRunner().invoke(app, ["judge", str(folder / "r")])
    assert "warning" not in rules.stderr

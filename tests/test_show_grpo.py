"""A GRPO training in figures, tables, bubbles and a notebook."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.files import append_line
from anthrolab.judging.rubric import load_rubric
from anthrolab.loop.paired import Verdict
from anthrolab.show.figures import figure_html
from anthrolab.show.grpo import alarms_table, curves_figure, result_table, steps_table
from anthrolab.show.grpo_comparison import comparison_figure, comparison_table, quantities_table
from anthrolab.show.grpo_rollouts import rollouts_html, what_it_was_given
from anthrolab.show.grpo_settings import settings_of
from anthrolab.show.grpo_timeline import KINDS, lanes, timeline_figure, waiting_table
from anthrolab.show.grpo_view import RolloutView, TrainingView, read_rollouts, read_spans, read_training
from anthrolab.show.notebooks import NotebookError, run_notebooks
from anthrolab.show.tables import as_html
from anthrolab.training.grpo.compare import compare_runs
from anthrolab.training.grpo.timeline import Span
from anthrolab.training.grpo.watch import Alarm, WatchSettings, alarms
from anthrolab.training.settings import TrainingError
from tests.browser import open_page
from tests.grpo_for_tests import make_training

BY_HAND = [Span("generate", "wave 1", 0, 4), Span("partner", "d1", 4, 6), Span("generate", "wave 2", 5, 8), Span("judge", "d1", 6, 10),
           Span("judge", "d2", 9, 12), Span("reward", "step 1", 12, 12.5), Span("train", "step 1", 13, 20)]  # fmt: skip
RAISED = [Alarm(9, "chars", "characters ran off; read <b>some</b>"), Alarm(10, "distinct_2", "pairs ran off")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two finished trainings of 12 steps; the messages of the first grow from step 7 on, and its watch has raised two alarms."""
    root = tmp_path_factory.mktemp("runs")
    first = make_training(root / "full", hacked=True, watch=WatchSettings.of(window=3).model_dump())
    for alarm in RAISED:
        append_line(first / "alarms.jsonl", json.dumps(asdict(alarm)))
    return first, make_training(root / "legacy", ablation="legacy", gain=0.02, seed=2)


@pytest.fixture
def view(runs: tuple[Path, Path]) -> TrainingView:
    return read_training(runs[0])


def cells(table: Any) -> dict[str, str]:
    return dict(zip(table.frame["What"], table.frame["Value"], strict=True))


def test_the_curves_have_every_step_the_held_out_points_and_a_star_at_each_alarm(view: TrainingView) -> None:
    figure = curves_figure(view)
    by_name = {t.name: t for t in figure.data if t.name}
    assert list(by_name["mean reward"].x) == list(range(1, 13))
    assert list(by_name["mean reward"].y) == [r["reward"] for r in view.rows]
    assert list(by_name["held-out score"].x) == [0, 6, 12]
    assert by_name["held-out score"].customdata[1] == "10 of 12 cases have a score"
    assert {a.quantity for a in view.alarms} == {"chars", "distinct_2"}
    for alarm in view.alarms:
        star = by_name[f"alarm: {alarm.quantity}"]
        assert (list(star.x), list(star.customdata)) == ([alarm.step], [alarm.said])
    lines = [s for s in figure.layout.shapes if s.x0 == s.x1]
    assert len(lines) == 2 * len(view.alarms), "each alarm is a line at the reward and at its quantity"


def test_a_step_without_a_reward_is_a_gap_and_a_quantity_without_values_has_no_panel(view: TrainingView) -> None:
    rows = [dict(r) for r in view.rows]
    rows[3] |= {"reward": None, "reward_std": None}
    figure = curves_figure(replace(view, rows=rows, held_out={}, alarms=[]))
    mean = next(t for t in figure.data if t.name == "mean reward")
    assert mean.y[3] is None and mean.connectgaps is False
    titles = [a.text for a in figure.layout.annotations]
    assert "Characters a message" in titles
    assert not [t for t in titles if "rules judge" in t or "Held-out" in t]


def test_the_steps_table_has_every_step_and_only_columns_with_values(view: TrainingView) -> None:
    frame = steps_table(view).frame
    assert frame["Step"].to_list() == [str(i) for i in range(1, 13)]
    assert [i + 1 for i, n in enumerate(frame["Invalid"]) if n == "1"] == [3, 6, 9, 12]
    assert [i + 1 for i, n in enumerate(frame["No reward"]) if n == "1"] == [4, 8, 12]
    assert "Cost so far, USD" not in frame.columns
    rows = [{**r, "cost": 0.5 * r["step"], "reward": None} for r in view.rows]
    paid = steps_table(replace(view, rows=rows)).frame
    assert paid["Cost so far, USD"][11] == "6.0000" and "Reward" not in paid.columns


def test_the_cost_of_a_training_is_what_its_last_step_says(view: TrainingView) -> None:
    assert cells(result_table(view))["Cost"] == "–"
    rows = [{**r, "cost": 0.5 * r["step"]} for r in view.rows]
    assert cells(result_table(replace(view, rows=rows)))["Cost"] == "6.0000 USD"


def test_the_result_counts_what_had_no_reward_and_says_how_far_it_came(view: TrainingView) -> None:
    found = cells(result_table(view))
    assert found["Dialogues"] == "96, of which 4 invalid and 3 without a reward"
    assert found["Steps"] == "12, finished"
    rewards = [r["reward"] for r in view.rows]
    assert found["Mean reward, first and last 3 batches"] == f"{sum(rewards[:3]) / 3:.3f}, {sum(rewards[-3:]) / 3:.3f}"
    short = cells(result_table(replace(view, rows=view.rows[:4])))
    assert short["Mean reward, first and last 2 batches"] == f"{sum(rewards[:2]) / 2:.3f}, {sum(rewards[2:4]) / 2:.3f}", "the two do not overlap"
    assert "(step 0)" in found["Held-out score"] and "chars (step" in found["Alarms"]
    assert replace(view, manifest=view.manifest | {"steps_wanted": 20}).state == "stopped by the watch before its 20 steps"
    assert replace(view, manifest=view.manifest | {"finished": False}).state == "not finished"


def test_a_finished_training_that_goes_on_and_was_killed_is_not_finished(tmp_path: Path) -> None:
    run = make_training(tmp_path / "t", steps=3)
    assert read_training(run).state == "finished"
    (run / "checkpoints" / "checkpoint-3").mkdir(parents=True)
    assert read_training(run).state == "finished"
    (run / "checkpoints" / "checkpoint-4").mkdir()
    assert read_training(run).state == "not finished: it goes on after its 3 steps"
    longer = make_training(tmp_path / "u", steps=5)
    stopped = json.loads((longer / "manifest.json").read_text(encoding="utf-8")) | {"steps": 3, "steps_wanted": 8}
    (longer / "manifest.json").write_text(json.dumps(stopped), encoding="utf-8")
    assert read_training(longer).state == "not finished: it goes on after its 3 steps", "an alarm ended it, and it went on"


def test_the_alarms_shown_are_those_that_the_training_raised_with_its_own_watch(runs: tuple[Path, Path], tmp_path: Path) -> None:
    view = read_training(runs[0])
    assert (view.watch.window, list(view.alarms), view.as_raised) == (3, RAISED, True)
    table = alarms_table(view)
    assert table.frame["Step"].to_list() == ["9", "10"] and "&lt;b&gt;some" in as_html(table)
    quiet = read_training(make_training(tmp_path / "t", steps=2, watch=WatchSettings.of(level=0.01).model_dump()))
    assert (quiet.watch.level, list(quiet.alarms)) == (0.01, [])
    (tmp_path / "t" / "alarms.jsonl").write_text('{"step": 1}\n', encoding="utf-8")
    with pytest.raises(TrainingError, match=r"alarms\.jsonl: a line is no alarm .*restore the file"):
        read_training(tmp_path / "t")


@pytest.mark.parametrize("watch", [{}, {"watch": {"window": 5, "noise": 3.0, "stop": False}}])
def test_a_log_without_a_watch_of_this_version_is_looked_at_anew_and_that_is_said(tmp_path: Path, watch: dict[str, Any]) -> None:
    view = read_training(make_training(tmp_path / "t", steps=24, hacked=True, group=2, **watch))
    assert view.as_raised is False and view.watch == WatchSettings()
    assert view.alarms == alarms(view.rows, WatchSettings()) and {a.quantity for a in view.alarms} == {"chars", "distinct_2"}
    assert any("looked at anew" in note for note in alarms_table(view).notes)


def test_the_caption_of_the_watch_names_its_settings_and_no_others(view: TrainingView) -> None:
    caption = alarms_table(replace(view, watch=WatchSettings.of(window=4, least_change=0.45, level=0.02))).caption
    for said in ("for 4 in a row", "45% or more", "score of the rules judge: by 5", "at most 2% of trainings"):
        assert said in caption
    assert "the latest 4 against the first 4" in caption


def test_no_alarm_comes_with_what_could_have_been_seen(view: TrainingView) -> None:
    watch = WatchSettings()
    early = alarms_table(replace(view, watch=watch, alarms=[]))
    assert early.frame["Step"].to_list() == ["no alarm"]
    assert early.notes == ["Nothing could be seen yet: an alarm needs 14 batches with a reward; 12 are done. So no alarm says nothing."]
    rows = [{"step": i, "reward": 0.5, "chars": 10.0, "violations": 0.5, "distinct_2": 0.9 if i % 2 else 0.1} for i in range(1, 21)]
    seen, beyond = alarms_table(replace(view, watch=watch, rows=rows, alarms=[])).notes
    # no noise: 30% of 10 between the windows' middles, at the batch (16) that leaves a window to last: 3 * 20 / 11
    assert "over these 20 batches is found in about 80%" in seen and "characters a message +/-5.45 (first 10.00)" in seen
    assert "gate violations a dialogue +0.36 (first 0.50)" in seen
    assert beyond == "Could not be seen at all, as no change is large enough: share of distinct character pairs."


def test_a_training_under_way_is_shown_and_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    begun = make_training(tmp_path / "begun", steps=2, finished=False, held_out=[0])
    view = read_training(begun)
    assert (view.state, view.steps, list(view.held_out)) == ("not finished", [1, 2], [0])
    curves_figure(view)
    (begun / "log.jsonl").write_text("", encoding="utf-8")
    empty = read_training(begun)
    curves_figure(empty)
    assert cells(result_table(empty))["Steps"] == "0, not finished"
    assert steps_table(empty).frame["Step"].to_list() == ["none is done"]
    with pytest.raises(TrainingError, match="no step is done yet"):
        empty.step_or_last(0)
    with pytest.raises(TrainingError, match="holds no training"):
        read_training(tmp_path)
    (begun / "log.jsonl").write_text("nonsense\n", encoding="utf-8")
    with pytest.raises(TrainingError, match=r"log\.jsonl: a line cannot be read"):
        read_training(begun)


def test_the_shares_of_a_step_are_as_counted_by_hand() -> None:
    found = {lane.kind: lane for lane in lanes(BY_HAND)}
    assert [(k, v.spans, v.busy, v.alone) for k, v in found.items()] == [
        ("generate", 2, 7.0, 4.0), ("partner", 1, 2.0, 1.0), ("judge", 2, 6.0, 4.0), ("reward", 1, 0.5, 0.5), ("train", 1, 7.0, 7.0),
    ]  # fmt: skip
    assert found["judge"].beside_generation == 2.0
    # generation: 0-4 alone, 5-6 beside the partner, 6-8 beside the judge; the partner: 4-5 alone; the judge: 8-12 alone
    table = waiting_table(BY_HAND, 1)
    assert table.frame["Beside generation"].to_list() == ["–", "–", "33%", "0%", "0%"]
    assert table.notes == ["Nothing that is written down went on in 0.5 s (2%) of the step."]


SPANS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 50), st.integers(0, 20)).map(lambda v: Span(v[0], "x", v[1], v[1] + v[2])), max_size=14)


@settings(deadline=None)
@given(SPANS)
def test_work_alone_is_part_of_work_and_adds_up_to_no_more_than_the_step(spans: list[Span]) -> None:
    found = lanes(spans)
    seconds = {lane.kind: {t for s in spans if s.kind == lane.kind for t in range(int(s.start), int(s.end))} for lane in found}
    for lane in found:
        others = set().union(*(t for k, t in seconds.items() if k != lane.kind))
        chats = set().union(*(t for k, t in seconds.items() if k != lane.kind and k in ("generate", "partner")))
        assert lane.busy == len(seconds[lane.kind])
        assert lane.alone == len(seconds[lane.kind] - others)
        assert lane.beside_generation == len(seconds[lane.kind] & chats)


@settings(deadline=None, max_examples=15)
@given(SPANS)
def test_every_span_is_a_bar_and_no_two_bars_lie_on_each_other(spans: list[Span]) -> None:
    bars = [(y, b, b + x) for t in timeline_figure(spans).data for y, b, x in zip(t.y, t.base, t.x, strict=True)]
    assert sorted((b, e) for _, b, e in bars) == sorted((s.start, s.end) for s in spans)
    for i, (y, b, e) in enumerate(bars):
        for other_y, other_b, other_e in bars[i + 1 :]:
            assert y != other_y or min(e, other_e) <= max(b, other_b)


def test_a_step_without_a_timeline_says_so(view: TrainingView, tmp_path: Path) -> None:
    assert read_spans(replace(view, path=tmp_path), 1) == []
    assert waiting_table([], 1).frame["Work"].to_list() == ["nothing is written down of this step"]
    assert len(timeline_figure([]).data) == 0


def test_the_comparison_shows_every_pair_with_its_interval_and_marks_what_can_be_told(runs: tuple[Path, Path]) -> None:
    found = compare_runs(runs)
    frame = comparison_table(found).frame
    assert frame["Training"].to_list() == ["full", "legacy", "legacy"]
    assert frame["Against"].to_list() == ["its own step 0", "its own step 0", "full"]
    assert frame["Reward"].to_list() == ["full", "legacy", "legacy"]
    assert frame["Valid"].to_list() == ["11 to 10 of 12", "11 to 10 of 12", "10 to 10 of 12"]
    assert frame["Says"].to_list() == [p.verdict for p in found.pairs]
    assert frame["Difference"][0] == f"{found.gained[0].score.difference:+.1f}"
    others = quantities_table(found).frame
    assert others.columns[2:5] == ["accepted", "valid", "D1"] and others["D1"][0].endswith("*") and others["E5"][0] == "–"
    figure = comparison_figure(found)
    points = {t.y[0]: t for t in figure.data}
    assert points[0].x[0] == found.gained[0].score.difference
    assert points[0].x[0] + points[0].error_x.array[0] == pytest.approx(found.gained[0].score.high)
    assert points[0].x[0] - points[0].error_x.arrayminus[0] == pytest.approx(found.gained[0].score.low)


def test_the_colour_of_a_comparison_is_that_of_what_it_says(runs: tuple[Path, Path]) -> None:
    found = compare_runs(runs)
    said: list[Verdict] = ["better", "worse", "mixed", "not told apart"]
    up = replace(found.gained[0], verdict="better")
    colours = [comparison_figure(replace(found, gained=[replace(up, verdict=v)], against_first=[])).data[0].marker.color for v in said]
    assert len(set(colours)) == 4, "the same higher score, told in four ways"


def test_the_time_of_held_out_cases_is_a_column_where_it_is_known(view: TrainingView) -> None:
    assert "Held-out, s" not in steps_table(view).frame.columns
    rows = [{**r, "held_out_seconds": 40.0 if r["step"] == 1 else None} for r in view.rows]
    assert steps_table(replace(view, rows=rows)).frame["Held-out, s"].to_list() == ["40", *["–"] * 11]


def test_a_run_with_markup_in_its_name_is_shown_as_text(tmp_path: Path) -> None:
    run = make_training(tmp_path / "<b>x&y", steps=2)
    found = compare_runs([run])
    assert "&lt;b&gt;x&amp;y" in as_html(comparison_table(found)) and "<b>x" not in as_html(comparison_table(found))
    assert "&lt;b>x" in comparison_figure(found).data[0].name


def test_the_dialogues_of_a_step_stand_by_group_the_best_reward_first(view: TrainingView) -> None:
    rollouts = read_rollouts(view, 12)
    page = rollouts_html(rollouts, load_library(default_cards_dir()), load_rubric())
    assert page.count('<details class="dialogue"') == 8 and page.count('<details class="dialogue" open>') == 1
    assert page.index("Group 0: case b01-a") < page.index("Group 1: case")
    rewards = [r.reward["reward"] for r in rollouts if r.reward["group"] == 0]
    shown = [f"reward {x:.3f}" for x in sorted(rewards, reverse=True)]
    assert [page.index(text) for text in shown] == sorted(page.index(text) for text in shown)
    assert "reward 0.000 · advantage -" in page and "invalid (L0-05)" in page and "equals message 2" in page
    assert "the judge failed: no reward" in page


def test_what_a_dialogue_was_given_is_a_line() -> None:
    given = {"status": "scored", "reward": 0.5, "legacy": 0.55, "adaptive": 0.4, "advantage": -1.25, "s_D1": 1.0, "s_D2": 0.25, "s_D3": 0.5, "s_E5": None}
    assert what_it_was_given(given) == "reward 0.500 (legacy 0.550, adaptive 0.400) · advantage -1.25 · weakest: D2 0.25, D3 0.50"
    assert what_it_was_given(given | {"reward": None}) == "no reward: nothing of a group of dimensions was assessed"
    assert what_it_was_given(given | {"reward": None, "status": "judge_failed"}) == "the judge failed: no reward"


def test_model_text_is_escaped_and_failed_checkboxes_and_dialogues_not_had_are_shown(view: TrainingView) -> None:
    first, second, *_ = read_rollouts(view, 1)
    assert first.dialogue is not None
    said = first.dialogue.messages[1].model_copy(update={"content": "<script>alert(1)</script>"})
    chat = first.dialogue.model_copy(update={"messages": [first.dialogue.messages[0], said, *first.dialogue.messages[2:]]})
    boxes = [{"id": "D1.3", "passed": False, "reason": "<i>作文腔</i>"}]
    verdict = {"dialogue_id": chat.dialogue_id, "judge": "oracle", "judge_identity": "x", "rubric": "y", "dialogue": [],
               "turns": [{"turn_index": 1, "message_index": 1, "boxes": boxes}]}  # fmt: skip
    broken = {**second.reward, "dialogue_id": None, "status": "no_dialogue", "reward": None, "fault": "<unreachable>"}
    page = rollouts_html([replace(first, dialogue=chat, judged=first.judged | {"verdict": verdict}), RolloutView(None, {}, broken)], rubric=load_rubric())
    assert "<script>" not in page and "&lt;script&gt;alert(1)" in page
    assert "<b>D1.3</b>" in page and "&lt;i&gt;作文腔" in page
    assert "Rollout 1 could not be had: no reward (&lt;unreachable&gt;)" in page
    with pytest.raises(TrainingError, match="its verdict cannot be read"):
        rollouts_html([replace(first, judged={"verdict": {"judge": 3}})])


def test_of_very_many_dialogues_some_are_shown_and_the_rest_is_counted(view: TrainingView) -> None:
    page = rollouts_html(read_rollouts(view, 2), most=5)
    assert page.count('<details class="dialogue"') == 5 and "3 more dialogues are not shown." in page


def test_rollouts_that_are_not_there_or_damaged_are_refused_by_name(tmp_path: Path) -> None:
    view = read_training(make_training(tmp_path / "t", steps=2))
    with pytest.raises(TrainingError, match=r"0003\.jsonl: holds no rollouts of step 3"):
        read_rollouts(view, 3)
    with pytest.raises(TrainingError, match="has no step 3; done are 1 to 2"):
        view.step_or_last(3)
    assert (view.step_or_last(0), view.step_or_last(1)) == (2, 1)
    (tmp_path / "t" / "rollouts" / "0002.jsonl").unlink()
    assert (view.step_or_last(0), view.step_or_last(2)) == (1, 1), "step 2 learnt from the batch of step 1"
    (tmp_path / "t" / "rollouts" / "0002.jsonl").write_text('{"dialogue": {"messages": 3}}\n', encoding="utf-8")
    with pytest.raises(TrainingError, match=r"0002\.jsonl: a line cannot be read .*restore the file$"):
        read_rollouts(view, 2)


def test_other_settings_come_as_json_and_faults_are_named() -> None:
    found = settings_of('{"group": 8, "watch": {"window": 3}}', policy="p", out="o", reward=None)
    assert (found.group, found.watch.window, found.out) == (8, 3, Path("o"))
    assert settings_of("", policy="p", out="o", reward="r.json").reward == Path("r.json")
    assert settings_of("", policy="p", out="o", capability_from="runs/a").capability_from == Path("runs/a")
    for more, told in (("group=8", "more: is no JSON"), ("[8]", "more: holds no names"), ('{"policy": "q"}', "more: policy has a parameter of its own"),
                       ('{"group": "8"}', "group"), ('{"gruop": 8}', "gruop")):  # fmt: skip
        with pytest.raises(TrainingError, match=told):
            settings_of(more, policy="p", out="o")


def test_figures_tables_and_dialogues_open_in_a_browser_without_a_fault(runs: tuple[Path, Path], view: TrainingView, tmp_path: Path) -> None:
    from plotly.offline import get_plotlyjs

    found, spans = compare_runs(runs), read_spans(view, 12)
    parts = [
        figure_html(curves_figure(view), "curves"), figure_html(timeline_figure(spans), "timeline"), figure_html(comparison_figure(found), "comparison"),
        *(as_html(t) for t in (result_table(view), alarms_table(view), waiting_table(spans, 12), comparison_table(found), quantities_table(found))),
        rollouts_html(read_rollouts(view, 12), load_library(default_cards_dir())),
    ]  # fmt: skip
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><script>{get_plotlyjs()}</script>" + "".join(parts), encoding="utf-8")
    with open_page(page) as (shown, log):
        assert (log.errors, log.console, log.dialogs) == ([], [], [])
        assert [r for r in log.requests if not r.startswith(("file:", "data:", "blob:"))] == []
        assert shown.locator("#curves .subplot").count() == 7
        assert shown.locator("#timeline .bars .point").count() == len(spans)
        assert shown.locator("#comparison .scatterlayer .point").count() == 3
        second = shown.locator("details.dialogue").nth(1)
        assert not second.locator(".bubble").first.is_visible()
        second.locator("summary").first.click()
        assert second.locator(".bubble").first.is_visible()
        boxes = [b for t in shown.locator("#curves .annotation-text").all() if (b := t.bounding_box())]
        assert len(boxes) == 7
        for i, one in enumerate(boxes):
            for other in boxes[i + 1 :]:
                beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
                assert beside or abs(one["y"] - other["y"]) > one["height"], "a title lies on another"


def test_notebook_09_shows_a_finished_training_and_compares_it(runs: tuple[Path, Path]) -> None:
    lines: list[str] = []
    (made,) = run_notebooks(["09"], runs[0], ["show_only=true", f"compare_with={runs[1]}", "shown_step=6"], progress=lines.append)
    text = "\n".join(lines)
    assert "full: 12 steps, finished" in text and "gates failed: 0 of 1" in text and "dialogues without a reward: 3 of 96" in text
    assert "full against its own step 0: better" in text and "legacy against full: worse" in text
    outputs = json.dumps([c.get("outputs", []) for c in nbformat.read(made, as_version=4).cells], ensure_ascii=False)
    for word in ("Held-out score", "Reward-hacking watch", "Step 6, ", "Who waits for whom", "Trainings compared", "Group 1: case"):
        assert word in outputs, word


def test_notebook_09_stops_where_a_setting_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="steps"):
        run_notebooks(["09"], tmp_path / "t", ["steps=0"], progress=lambda _: None)
    with pytest.raises(NotebookError, match="shown_step: 40 is no step of 15"):
        run_notebooks(["09"], tmp_path / "t", ["shown_step=40"], progress=lambda _: None)
    assert not (tmp_path / "t" / "manifest.json").exists()


@pytest.mark.parametrize(("change", "said"), [({"reward": "high"}, "reward is 'high'"), ({"tokens": None}, "tokens is None"), ({"step": True}, "step is True")])
def test_a_log_row_whose_numbers_are_none_is_named(change: dict[str, object], said: str, tmp_path: Path) -> None:
    run = make_training(tmp_path / "run", steps=3)
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), **change})
    (run / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(TrainingError, match=rf"line 2: {said}"):
        read_training(run)

"""The filter's figures, the simulator panel, its page in a browser, and notebook 10 in a real JupyterLab."""

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import polars as pl
import pytest

from anthrolab.files import append_line
from anthrolab.judging.rubric import load_rubric
from anthrolab.show.kalman import (
    filter_table,
    gain_figure,
    last_table,
    study_table,
    trajectory_figure,
    weights_figure,
    widths_table,
)
from anthrolab.show.kalman_data import Trajectory, named_trajectories, read_trajectories, read_trajectory
from anthrolab.show.kalman_page import FLOORS, REWARDS, SIGMAS, simulator_data, write_kalman_page
from anthrolab.show.kalman_simulator import PLOTLY, KalmanSimulator, show_simulation, simulation_figure, still, ys
from anthrolab.show.notebooks import NotebookError, run_notebooks
from anthrolab.show.tables import as_html
from anthrolab.training.checkpoints import read_log
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.closed_forms import steady
from anthrolab.training.reward.settings import PAPER, RewardSettings, write_reward_settings
from anthrolab.training.reward.study import compare, scenes, variants, widths
from anthrolab.training.settings import TrainingError
from tests.browser import open_page
from tests.grpo_for_tests import make_training
from tests.jupyter_for_tests import jupyter_lab, open_notebook

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "10_kalman.ipynb"
RUBRIC = load_rubric()
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = tmp_path_factory.mktemp("trainings")
    return [make_training(made / "full"), make_training(made / EVIL, ablation="deficit_only", seed=2)]


@pytest.fixture(scope="module")
def trained(folders: list[Path]) -> list[Trajectory]:
    return read_trajectories(folders)


@pytest.fixture(scope="module")
def page(trained: list[Trajectory], tmp_path_factory: pytest.TempPathFactory) -> Path:
    scene = scenes(RUBRIC)[1]
    measured = compare(scene, Dimensions.of(RUBRIC), {name: variants()[name] for name in ("legacy", "full")}, range(2))
    return write_kalman_page(trained, tmp_path_factory.mktemp("page") / "kalman.html", RUBRIC, {scene: measured}, seeds=2)


def test_a_training_is_read_as_it_was_written(folders: list[Path], trained: list[Trajectory]) -> None:
    rows, t = read_log(folders[0] / "capability.jsonl"), trained[0]
    assert (t.name, t.steps, t.settings) == ("full", tuple(range(13)), PAPER)
    assert t.theta[7, 2] == rows[7]["theta"]["D3"] and t.P[7, 2] == rows[7]["P"]["D3"] and t.gain[7, 2] == rows[7]["gain"]["D3"]
    assert np.isnan(t.mean[0]).all() and np.isnan(t.theta[:, 9]).all(), "nothing is seen before the first step, and E5 never"
    rewards = pl.read_parquet(folders[0] / "rewards" / "0005.parquet")
    assert t.alpha[5, 0] == pytest.approx(rewards["alpha_D1"].drop_nulls().mean())
    np.testing.assert_allclose(t.alpha[1:, :5].sum(axis=1), 1)


def test_a_training_without_kept_rewards_has_no_weights(folders: list[Path], tmp_path: Path) -> None:
    for name in ("capability.jsonl", "manifest.json"):
        (tmp_path / name).write_bytes((folders[0] / name).read_bytes())
    assert np.isnan(read_trajectory(tmp_path).alpha).all()


def test_what_is_no_training_is_refused_by_name(folders: list[Path], tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"capability\.jsonl: no such file"):
        read_trajectory(tmp_path)
    append_line(tmp_path / "capability.jsonl", json.dumps({"step": 0, "theta": {"X1": 0.5}, "P": {"X2": 0.1}, "mean": None, "noise": None, "gain": None, "count": None}))
    with pytest.raises(TrainingError, match=r"manifest\.json: holds no reward settings"):
        read_trajectory(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({"reward": {}}))
    with pytest.raises(TrainingError, match="not the file of a capability filter"):
        read_trajectory(tmp_path)
    row = {"step": 0, "theta": {"X1": 0.5}, "P": {"X1": 0.1}, "mean": None, "noise": None, "gain": None, "count": None}
    (tmp_path / "capability.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(TrainingError, match="has the dimensions X1, and full D1"):
        read_trajectories([folders[0], tmp_path])


def test_a_damaged_line_and_settings_that_do_not_hold_name_their_file(folders: list[Path], tmp_path: Path) -> None:
    for name in ("capability.jsonl", "manifest.json"):
        (tmp_path / name).write_bytes((folders[0] / name).read_bytes())
    lines = (tmp_path / "capability.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "capability.jsonl").write_text("".join([lines[0], '{"step": 1, "theta"\n', *lines[2:]]))
    with pytest.raises(TrainingError, match=r"capability\.jsonl: not the file of a capability filter \(JSONDecodeError"):
        read_trajectory(tmp_path)
    (tmp_path / "capability.jsonl").write_text("".join(lines))
    (tmp_path / "manifest.json").write_text(json.dumps({"reward": {"sigma": -1.0}}))
    with pytest.raises(TrainingError, match=r"manifest\.json: reward\.sigma"):
        read_trajectory(tmp_path)


def test_a_folder_that_is_named_has_to_be_a_training_except_the_usual_one_before_it_is_begun(
    folders: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert named_trajectories("") == [] == named_trajectories("runs/grpo")
    (tmp_path / "runs" / "grpo" / "notebooks").mkdir(parents=True)
    assert named_trajectories("runs/grpo") == [], "the runner puts this notebook's executed copy there"
    assert [t.name for t in named_trajectories("runs/grpo", f"{folders[0]}, ")] == ["full"]
    assert [t.name for t in named_trajectories(str(folders[1]), str(folders[0]))] == [EVIL, "full"]
    (tmp_path / "runs" / "other" / "notebooks").mkdir(parents=True)
    (tmp_path / "runs" / "grpo" / "first").mkdir()
    for named in ("runs/not-there", "runs/other", "runs/grpo"):
        with pytest.raises(TrainingError, match=rf"{named}.capability\.jsonl: no such file"):
            named_trajectories(named)
    with pytest.raises(TrainingError, match="nowhere"):
        named_trajectories("", "nowhere")


def test_trainings_of_one_name_are_told_apart(folders: list[Path], tmp_path: Path) -> None:
    again = make_training(tmp_path / "full", steps=2)
    assert len({t.name for t in read_trajectories([folders[0], again])}) == 2


def test_the_bands_and_batch_means_are_those_of_the_filter(trained: list[Trajectory]) -> None:
    t, figure = trained[0], trajectory_figure(trained[:1])
    assert len(figure.data) == 3 * 9, "E5 was never assessed and has an empty panel"
    band, points, line = figure.data[6:9]
    half = 1.96 * np.sqrt(t.P[:, 2])
    np.testing.assert_allclose(band.y[:13], np.minimum(t.theta[:, 2] + half, 1), atol=1e-4)
    np.testing.assert_allclose(band.y[13:][::-1], np.maximum(t.theta[:, 2] - half, 0), atol=1e-4)
    np.testing.assert_allclose(points.y[1:], t.mean[1:, 2], atol=1e-4)
    np.testing.assert_allclose(line.y, t.theta[:, 2], atol=1e-4)
    assert points.y[0] is None


def test_several_trainings_lie_over_each_other_in_their_colours(trained: list[Trajectory]) -> None:
    for figure in (trajectory_figure(trained), gain_figure(trained), weights_figure(trained, Dimensions.of(RUBRIC))):
        shown = {trace.name for trace in figure.data if trace.showlegend}
        assert {"full", EVIL.replace("<", "&lt;")} <= shown
        assert len({trace.line.color for trace in figure.data if trace.name in shown and trace.mode == "lines"}) >= 2


def test_names_of_dimensions_are_shown_as_they_are(trained: list[Trajectory]) -> None:
    title = trajectory_figure(trained[:1], {"D1": "<i>x</i> y"}).layout.annotations[0].text
    assert title == "D1 &lt;i>x&lt;/i> y"


def test_the_gain_figure_marks_where_the_gain_comes_to_rest_and_the_floor(trained: list[Trajectory]) -> None:
    dashed = [trace.y[0] for trace in gain_figure(trained[:1]).data if trace.line.dash == "dash"]
    assert dashed == [steady().gain, PAPER.R_floor]


def test_the_tables_escape_and_count(trained: list[Trajectory]) -> None:
    table = last_table(trained)
    assert EVIL not in as_html(table) and "&lt;img" in as_html(table)
    assert table.frame.filter(pl.col("Dimension") == "E5")["Steps with a score"].to_list() == ["0", "0"]
    scene = scenes(RUBRIC)[0]
    measured = compare(scene, Dimensions.of(RUBRIC), {name: variants()[name] for name in ("legacy", "full")}, range(2))
    rows = study_table(scene, measured, 2).frame
    mean, full = (next(m for m in measured if (m.variant, m.quantity) == (v, "mean ability")) for v in ("legacy", "full"))
    assert rows["Mean ability"][0] == f"{100 * mean.mean:.1f}"
    assert rows["Mean ability"][1].startswith(f"{100 * full.difference:+.2f} ({100 * full.difference_low:+.2f} to ")


def test_the_filter_and_the_widths_stand_in_tables_with_what_was_measured() -> None:
    scene = scenes(RUBRIC)[5]
    measured = compare(scene, Dimensions.of(RUBRIC), widths(PAPER, "0.1") | {"full": PAPER}, range(2))
    of = {(m.variant, m.quantity): m for m in measured}
    (row,) = filter_table({scene: measured}, 2).frame.to_dicts()
    theta, falls = of["full", "error of theta"], of["full", "more score, less reward"].mean
    assert row["World"] == "noisy judge" and row["theta"] == f"{theta.mean:.4f} ({theta.low:.4f} to {theta.high:.4f})"
    assert row["batch mean"].startswith(f"{of['full', 'error of batch mean'].mean:.4f} (")
    assert row["Band holds"] == f"{100 * of['full', 'band holds'].mean:.1f}%"
    assert row["Less adaptive"] == f"{100 * of['full', 'more score, less adaptive'].mean:.2f}%" and row["Less reward"] == f"{100 * falls:.3f}%" and falls > 0
    rows = {r["Reward"]: r for r in widths_table(scene, measured, 2).frame.to_dicts()}
    assert list(rows) == ["legacy", "deficit_only", "full, sigma 0.1", "full"]
    assert rows["full, sigma 0.1"]["Less reward"] == f"{100 * of['full, sigma 0.1', 'more score, less reward'].mean:.3f}%" != row["Less reward"]
    assert rows["legacy"]["Less reward"] == "0.000%" and rows["full"]["Early pull on weak"].startswith(f"{100 * of['full', 'pull on weak, early'].difference:+.2f} (")


def test_the_simulator_draws_what_was_simulated() -> None:
    shown = show_simulation(scenes(RUBRIC)[1], "full", RUBRIC, seed=3)
    figure, values = simulation_figure(shown), ys(shown)
    assert len(figure.data) == len(values) == 5 * 10 + 2
    truth = next(trace for trace in figure.data if trace.name == "true ability")
    np.testing.assert_allclose(truth.y, shown.run.ability[:, 0], atol=1e-4)
    np.testing.assert_allclose(figure.data[-1].y, shown.run.pressure.mean(axis=0), atol=1e-4)
    assert all(len(trace.x) == len(trace.y) for trace in figure.data)


def test_every_control_of_the_panel_changes_the_figure() -> None:
    panel = KalmanSimulator(RUBRIC)
    for name, value in (("R_floor", 0.005), ("Q", 0.02), ("sigma", 0.6), ("judge_noise", 1.5), ("step_noise", 0.8), ("seed", 7)):
        before = json.dumps(panel.out.outputs[0]["data"][PLOTLY])
        panel.controls[name].value = value
        assert json.dumps(panel.out.outputs[0]["data"][PLOTLY]) != before, name
    panel.scene.value = "noisy judge"
    assert (panel.controls["judge_noise"].value, panel.controls["step_noise"].value) == (1.0, 0.5), "a scene brings its judge"
    panel.variant.value = "static"
    assert "theta does not move" in panel.said.value


OWN = RewardSettings.of(ablation="zpd_only", epsilon=0.0, sigma=0.02, R_floor=2.0, Q=0.5)
"""Valid, and outside of all the stops there were."""


def test_the_panel_begins_with_the_settings_own_values() -> None:
    panel = KalmanSimulator(RUBRIC, OWN)
    assert panel.variant.value == "zpd_only" and {n: panel.controls[n].value for n in ("sigma", "R_floor", "Q")} == {"sigma": 0.02, "R_floor": 2.0, "Q": 0.5}
    assert panel.shown.settings == OWN and "epsilon is 0" not in panel.said.value
    panel.variant.value = "full"
    assert panel.shown.settings.epsilon == 0.01 and "epsilon is 0 in the settings; this reward needs one, so it is 0.01 here" in panel.said.value
    assert KalmanSimulator(RUBRIC, RewardSettings.of(Q=0.0)).shown.settings.Q == 0, "a filter that comes to a stop"


def test_the_page_begins_with_the_settings_own_values(tmp_path: Path) -> None:
    out = write_kalman_page([], tmp_path / "own.html", RUBRIC, settings=OWN)
    own = show_simulation(scenes(RUBRIC)[0], "zpd_only", RUBRIC, OWN, seed=1)
    with open_page(out) as (p, log):
        shown = {name: p.locator(f"#kalman-{name}-said").text_content() for name in ("floor", "sigma")}
        assert shown == {"floor": "2", "sigma": "0.02"} and p.locator("#kalman-reward").input_value() == "zpd_only"
        np.testing.assert_allclose(p.evaluate("document.getElementById('simulated').data[2].y"), own.run.theta[:41, 0], atol=6e-4)
        p.locator("#kalman-reward").select_option("static")
        assert "epsilon is 0 in the settings" in p.locator("#kalman-said").inner_text()
        for key in ("Home", "End"):
            for name in ("sigma", "floor"):
                p.locator(f"#kalman-{name}").press(key)
            assert p.evaluate("document.getElementById('simulated').data[2].y").count(None) == 0, "every stop has its frame"
        assert p.locator("#kalman-sigma-said").text_content() == "0.65" and log.errors == []


def test_a_rubric_of_other_dimensions_has_its_scenes_too() -> None:
    small = RUBRIC.model_copy(update={"dimensions": [d.model_copy(update={"id": f"X{i}"}) for i, d in enumerate(RUBRIC.dimensions[3:7])]})
    panel = KalmanSimulator(small)
    for name in panel.scenes:
        panel.scene.value = name
        assert panel.shown.run.ids == ("X0", "X1", "X2", "X3") and panel.shown.scene.weak
    first, data = simulator_data(small)
    assert first.run.ability.shape == (41, 4) and len(json.loads(data)["frames"]) == 6 * len(FLOORS) * 11


def test_the_rubrics_weights_give_way_to_those_of_the_settings() -> None:
    other = RewardSettings.of(rho={d.id: 1.0 for d in RUBRIC.dimensions})
    one, two = (show_simulation(scenes(RUBRIC)[0], "full", RUBRIC, s).run.alpha for s in (PAPER, other))
    assert not np.allclose(one, two)


def test_without_a_kernel_the_panel_is_a_drawing() -> None:
    panel = KalmanSimulator(RUBRIC)
    html = panel._repr_mimebundle_()["text/html"]
    assert html == still(panel.shown, RUBRIC)
    assert html.count("<svg") == 10 and html.count("<polyline") == 30 and "gain 0.181" in html


def test_the_page_moves_without_a_kernel_and_asks_for_nothing(page: Path) -> None:
    with open_page(page, width=1300) as (p, log):
        y = "document.getElementById('simulated').data[2].y.join()"
        seen = {p.evaluate(y)}
        said = p.locator("#kalman-said").inner_text()
        assert "gain 0.181" in said
        p.locator("#kalman-floor").focus()
        p.keyboard.press("ArrowLeft")
        p.wait_for_function(f"document.getElementById('kalman-floor-said').textContent === '{FLOORS[0]}'")
        assert p.evaluate(y) not in seen, "theta follows otherwise"
        assert "gain 0.181" not in p.locator("#kalman-said").inner_text()
        p.locator("#kalman-scene").select_option("far below")
        assert p.locator("#simulated .infolayer").get_by_text("D3 (weak)").count() == 1
        assert p.locator("#simulated .infolayer").get_by_text("E4 (weak)").count() == 0
        p.locator("#kalman-sigma").focus()
        before = p.evaluate("JSON.stringify(document.getElementById('simulated').data.map(t => t.y))")
        p.keyboard.press("ArrowRight")
        p.wait_for_function(f"document.getElementById('kalman-sigma-said').textContent === '{SIGMAS[2]}'")
        assert p.evaluate("JSON.stringify(document.getElementById('simulated').data.map(t => t.y))") != before
        for reward in REWARDS:
            p.locator("#kalman-reward").select_option(reward)
        assert p.locator("#kalman-sigma").is_disabled(), "sigma is not in the legacy reward"
        assert p.locator("img").count() == 0 and log.dialogs == [] and log.errors == [] and log.console == []
        assert [r for r in log.requests if not r.startswith(("file:", "data:", "blob:"))] == []


def test_the_page_and_the_panel_agree(page: Path) -> None:
    """Both simulate with the same seed; the page stops after 40 steps."""
    panel = KalmanSimulator(RUBRIC)
    with open_page(page) as (p, _):
        on_page = p.evaluate("document.getElementById('simulated').data[2].y")
    np.testing.assert_allclose(on_page, panel.shown.run.theta[:41, 0], atol=6e-4)


def test_the_same_trainings_give_the_same_page(page: Path, trained: list[Trajectory], tmp_path: Path) -> None:
    one = write_kalman_page([], tmp_path / "one.html", RUBRIC).read_bytes()
    assert one == write_kalman_page([], tmp_path / "two.html", RUBRIC).read_bytes()
    assert b"Trainings" not in one and b"Trainings" in page.read_bytes()


def _notebook(folder: Path, **values: str) -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    for name, value in values.items():
        text, done = re.subn(rf"({name}: \w+ = )(\\\"[^\"]*\\\"|\d+)", lambda m, v=value: m.group(1) + v, text)
        assert done == 1, name
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / NOTEBOOK.name).write_text(text, encoding="utf-8")


def _theta(page: Any) -> str:
    return str(page.evaluate("JSON.stringify(document.querySelector('.al-kalman .js-plotly-plot').data[2].y)"))


def test_in_jupyterlab_a_slider_moves_and_the_figure_changes(tmp_path: Path) -> None:
    """There is no training here: the simulator stands alone."""
    _notebook(tmp_path, seeds="2")
    with jupyter_lab(tmp_path) as address, open_notebook(address, f"notebooks/{NOTEBOOK.name}", height=1400) as (page, log):
        page.wait_for_selector(".al-kalman .js-plotly-plot .main-svg", timeout=120_000)
        page.wait_for_selector("text=page: reports/grpo/kalman.html", timeout=300_000)  # a panel waits while its kernel is at later cells
        assert page.get_by_text("trainings: none (no training in runs/grpo yet): only the simulator is shown").count() == 1
        handle = page.locator(".al-r-floor .noUi-handle")
        handle.scroll_into_view_if_needed()
        before, said = _theta(page), page.locator(".al-kalman .al-said").text_content() or ""
        handle.focus()
        for _ in range(8):
            page.keyboard.press("ArrowLeft")
        changed = "was => { const p = document.querySelector('.al-kalman .js-plotly-plot'); return p && p.data && JSON.stringify(p.data[2].y) !== was; }"
        page.wait_for_function(changed, arg=before, timeout=60_000)
        page.wait_for_function("was => document.querySelector('.al-kalman .al-said').textContent !== was", arg=said)
        assert "gain 0.181" in said and "gain 0.181" not in (page.locator(".al-kalman .al-said").text_content() or "")
        assert log.errors == [] and log.dialogs == []
        assert [r for r in log.requests if not r.startswith((address, "data:", "blob:"))] == []
    assert (tmp_path / "reports" / "grpo" / "kalman.html").is_file()


def test_notebook_10_runs_headless_over_two_trainings(folders: list[Path], tmp_path: Path) -> None:
    lines: list[str] = []
    out = tmp_path / "out"
    (made,) = run_notebooks(["10"], folders[0], [f"run_dirs={folders[1]}", "seeds=2", "sigmas=0.65", f"out={out}"], progress=lines.append)
    text = "\n".join(lines)
    assert "full: 12 steps, reward full, 1 of 10 dimensions never assessed" in text
    assert "reward deficit_only" in text and "gain of weak, full against legacy" in text
    assert "1/48, about " in text and "9/9" not in text and "6/6: far below, full, sigma 0.65" in text
    page = (out / "kalman.html").read_text()
    assert "Simulated widths of the match: far below" in page and "Simulated: theta against the true ability" in page
    cells = nbformat.read(made, as_version=4).cells
    figures = [o for c in cells if c.cell_type == "code" for o in c.outputs if PLOTLY in o.get("data", {})]
    assert len(figures) == 3, "estimates, gain, weights"
    assert any("<svg" in str(o.get("data", {}).get("text/html", "")) for c in cells if c.cell_type == "code" for o in c.outputs), "the panel without a kernel"


def test_notebook_10_takes_any_settings_that_notebook_08_may_write(tmp_path: Path) -> None:
    """No training has been begun: the runner has made its folder by the time the notebook looks."""
    _notebook(tmp_path)
    write_reward_settings(tmp_path / "reward.json", OWN)
    lines: list[str] = []
    run_notebooks(["10"], tmp_path / "runs" / "grpo", ["reward_file=reward.json", "seeds=2"], notebooks_dir=tmp_path / "notebooks", progress=lines.append)
    text = "\n".join(lines)
    assert "trainings: none (no training in runs/grpo yet): only the simulator is shown" in text
    assert "epsilon is 0 in the settings; these rewards need one and have 0.01: full; deficit_only; static; full, alone; deficit_only, alone" in text
    with pytest.raises(NotebookError, match=r"capability\.jsonl: no such file"):
        run_notebooks(["10"], tmp_path / "runs" / "other", ["seeds=2"], notebooks_dir=tmp_path / "notebooks", progress=lines.append)

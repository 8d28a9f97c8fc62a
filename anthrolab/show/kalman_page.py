"""The capability filter as one page that opens offline: trainings, the simulator in precomputed settings, what a study found."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from anthrolab.files import write_atomic
from anthrolab.judging.rubric import Rubric
from anthrolab.show.figures import figure_html
from anthrolab.show.kalman import (
    filter_table,
    gain_figure,
    last_table,
    study_table,
    trajectory_figure,
    weights_figure,
    widths_table,
)
from anthrolab.show.kalman_data import Trajectory
from anthrolab.show.kalman_simulator import Shown, said, simulation_figure, with_own, ys
from anthrolab.show.pages import asset, environment
from anthrolab.show.tables import as_html
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.settings import PAPER, RewardSettings
from anthrolab.training.reward.simulation import simulate
from anthrolab.training.reward.study import BASELINE, LEAST_EPSILON, Measured, Scene, changed, scenes, variants

REWARDS = ("full", "deficit_only", "zpd_only", "static", "legacy")
FLOORS = (0.002, 0.05, 0.2)
SIGMAS = (0.1, 0.25, 0.65)
"""What the page's sliders reach, beside the settings' own values."""
WITHOUT_SIGMA = ("legacy", "deficit_only")
SEED = 1
STEPS = 40


def write_kalman_page(
    trajectories: Sequence[Trajectory], out: Path, rubric: Rubric, studies: Mapping[Scene, Sequence[Measured]] | None = None,
    widths: Mapping[Scene, Sequence[Measured]] | None = None, *, seeds: int = 0, settings: RewardSettings = PAPER,
) -> Path:  # fmt: skip
    """Write trainings (may be none), the simulator, which begins with `settings`, and the comparisons of `study.compare` over `seeds`
    seeds to the file `out`; returns its path. studies: of `study.variants`; widths: of `study.widths`. The same inputs give the same
    bytes."""
    from plotly.offline import get_plotlyjs

    names = {d.id: d.name for d in rubric.dimensions}
    figures = [
        Markup(figure_html(f, f"figure-{n}"))
        for n, f in enumerate(
            (trajectory_figure(trajectories, names), gain_figure(trajectories), weights_figure(trajectories, Dimensions.of(rubric, settings.rho), names)) if trajectories else ()
        )
    ]  # fmt: skip
    first, data = simulator_data(rubric, settings)
    floors, sigmas = with_own(FLOORS, settings.R_floor), with_own(SIGMAS, settings.sigma)
    tables = [filter_table(studies, seeds)] if studies else []
    tables += [study_table(s, m, seeds) for s, m in (studies or {}).items()] + [widths_table(s, m, seeds) for s, m in (widths or {}).items()]
    lifted = [name for name, chosen in variants(settings).items() if chosen.epsilon != settings.epsilon]
    page = environment().get_template("kalman.html").render(
        title=f"anthrolab capability filter: {', '.join(t.name for t in trajectories) or 'simulated'}", css=Markup(asset("report.css")), plotly=Markup(get_plotlyjs()),
        figures=figures, last=Markup(as_html(last_table(trajectories))) if trajectories else "", simulated=Markup(figure_html(simulation_figure(first), "simulated")),
        first=Markup(said(first, rubric)), data=Markup(data), js=Markup(asset("kalman.js")), scenes=[s.name for s in scenes(rubric)], rewards=REWARDS,
        floors=[f"{v:g}" for v in floors], sigmas=[f"{v:g}" for v in sigmas], floor=floors.index(settings.R_floor), sigma=sigmas.index(settings.sigma), reward=settings.ablation,
        lifted=lifted, epsilon=LEAST_EPSILON, tables=[Markup(as_html(table)) for table in tables],
    )  # fmt: skip
    write_atomic(out, page)
    return out


def simulator_data(rubric: Rubric, settings: RewardSettings = PAPER) -> tuple[Shown, str]:
    """The setting that the page begins with, and all that its sliders reach, as JSON that may stand in a script element: {"frames":
    {"scene|reward|place of R_floor|place of sigma": [y of every trace]}, "said": the same keys, HTML, "weak"}. Rewards without a ZPD
    match have sigma's place 0 only, whatever sigma is."""
    dimensions = Dimensions.of(rubric, settings.rho)
    floors, sigmas = with_own(FLOORS, settings.R_floor), with_own(SIGMAS, settings.sigma)
    frames: dict[str, Any] = {}
    words: dict[str, str] = {}
    first: Shown | None = None
    for scene in scenes(rubric):
        short = replace(scene, world=replace(scene.world, steps=STEPS))
        for i, floor in enumerate(floors):
            legacy = simulate(short.world, dimensions, changed(settings, BASELINE, R_floor=floor), SEED)
            for reward in REWARDS:
                for j, sigma in enumerate((settings.sigma,) if reward in WITHOUT_SIGMA else sigmas):
                    key = f"{scene.name}|{reward}|{i}|{j}"
                    chosen = changed(settings, reward, R_floor=floor, sigma=sigma)
                    run = legacy if reward == BASELINE else simulate(short.world, dimensions, chosen, SEED)
                    shown = Shown(short, reward, chosen, run, legacy, chosen.epsilon != settings.epsilon)
                    frames[key], words[key] = [[None if v is None else round(v, 3) for v in y] for y in ys(shown)], said(shown, rubric)
                    if first is None and (reward, floor, sigma) == (settings.ablation, settings.R_floor, settings.sigma):
                        first = shown
    assert first is not None, "the page begins with a setting that it has"
    weak = {s.name: list(s.weak) for s in scenes(rubric)}
    text = json.dumps({"frames": frames, "said": words, "weak": weak, "without_sigma": WITHOUT_SIGMA, "ids": list(dimensions.ids)}, separators=(",", ":"))
    return first, text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

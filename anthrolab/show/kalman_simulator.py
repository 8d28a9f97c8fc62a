"""The simulator panel: a synthetic learner, its filter and its reward, redrawn as the sliders move."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import ipywidgets as w  # type: ignore[import-untyped]
import numpy as np
from markupsafe import Markup

from anthrolab.judging.rubric import Rubric
from anthrolab.show.figures import STRONG
from anthrolab.show.kalman import Z, numbers, panels
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.closed_forms import least_sigma, steady
from anthrolab.training.reward.settings import PAPER, RewardSettings
from anthrolab.training.reward.simulation import Simulated, simulate
from anthrolab.training.reward.study import BASELINE, SETTLED, Scene, scenes, variants

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

PLOTLY = "application/vnd.plotly.v1+json"
R_FLOORS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
QS = (0.0, 0.00001, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
SIGMAS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 1.0, 1.2)
"""Stops of the sliders; the settings' own values come to them."""


@dataclass(frozen=True)
class Shown:
    """One setting of the simulator: the training, and the same one (same draws) with the rubric's weights alone. `lifted`: epsilon is 0 in
    the settings that were given, and was lifted for this variant."""

    scene: Scene
    variant: str
    settings: RewardSettings
    run: Simulated
    legacy: Simulated
    lifted: bool = False


def show_simulation(scene: Scene, variant: str, rubric: Rubric, settings: RewardSettings = PAPER, seed: int = 0) -> Shown:
    """Simulate a scene with a variant of the reward (study.variants) and with the legacy reward."""
    dimensions, chosen = Dimensions.of(rubric, settings.rho), variants(settings)
    legacy = simulate(scene.world, dimensions, chosen[BASELINE], seed)
    run = legacy if variant == BASELINE else simulate(scene.world, dimensions, chosen[variant], seed)
    return Shown(scene, variant, chosen[variant], run, legacy, chosen[variant].epsilon != settings.epsilon)


def with_own(stops: tuple[float, ...], own: float) -> tuple[float, ...]:
    """Stops of a slider with the settings' own value among them."""
    return tuple(sorted({*stops, own}))


def ys(shown: Shown) -> list[list[float | None]]:
    """The y values of every trace of `simulation_figure`, in its order."""
    run, half = shown.run, Z * np.sqrt(shown.run.P)
    upper, lower = np.minimum(run.theta + half, 1), np.maximum(run.theta - half, 0)
    found = []
    for k in range(len(run.ids)):
        found += [
            numbers([*upper[:, k], *lower[::-1, k]]), numbers(run.mean[:, k]), numbers(run.theta[:, k]), numbers(run.ability[:, k]),
            numbers(shown.legacy.ability[:, k]),
        ]  # fmt: skip
    return [*found, numbers(shown.legacy.pressure.mean(axis=0)), numbers(run.pressure.mean(axis=0))]


def simulation_figure(shown: Shown) -> "Figure":
    """Estimate, band, batch means and true ability of every dimension, and how hard the reward pulled at each."""
    ids, steps = shown.run.ids, list(range(len(shown.run.theta)))
    figure, place = panels([f"{i} (weak)" if i in shown.scene.weak else i for i in ids], more_rows=1)
    values = iter(ys(shown))
    blue, orange = STRONG[1], STRONG[0]
    for k in range(len(ids)):
        row, column = place(k)
        at: dict[str, Any] = {"row": row, "col": column, "showlegend": k == 0}
        figure.add_scatter(x=[*steps, *steps[::-1]], y=next(values), fill="toself", fillcolor=blue, opacity=0.14, line={"width": 0}, mode="lines", hoverinfo="skip", name="band of theta", **at)
        figure.add_scatter(x=steps[1:], y=next(values), mode="markers", marker={"color": blue, "size": 4, "opacity": 0.4}, name="batch mean", **at)
        figure.add_scatter(x=steps, y=next(values), mode="lines", line={"color": blue, "width": 2.5}, name="theta", **at)
        figure.add_scatter(x=steps, y=next(values), mode="lines", line={"color": "#111", "width": 2}, name="true ability", **at)
        figure.add_scatter(x=steps, y=next(values), mode="lines", line={"color": orange, "width": 1.5, "dash": "dot"}, name="true ability with the legacy reward", **at)
    below = -(-len(ids) // 5) + 1
    for name, colour in (("pull of the legacy reward", orange), ("pull of this reward", blue)):
        figure.add_bar(x=list(ids), y=next(values), name=name, marker={"color": colour}, row=below, col=1)
    for k in range(len(ids)):
        row, column = place(k)
        figure.update_yaxes(range=[0, 1.02], row=row, col=column)
    figure.update_yaxes(title_text="Mean pull a step", row=below, col=1)
    return figure


def said(shown: Shown, rubric: Rubric) -> str:
    """What the figure shows, in sentences, as HTML."""
    run, legacy, s = shown.run, shown.legacy, shown.settings
    weak = np.isin(run.ids, shown.scene.weak)
    rest, truth = steady(s), run.ability[1:]
    error, raw = (float(np.sqrt(((x - truth) ** 2).mean())) for x in (run.theta[1:], run.mean))
    # the early steps are those in which both learners are still alike
    since = max(shown.scene.world.jump_at - 1, 0)
    early, early_legacy = (float(r.pressure[since : since + SETTLED][:, weak].mean()) for r in (run, legacy))
    never = least_sigma(Dimensions.of(rubric, s.rho), s)
    lines = [
        f"{shown.scene.about}.",
        *([f"epsilon is 0 in the settings; this reward needs one, so it is {s.epsilon:g} here."] if shown.lifted else []),
        "theta does not move (static)." if s.ablation == "static" else f"Filter at rest with R at its floor: gain {rest.gain:.3f}, 63% of a jump after {rest.time_constant:.1f} steps, {rest.lag:.1f} steps behind a steady rise, "
        f"{100 * rest.noise_kept:.0f}% of a batch mean's random error kept, band theta +- {Z * np.sqrt(rest.P):.3f}.",
        f"Error against the true ability (root mean square): theta {error:.3f}, batch mean {raw:.3f}.",
        f"Weak dimensions: from {run.ability[0][weak].mean():.3f} to {run.ability[-1][weak].mean():.3f} (legacy reward: {legacy.ability[-1][weak].mean():.3f}); "
        f"the others: to {run.ability[-1][~weak].mean():.3f} (legacy: {legacy.ability[-1][~weak].mean():.3f}).",
        f"Pull at a weak dimension in the first {SETTLED} steps{' after the jump' if since else ''}: {early:.3f} (legacy: {early_legacy:.3f}).",
        f"More score would earn less: adaptive part {100 * run.falling.mean():.1f}%, final reward {100 * run.falling_reward.mean():.2f}% of dialogues and dimensions "
        + (f"(never from sigma {never:.3f} on; here {s.sigma:g})." if never else "(never with this reward, whatever sigma is)."),
    ]  # fmt: skip
    return str(Markup("<ul class='al-said'>{}</ul>").format(Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)))


class KalmanSimulator(w.VBox):  # type: ignore[misc]
    """Pickers and sliders, what they come to in words, and the figure. `shown` is what is drawn."""

    def __init__(self, rubric: Rubric, settings: RewardSettings = PAPER) -> None:
        self.rubric, self.base = rubric, settings
        self.scenes = {s.name: s for s in scenes(rubric)}
        wide = {"width": "330px"}

        def slider(kind: Any, name: str, value: float, low: float, high: float, step: float, form: str) -> Any:
            made = kind(value=value, min=low, max=high, step=step, description=name, continuous_update=False, readout_format=form, layout=wide)
            made.add_class(f"al-{name.replace('_', '-').replace(' ', '-').lower()}")
            return made

        def stops(name: str, values: tuple[float, ...], own: float) -> Any:
            options = [(f"{value:g}", value) for value in with_own(values, own)]
            made = w.SelectionSlider(options=options, value=own, description=name, continuous_update=False, layout=wide)
            made.add_class(f"al-{name.replace('_', '-').lower()}")
            return made

        self.scene = w.Dropdown(options=list(self.scenes), description="Learner", layout=wide)
        self.variant = w.Dropdown(options=list(variants(settings)), value=settings.ablation, description="Reward", layout=wide)
        self.controls = {
            "R_floor": stops("R_floor", R_FLOORS, settings.R_floor), "Q": stops("Q", QS, settings.Q), "sigma": stops("sigma", SIGMAS, settings.sigma),
            "judge_noise": slider(w.FloatSlider, "Judge noise", 0.3, 0, 2, 0.1, ".1f"), "step_noise": slider(w.FloatSlider, "Step noise", 0.1, 0, 1, 0.1, ".1f"),
            "seed": slider(w.IntSlider, "Seed", 1, 1, 50, 1, "d"),
        }  # fmt: skip
        self.said, self.out = w.HTML(), w.Output(layout={"min_height": "800px"})
        self.scene.add_class("al-scene")
        self.variant.add_class("al-variant")
        for control in (self.variant, *self.controls.values()):
            control.observe(lambda _: self.refresh(), names="value")
        self.scene.observe(lambda _: self._other_scene(), names="value")
        super().__init__([w.Box([self.scene, self.variant, *self.controls.values()], layout={"flex_flow": "row wrap"}), self.said, self.out])
        self.add_class("al-kalman")
        self._quiet = False
        self._other_scene()

    def refresh(self) -> None:
        """Simulate and draw what the controls say."""
        if self._quiet:
            return
        self.shown = show_simulation(*self.asked())
        self.said.value = said(self.shown, self.rubric)
        figure = simulation_figure(self.shown).to_plotly_json()
        self.out.outputs = ({"output_type": "display_data", "data": {PLOTLY: _plain(figure), "text/plain": "figure"}, "metadata": {}},)

    def asked(self) -> tuple[Scene, str, Rubric, RewardSettings, int]:
        """What the controls say, as the arguments of `show_simulation`."""
        c, scene = self.controls, self.scenes[self.scene.value]
        world = replace(scene.world, judge_noise=c["judge_noise"].value, step_noise=c["step_noise"].value)
        given = self.base.model_dump() | {name: float(c[name].value) for name in ("R_floor", "Q", "sigma")}
        return replace(scene, world=world), self.variant.value, self.rubric, RewardSettings.of(**given), c["seed"].value

    def _other_scene(self) -> None:
        """A scene brings its own judge."""
        world = self.scenes[self.scene.value].world
        self._quiet = True
        try:
            self.controls["judge_noise"].value, self.controls["step_noise"].value = world.judge_noise, world.step_noise
        finally:
            self._quiet = False
        self.refresh()

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": still(self.shown, self.rubric)} if isinstance(bundle, dict) else bundle


def still(shown: Shown, rubric: Rubric) -> str:
    """The same without kernel or script: the words, and theta (blue), true ability (black) and the one with the legacy
    reward (orange) of every dimension as small drawings."""
    def line(values: Any, colour: str) -> Markup:
        last = max(len(values) - 1, 1)
        points = " ".join(f"{150 * i / last:.1f},{80 - 80 * v:.1f}" for i, v in enumerate(values))
        return Markup('<polyline points="{}" fill="none" stroke="{}" stroke-width="1.5"/>').format(points, colour)

    drawn = [
        Markup('<figure style="display:inline-block;margin:4px"><figcaption>{}</figcaption><svg width="150" height="80" style="background:#f6f7f9">{}{}{}</svg></figure>').format(
            id, line(shown.legacy.ability[:, k], STRONG[0]), line(shown.run.ability[:, k], "#111"), line(shown.run.theta[:, k], STRONG[1]))
        for k, id in enumerate(shown.run.ids)
    ]  # fmt: skip
    head = Markup("<p><b>{}, reward: {}</b>. Blue: theta; black: true ability; orange: true ability with the legacy reward; 0 to 1 over the steps.</p>").format(shown.scene.name, shown.variant)
    return str(head + Markup("").join(drawn) + Markup(said(shown, rubric)))


def _plain(figure: Any) -> Any:
    """A figure as plain JSON values, as a front end takes them."""
    import json

    from plotly.utils import PlotlyJSONEncoder

    return json.loads(json.dumps(figure, cls=PlotlyJSONEncoder))

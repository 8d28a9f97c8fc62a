"""The capability filter in figures: estimates with their bands, gain and noise, the weights that follow from them."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anthrolab.show.figures import GRID, STRONG, shown_name, styled
from anthrolab.show.kalman_data import Trajectory
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.closed_forms import steady
from anthrolab.training.reward.study import BASELINE, SETTLED, Measured, Scene

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Z = 1.96
COLUMNS = 5
COMPARED = {"mean ability": "Mean ability", "least ability": "Least ability", "gain of weak": "Gain of weak", "gain of others": "Gain of others",
            "pull on weak, early": "Early pull on weak"}  # fmt: skip
"""The quantities of `study.compare` that stand in tables, with their headings."""
LESS = "Less adaptive, less reward: the share of dialogues and dimensions in which more score would lower the adaptive part, or the final reward."
TITLE = 18
"""Characters of a panel's title in a line, so that titles stand beside each other in a narrow window."""


def trajectory_figure(trajectories: Sequence[Trajectory], names: Mapping[str, str] | None = None) -> "Figure":
    """theta of every dimension over the steps with its band (theta +- 1.96 sqrt(P), as the filter believes it), and batch means as
    points behind it. `names`: dimension id -> its name."""
    figure, place = panels(trajectories[0].ids, names)
    for t, colour in zip(trajectories, colours(len(trajectories)), strict=True):
        x, half = list(t.steps), Z * np.sqrt(t.P)
        group = {"legendgroup": t.name, "name": shown_name(t.name)}
        for k in range(len(t.ids)):
            if np.isnan(t.theta[:, k]).all():
                continue
            row, column = place(k)
            upper, lower = np.minimum(t.theta + half, 1)[:, k], np.maximum(t.theta - half, 0)[:, k]
            there = ~np.isnan(t.theta[:, k])
            steps = np.array(x)[there]
            figure.add_scatter(
                x=[*steps, *steps[::-1]], y=numbers([*upper[there], *lower[there][::-1]]), fill="toself", fillcolor=colour, opacity=0.14, line={"width": 0},
                hoverinfo="skip", showlegend=False, mode="lines", row=row, col=column, **group,
            )  # fmt: skip
            figure.add_scatter(
                x=x, y=numbers(t.mean[:, k]), mode="markers", marker={"color": colour, "size": 4, "opacity": 0.4}, showlegend=False, row=row, col=column,
                hovertemplate="batch mean %{y:.3f}<extra></extra>", **group,
            )  # fmt: skip
            figure.add_scatter(
                x=x, y=numbers(t.theta[:, k]), mode="lines", line={"color": colour, "width": 2.5}, showlegend=k == _first(t), row=row, col=column,
                hovertemplate=f"{shown_name(t.name)}, step %{{x}}: theta %{{y:.3f}}<extra></extra>", **group,
            )  # fmt: skip
    figure.update_yaxes(range=[0, 1.02])
    return figure


def gain_figure(trajectories: Sequence[Trajectory]) -> "Figure":
    """Gain K (left) and observation noise R (right) over the steps, a thin line a dimension; dashed: where the gain comes to rest
    with R at its floor, and the floor."""
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=["Gain K", "Observation noise R"], horizontal_spacing=0.08)
    styled(figure)
    for t, colour in zip(trajectories, colours(len(trajectories)), strict=True):
        for column, values in ((1, t.gain), (2, t.noise)):
            for k, id in enumerate(t.ids):
                if np.isnan(values[:, k]).all():
                    continue
                figure.add_scatter(
                    x=list(t.steps), y=numbers(values[:, k]), mode="lines", line={"color": colour, "width": 1.5}, opacity=0.7, legendgroup=t.name,
                    name=shown_name(t.name), showlegend=column == 1 and k == _first(t), row=1, col=column, hovertemplate=f"{shown_name(id)}, step %{{x}}: %{{y:.4f}}<extra></extra>",
                )  # fmt: skip
        for column, level in ((1, steady(t.settings).gain), (2, t.settings.R_floor)):
            figure.add_scatter(x=[t.steps[0], t.steps[-1]], y=[level, level], mode="lines", line={"color": colour, "width": 1, "dash": "dash"}, showlegend=False,
                               hovertemplate=f"{'at rest' if column == 1 else 'floor'}: %{{y:.4f}}<extra></extra>", row=1, col=column)  # fmt: skip
    figure.update_layout(height=340, margin={"t": 80}, legend={"y": 1.16})
    figure.update_yaxes(rangemode="tozero", gridcolor=GRID, showgrid=True)
    figure.update_xaxes(title_text="Step")
    return figure


def weights_figure(trajectories: Sequence[Trajectory], dimensions: Dimensions | None = None, names: Mapping[str, str] | None = None) -> "Figure":
    """The mean adaptive weight of every dimension over the steps (they add up to 1 in D1 to D5, and in E1 to E5); dotted: the
    rubric's weight, where `dimensions` are those of the trainings."""
    figure, place = panels(trajectories[0].ids, names)
    for t, colour in zip(trajectories, colours(len(trajectories)), strict=True):
        for k in range(len(t.ids)):
            row, column = place(k)
            figure.add_scatter(
                x=list(t.steps), y=numbers(t.alpha[:, k]), mode="lines", line={"color": colour, "width": 2}, legendgroup=t.name, name=shown_name(t.name),
                showlegend=k == 0, row=row, col=column, hovertemplate=f"{shown_name(t.name)}, step %{{x}}: %{{y:.3f}}<extra></extra>",
            )  # fmt: skip
    if dimensions is not None and dimensions.ids == trajectories[0].ids:
        x = [min(t.steps[0] for t in trajectories), max(t.steps[-1] for t in trajectories)]
        for k, level in enumerate(dimensions.shares):
            row, column = place(k)
            figure.add_scatter(x=x, y=[level, level], mode="lines", line={"color": "#555", "width": 1, "dash": "dot"}, name="rubric's weight", legendgroup="rubric",
                               showlegend=k == 0, row=row, col=column)  # fmt: skip
    figure.update_yaxes(rangemode="tozero")
    return figure


def last_table(trajectories: Sequence[Trajectory]) -> PrintedTable:
    """Where every training's estimates began and stand, with the last band."""
    rows = []
    for t in trajectories:
        for k, id in enumerate(t.ids):
            first, last, half = t.theta[0, k], t.theta[-1, k], Z * np.sqrt(t.P[-1, k])
            ends = f"{max(last - half, 0):.3f} to {min(last + half, 1):.3f}"
            seen = t.count[:, k]
            rows.append({"Training": t.name, "Dimension": id, "theta at first": _said(first), "theta at last": _said(last), "band": NO_VALUE if np.isnan(last) else ends,
                         "Steps with a score": str(int((np.nan_to_num(seen) > 0).sum()))})  # fmt: skip
    caption = "The band is what the filter believes; with R at its floor it is the same for every dimension and says nothing of the batch."
    return plain_table("capabilities", "Capabilities", caption, pl.DataFrame(rows))


def study_table(scene: Scene, measured: Sequence[Measured], seeds: int) -> PrintedTable:
    """What the variants of the reward came to in a scene: the baseline's means, and the others' paired differences to it."""
    caption = f"{scene.about}. {_how_compared(scene, seeds)}"
    return plain_table(f"study-{_in_ids(scene)}", f"Simulated: {scene.name}", caption, pl.DataFrame(_compared(measured, COMPARED)))


def widths_table(scene: Scene, measured: Sequence[Measured], seeds: int) -> PrintedTable:
    """The same for widths of the match (`study.widths`), with the shares of dialogues and dimensions in which more score earns less."""
    columns = {quantity: name for quantity, name in COMPARED.items() if quantity != "gain of others"}
    rows = [row | _less(measured, row["Reward"]) for row in _compared(measured, columns)]
    caption = f"{scene.about}. {_how_compared(scene, seeds)} {LESS}"
    return plain_table(f"widths-{_in_ids(scene)}", f"Simulated widths of the match: {scene.name}", caption, pl.DataFrame(rows))


def filter_table(studies: Mapping[Scene, Sequence[Measured]], seeds: int, variant: str = "full") -> PrintedTable:
    """How far theta and the batch mean are from the true ability in every scene, how often theta's band holds it, and where more score
    earns less; of one variant of the reward."""
    rows = []
    for scene, measured in studies.items():
        of = {m.quantity: m for m in measured if m.variant == variant}
        errors = {name: "{0.mean:.4f} ({0.low:.4f} to {0.high:.4f})".format(of[quantity]) for quantity, name in (("error of theta", "theta"), ("error of batch mean", "batch mean"))}
        rows.append({"World": scene.name} | errors | {"Band holds": f"{100 * of['band holds'].mean:.1f}%"} | _less(measured, variant))
    caption = (f"Reward {variant}, {seeds} seeds: root mean square distance to the true ability from step {SETTLED + 1} on, with its 95% interval, one at a time; the share of steps and "
               f"dimensions in which theta +- {Z} sqrt(P) holds the true ability. {LESS}")  # fmt: skip
    return plain_table("study-filter", "Simulated: theta against the true ability", caption, pl.DataFrame(rows))


def _compared(measured: Sequence[Measured], columns: Mapping[str, str]) -> list[dict[str, str]]:
    """A row a variant, a column a quantity, everything times 100."""
    cells: dict[str, dict[str, str]] = {}
    for m in measured:
        if m.quantity in columns:
            mean, *ends = (100 * v for v in (m.mean, m.difference, m.difference_low, m.difference_high))
            text = f"{mean:.1f}" if m.variant == BASELINE else "{:+.2f} ({:+.2f} to {:+.2f})".format(*ends)
            cells.setdefault(m.variant, {})[columns[m.quantity]] = text
    return [{"Reward": variant, **row} for variant, row in cells.items()]


def _less(measured: Sequence[Measured], variant: str) -> dict[str, str]:
    of = {m.quantity: m.mean for m in measured if m.variant == variant}
    return {"Less adaptive": f"{100 * of['more score, less adaptive']:.2f}%", "Less reward": f"{100 * of['more score, less reward']:.3f}%"}


def _how_compared(scene: Scene, seeds: int) -> str:
    return (f"Weak: {', '.join(scene.weak)}. {BASELINE}: means over {seeds} seeds; the others: difference to it on the same seeds, with its 95% interval, one at a time. "
            f"Everything times 100: abilities after the last step; early pull: mean of advantage times what was tried, in {SETTLED} steps.")  # fmt: skip


def _in_ids(scene: Scene) -> str:
    return scene.name.replace(" ", "-")


def panels(ids: Sequence[str], names: Mapping[str, str] | None = None, more_rows: int = 0) -> "tuple[Figure, Callable[[int], tuple[int, int]]]":
    """An empty figure with a small panel a dimension, five in a row, and the (row, column) of the k-th. more_rows: rows of the whole width below."""
    from plotly.subplots import make_subplots

    rows = -(-len(ids) // COLUMNS)
    titles = ["<br>".join(map(shown_name, wrap(f"{i} {(names or {}).get(i, '')}", TITLE))) for i in ids]
    wide: list[Any] = [{"colspan": COLUMNS}] + [None] * (COLUMNS - 1)
    specs = [[{} for _ in range(COLUMNS)] for _ in range(rows)] + [wide for _ in range(more_rows)]
    figure = make_subplots(rows=rows + more_rows, cols=COLUMNS, specs=specs, subplot_titles=titles, shared_xaxes=False, horizontal_spacing=0.03,
                           vertical_spacing=0.1 if rows + more_rows > 2 else 0.18)  # fmt: skip
    styled(figure)
    figure.update_layout(height=250 * (rows + more_rows) + 80, margin={"t": 100}, legend={"y": 1.11 if more_rows == 0 else 1.05})
    figure.update_annotations(font_size=12)
    figure.update_yaxes(showgrid=True, gridcolor=GRID)
    return figure, lambda k: (k // COLUMNS + 1, k % COLUMNS + 1)


def numbers(values: Any) -> list[float | None]:
    """Values for a figure, to four places; nan becomes a gap."""
    return [None if np.isnan(v) else round(float(v), 4) for v in values]


def colours(many: int) -> list[str]:
    """A colour a training."""
    return [STRONG[(i + 1) % len(STRONG)] for i in range(many)]


def _first(t: Trajectory) -> int:
    """The first dimension that has an estimate: its line stands in the legend."""
    return int(np.argmax(~np.isnan(t.theta).all(axis=0)))


def _said(value: float) -> str:
    return NO_VALUE if np.isnan(value) else f"{value:.3f}"

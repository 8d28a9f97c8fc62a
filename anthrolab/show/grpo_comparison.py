"""Trainings side by side on their held-out cases: what each gained, and how it differs from the first, with intervals."""

from typing import TYPE_CHECKING

import polars as pl

from anthrolab.loop.paired import LEVEL, Quantity, Verdict
from anthrolab.show.figures import GRID, QUIET, STRONG, shown_name, styled
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table
from anthrolab.training.grpo.compare import Comparison, Pair

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

OWN = "its own step 0"
COLOURS: dict[Verdict, str] = {"better": STRONG[1], "worse": STRONG[0], "mixed": STRONG[3]}
"""Colours of what can be told from no difference; a mixed outcome is no improvement, and has one of its own."""



def comparison_table(found: Comparison) -> PrintedTable:
    """The score of every training against its own beginning, and against the first training."""
    rows = [
        {"Training": p.after.run, "Reward": p.after.ablation, "Against": _against(p), "Score before": _number(p.score.before), "Score after": _number(p.score.after),
         "Difference": _number(p.score.difference, "+"), "95% interval": _interval(p.score), "p": _p(p.score.p), "p, corrected": _p(p.score.holm),
         "Cases": str(p.score.cases), "Bindings": str(p.score.bindings), "Valid": f"{p.before.valid} to {p.after.valid} of {p.after.planned}", "Says": p.verdict}
        for p in found.pairs
    ]  # fmt: skip
    caption = (
        f"Step {found.step} on {found.cases} held-out cases of {found.bindings} bindings. Score: 0 to 100, of cases valid in both. Before: the arm that is compared "
        f"against. Intervals: bootstrap by binding; p: sign flips by binding, corrected for {len(found.pairs)} comparisons."
    )
    return plain_table("comparison", "Trainings compared", caption, pl.DataFrame(rows), found.notes)


def quantities_table(found: Comparison) -> PrintedTable:
    """Everything else that was compared: acceptance, validity and every dimension, in percent."""
    names = [q.name for q in found.pairs[0].quantities[1:]]
    rows = [{"Training": p.after.run, "Against": _against(p), **{n: _cell(q) for n, q in zip(names, p.quantities[1:], strict=True)}} for p in found.pairs]
    caption = (
        "Differences in percent points, with 95% intervals by binding. accepted: every assessed checkbox passed, and valid. "
        f"*: p below {LEVEL} after the correction for all quantities of the row."
    )
    return plain_table("quantities", "What else changed", caption, pl.DataFrame(rows))


def comparison_figure(found: Comparison) -> "Figure":
    """Differences of the score with their intervals, coloured by what they say: quiet where it cannot be told from none."""
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    labels = [f"{shown_name(p.after.run)} ({p.after.ablation})<br>against {shown_name(_against(p))}" for p in found.pairs]
    for place, (pair, label) in enumerate(zip(found.pairs, labels, strict=True)):
        s = pair.score
        if s.difference is None:
            continue
        colour = COLOURS.get(pair.verdict, QUIET)
        ends = {"array": [s.high - s.difference], "arrayminus": [s.difference - s.low], "color": colour, "thickness": 2} if s.low is not None and s.high is not None else None
        figure.add_trace(
            Scatter(
                x=[s.difference], y=[place], error_x=ends, mode="markers", name=label, marker={"size": 11, "symbol": "diamond", "color": colour},
                hovertemplate=f"{label}<br>%{{x:+.1f}} points, {_interval(s)}<extra></extra>",
            )
        )  # fmt: skip
    styled(figure)
    figure.add_vline(x=0, line={"color": "#1d2530", "width": 1})
    figure.update_layout(height=120 + 52 * len(labels), showlegend=False)
    figure.update_yaxes(tickmode="array", tickvals=list(range(len(labels))), ticktext=labels, range=[len(labels) - 0.5, -0.5], automargin=True)
    figure.update_xaxes(title_text="Difference of the held-out score (points), with 95% interval", showgrid=True, gridcolor=GRID, zeroline=False)
    return figure


def _against(pair: Pair) -> str:
    return OWN if pair.before.run == pair.after.run else pair.before.run


def _cell(q: Quantity) -> str:
    if q.difference is None:
        return NO_VALUE
    ends = f" ({100 * q.low:+.0f} to {100 * q.high:+.0f})" if q.low is not None and q.high is not None else ""
    return f"{100 * q.difference:+.1f}{ends}{'*' if q.holm is not None and q.holm < LEVEL else ''}"


def _interval(q: Quantity) -> str:
    return f"{q.low:+.1f} to {q.high:+.1f}" if q.low is not None and q.high is not None else NO_VALUE


def _number(value: float | None, sign: str = "") -> str:
    return NO_VALUE if value is None else f"{value:{sign}.1f}"


def _p(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.3f}"


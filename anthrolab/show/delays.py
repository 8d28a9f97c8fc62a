"""The figure of reply delays: how fast each side answered. Descriptive, no scores."""

from collections.abc import Sequence
from math import log10
from typing import TYPE_CHECKING

from anthrolab.metrics.timing import SLOW_S
from anthrolab.show.figures import GRID, STRONG, shown_name, styled
from anthrolab.show.measured import Measured
from anthrolab.show.timing import sides_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ZERO_AT = 0.5
"""Where a delay of 0 s stands on a logarithmic axis."""
_TICKS = {
    _ZERO_AT: "0 s", 1: "1 s", 2: "2 s", 5: "5 s", 10: "10 s", 20: "20 s", 30: "30 s", 60: "1 min", 120: "2 min",
    300: "5 min", 600: "10 min", 3600: "1 h", 86400: "1 day",
}  # fmt: skip


def delay_figure(runs: Sequence[Measured]) -> "Figure | None":
    """The share of the sent replies that came within a time (seconds on a logarithmic axis); None if nobody replied.

    A line for each side that replied: the tested one solid, its partner dotted in the same colour. The legend says how
    many replies a line is of, and how many were unsent when the chat stopped, where that is known.
    """
    from plotly.graph_objects import Figure, Scatter

    colours = dict(zip([m.run for m in runs], STRONG * (1 + len(runs)), strict=False))
    figure = Figure()
    slowest = SLOW_S
    for m, side, t in sides_of(runs):
        if not t.replies.n:
            continue
        tested = side == "evaluated"
        name = shown_name(f"tested: {m.system} ({m.run})" if tested else f"partner: {m.partner} ({m.run})")
        times = sorted(set(t.replies.seconds))
        slowest = max(slowest, times[-1])
        counts = f"replies: {t.replies.n} sent" + (f", {t.asks.unsent_replies} unsent" if t.asks else "")
        figure.add_trace(
            Scatter(
                x=[max(s, _ZERO_AT) for s in (times[0], *times)],
                y=[0.0, *(sum(s <= limit for s in t.replies.seconds) / t.replies.n for limit in times)],
                customdata=[times[0], *times], mode="lines", name=f"{name}, {counts}",
                line={"color": colours[m.run], "width": 3 if tested else 2, "dash": "solid" if tested else "dot", "shape": "hv"},
                hovertemplate=f"{name}<br>%{{y:.0%}} within %{{customdata}} s<extra></extra>",
            )
        )  # fmt: skip
    if not figure.data:
        return None
    styled(figure)
    figure.update_layout(showlegend=True)
    figure.update_xaxes(
        type="log", title_text="Reply delay in virtual time (logarithmic axis)", tickmode="array", tickvals=list(_TICKS),
        ticktext=list(_TICKS.values()), range=[log10(0.9 * _ZERO_AT), log10(1.15 * slowest)], showgrid=True, gridcolor=GRID,
    )  # fmt: skip
    figure.update_yaxes(
        title_text="Share of the sent replies within that time", tickformat=".0%", range=[0, 1.03], showgrid=True, gridcolor=GRID,
    )  # fmt: skip
    return figure

"""Figures: published systems as a quiet background, measured ones on top. Values are those of Tables 8 and 10."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from anthrolab.bench.ledger import GLOBAL_DIMENSIONS, LOCAL_DIMENSIONS
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.show.blocks import Block

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

QUIET = "#aab4c0"
GRID = "#e8ecf0"
STRONG = ("#c2410c", "#1d4ed8", "#15803d", "#7e22ce", "#0f766e", "#be123c")


def dimension_figure(blocks: Sequence[Block], names: Mapping[str, str]) -> "Figure":
    """The profile over D1..E5: mean share of passed checkboxes, 0 to 1. `names`: dimension id -> its name.

    Turns and dialogues are separate groups, so no line joins D5 to E1; a dimension without a value is a gap.
    """
    x = [*LOCAL_DIMENSIONS, *GLOBAL_DIMENSIONS]
    ticks = [_wrapped(f"<b>{d}</b> {names.get(d, '')}") for d in x]
    figure = _profile(blocks, 8, x, ticks, "lines+markers", break_after="D5")
    figure.update_yaxes(title_text="Mean share of passed checkboxes (0 to 1)", rangemode="tozero", range=[0, 1.03])
    figure.update_xaxes(title_text="Dimension: D1 to D5 of a turn, E1 to E5 of the dialogue")
    return figure


def category_figure(blocks: Sequence[Block]) -> "Figure":
    """Mean Score (0 to 100) in each of the twelve scenario categories, as points."""
    x: list[str] = [*CATEGORIES]
    figure = _profile(blocks, 10, x, x, "markers")
    figure.update_yaxes(title_text="Mean Score of the category's valid cases (0 to 100)", range=[0, 103])
    figure.update_xaxes(title_text="Scenario category")
    return figure


def figure_html(figure: "Figure", name: str) -> str:
    """The figure as an HTML fragment with a fixed id; the page brings plotly.js."""
    from plotly.io import to_html

    html: str = to_html(
        figure, include_plotlyjs=False, full_html=False, div_id=name, default_height="460px",
        config={"displaylogo": False, "displayModeBar": False, "responsive": True},
    )  # fmt: skip
    return html


def _profile(
    blocks: Sequence[Block], number: int, x: list[str], ticks: list[str], mode: str, break_after: str | None = None
) -> "Figure":
    from plotly.graph_objects import Figure, Scatter

    places: list[float] = [float(i) for i in range(len(x))]
    figure = Figure()
    strong = iter(STRONG * (1 + len(blocks)))
    first = True
    for block in sorted(blocks, key=lambda b: not b.published):
        for row in block.tables[number].iter_rows(named=True):
            values = [float(row[c].rstrip("%")) if row[c] else None for c in x]
            at: list[float | None] = list(places)
            labels = list(x)
            if break_after:
                cut = x.index(break_after) + 1
                at.insert(cut, None)
                values.insert(cut, None)
                labels.insert(cut, "")
            colour = QUIET if block.published else next(strong)
            name = row["Model"] if block.published else f"{row['Model']} ({block.key})"
            figure.add_trace(
                Scatter(
                    x=at, y=values, mode=mode, customdata=labels, connectgaps=False,
                    name=f"published systems ({block.tables[number].height})" if block.published else f"measured: {shown_name(name)}",
                    legendgroup=block.key if block.published else name, showlegend=first or not block.published,
                    opacity=0.55 if block.published else 1,
                    line={"color": colour, "width": 1 if block.published else 3},
                    marker={
                        "color": colour, "size": 5 if block.published else 11,
                        "symbol": "circle" if block.published else "diamond",
                    },
                    hovertemplate=f"{shown_name(name)}<br>%{{customdata}}: %{{y}}<extra></extra>",
                )
            )  # fmt: skip
            first = first and not block.published
    styled(figure)
    figure.update_xaxes(tickmode="array", tickvals=places, ticktext=ticks, range=[-0.5, len(x) - 0.5], tickangle=0, automargin=True)
    figure.update_yaxes(showgrid=True, gridcolor=GRID)
    return figure


def styled(figure: "Figure") -> None:
    """Gives a figure the look that all figures of a report share."""
    figure.update_layout(
        template="simple_white", margin={"l": 60, "r": 20, "t": 10, "b": 20}, height=460,
        font={"family": "Segoe UI, Roboto, Helvetica Neue, Arial, Liberation Sans, Noto Sans CJK SC, sans-serif", "size": 13, "color": "#1d2530"},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, paper_bgcolor="white",
    )  # fmt: skip


def _wrapped(text: str) -> str:
    """Words under each other, so that the ticks of ten dimensions stand beside each other."""
    return text.replace(" ", "<br>")


def shown_name(name: str) -> str:
    """A name that plotly shows as it is: no tags, no template fields."""
    return name.replace("&", "&amp;").replace("<", "&lt;").replace("%{", "% {")

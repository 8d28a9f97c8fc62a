"""Who waits for whom in a training step: what was generated, judged and trained when, and how much went on at once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, get_args

import polars as pl

from anthrolab.show.figures import GRID, STRONG, shown_name, styled
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table
from anthrolab.training.grpo.timeline import Kind, Span

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

KINDS: tuple[Kind, ...] = get_args(Kind)
LANES = {"generate": "policy generates", "partner": "partner answers", "judge": "judge", "reward": "reward", "train": "training"}
CHATS: tuple[Kind, ...] = ("generate", "partner")
COLOURS = dict(zip(KINDS, STRONG, strict=False))


@dataclass(frozen=True)
class Lane:
    """One kind of work in a step, in seconds: spans, how long at least one was under way, how long it went on alone (all
    others waited for it), and how long it went on while the policy or its partner generated."""

    kind: Kind
    spans: int
    busy: float
    alone: float
    beside_generation: float


def lanes(spans: Sequence[Span]) -> list[Lane]:
    """The kinds of work that a step has, in their order."""
    moments = _moments(spans)

    def seconds(kind: Kind, *others: Kind) -> float:
        return sum(length for length, at_work in moments if kind in at_work and (not others or at_work & {*others}))

    counts = Counter(s.kind for s in spans)
    return [
        Lane(kind, counts[kind], seconds(kind), sum(length for length, at_work in moments if at_work == {kind}), seconds(kind, *(k for k in CHATS if k != kind)))
        for kind in KINDS
        if counts[kind]
    ]


def timeline_figure(spans: Sequence[Span]) -> "Figure":
    """All spans of a step as bars in lanes by kind; what goes on at once in a lane lies in rows below each other."""
    from plotly.graph_objects import Bar, Figure

    figure, ticks, top = Figure(), {}, 0
    for kind in KINDS:
        own = sorted((s for s in spans if s.kind == kind), key=lambda s: (s.start, s.end))
        if not own:
            continue
        rows = _rows(own)
        depth = 1 + max(rows)
        figure.add_trace(
            Bar(
                base=[s.start for s in own], x=[s.end - s.start for s in own], y=[top + r for r in rows], orientation="h", width=0.86, name=LANES[kind],
                marker={"color": COLOURS[kind], "line": {"width": 0.6, "color": "white"}}, customdata=[[shown_name(s.of), s.end] for s in own],
                hovertemplate=f"{LANES[kind]}: %{{customdata[0]}}<br>%{{base:.2f}} to %{{customdata[1]:.2f}} s<extra></extra>",
            )
        )  # fmt: skip
        ticks[LANES[kind]] = top + (depth - 1) / 2
        top += depth
        figure.add_hline(y=top - 0.5, line={"color": GRID, "width": 1})
    styled(figure)
    figure.update_layout(barmode="overlay", height=max(260, min(900, 130 + 24 * top)), showlegend=False)
    figure.update_yaxes(tickmode="array", tickvals=list(ticks.values()), ticktext=list(ticks), range=[top - 0.5, -0.5], automargin=True)
    figure.update_xaxes(title_text="Seconds since the step began", rangemode="tozero", showgrid=True, gridcolor=GRID)
    return figure


def waiting_table(spans: Sequence[Span], step: int) -> PrintedTable:
    """What every kind of work took of a step, and how much of it the others waited for."""
    length = max((s.end for s in spans), default=0.0)
    rows = [
        {"Work": LANES[lane.kind], "Spans": str(lane.spans), "Busy, s": f"{lane.busy:.1f}", "Share of the step": _share(lane.busy, length),
         "Alone, s": f"{lane.alone:.1f}", "Alone, share of the step": _share(lane.alone, length),
         "Beside generation": _share(lane.beside_generation, lane.busy) if lane.kind in ("judge", "reward", "train") else NO_VALUE}
        for lane in lanes(spans)
    ]  # fmt: skip
    caption = (
        f"Step {step}, {length:.1f} s. Busy: at least one at work. Alone: nothing else went on, so all waited for it. "
        "Beside generation: share of its own time in which the policy or its partner still generated."
    )
    idle = length - sum(seconds for seconds, at_work in _moments(spans) if at_work)
    notes = [f"Nothing that is written down went on in {idle:.1f} s ({_share(idle, length)}) of the step."] if rows else []
    frame = pl.DataFrame(rows) if rows else pl.DataFrame({"Work": ["nothing is written down of this step"]})
    return plain_table("waiting", "Who waits for whom", caption, frame, notes)


def _rows(spans: Sequence[Span]) -> list[int]:
    """A row for each span (sorted by start), the first that is free again."""
    ends: list[float] = []
    found = []
    for span in spans:
        row = next((i for i, end in enumerate(ends) if end <= span.start), len(ends))
        ends[row : row + 1] = [span.end]
        found.append(row)
    return found


def _moments(spans: Sequence[Span]) -> list[tuple[float, frozenset[Kind]]]:
    """The step cut at every beginning and end of a span: seconds, and the kinds that were at work in them."""
    ends = sorted([(s.start, 1, s.kind) for s in spans] + [(s.end, -1, s.kind) for s in spans])
    open_spans: Counter[Kind] = Counter()
    found = []
    for (at, change, kind), (until, *_) in pairwise(ends):
        open_spans[kind] += change
        found.append((until - at, frozenset(+open_spans)))
    return found


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f}%" if whole > 0 else NO_VALUE

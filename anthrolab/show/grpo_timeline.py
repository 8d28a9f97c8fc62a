"""Who waits for whom in a training step: what was generated, judged and trained when, and how much went on at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

import polars as pl

from anthrolab.show.figures import GRID, STRONG, shown_name, styled
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table
from anthrolab.training.grpo.timeline import Kind, Span, busy, overlap

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

KINDS: tuple[Kind, ...] = get_args(Kind)
LANES = {"generate": "policy generates", "partner": "partner answers", "judge": "judge", "reward": "reward", "train": "training"}
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
    found = []
    for kind in KINDS:
        own = [s for s in spans if s.kind == kind]
        if not own:
            continue
        total = _length(own)
        others = [s for s in spans if s.kind != kind]
        chats = [s for s in others if s.kind in ("generate", "partner")]
        found.append(Lane(kind, len(own), total, total - _common(own, others), _common(own, chats)))
    return found


def judging_beside_generation(spans: Sequence[Span]) -> float | None:
    """The share (0 to 1) of the judging time in which dialogues were still generated; None where nothing was judged."""
    judging = next((lane for lane in lanes(spans) if lane.kind == "judge"), None)
    return judging.beside_generation / judging.busy if judging and judging.busy else None


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
    idle = length - _length(spans)
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


def _as(spans: Sequence[Span], kind: Kind) -> list[Span]:
    """The spans as if they were of one kind."""
    return [replace(s, kind=kind) for s in spans]


def _length(spans: Sequence[Span]) -> float:
    """Seconds in which at least one was under way."""
    return sum(end - start for start, end in busy(_as(spans, "judge"), "judge"))


def _common(one: Sequence[Span], other: Sequence[Span]) -> float:
    """Seconds in which spans of both were under way."""
    return overlap([*_as(one, "judge"), *_as(other, "generate")], "judge", "generate")


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f}%" if whole > 0 else NO_VALUE

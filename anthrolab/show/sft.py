"""A fine-tuning to be looked at: how long its samples are, what the loss is over, what the gates saw, how it went."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from markupsafe import escape

from anthrolab.show.figures import STRONG, styled
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table
from anthrolab.training.preflight import Gate, Shown
from anthrolab.training.sft import Trained
from anthrolab.training.training_log import duration

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

TRAINED = "#fde68a"
"""The background of tokens that the loss is over."""


def lengths_figure(lengths: Sequence[tuple[int, int]], max_length: int) -> "Figure":
    """How many samples have how many tokens: prompts, completions, and a line where they would be cut.

    `lengths`: (prompt, completion) of every sample.
    """
    from plotly.graph_objects import Figure, Histogram

    figure = Figure()
    for name, values, colour in (("prompt", [p for p, _ in lengths], STRONG[1]), ("completion", [c for _, c in lengths], STRONG[0])):
        figure.add_trace(Histogram(x=values, name=name, marker={"color": colour}, xbins={"size": 32}, opacity=0.8))
    longest = max((p + c for p, c in lengths), default=0)
    styled(figure)
    figure.update_layout(barmode="overlay")
    if longest > 0.7 * max_length:
        figure.add_vline(x=max_length, line={"dash": "dash"}, annotation_text=f"max_length {max_length}")
    figure.update_xaxes(title_text=f"Tokens (the longest sample has {longest} in all)", rangemode="tozero")
    figure.update_yaxes(title_text="Samples")
    return figure


def masked_html(shown: Sequence[Shown]) -> str:
    """Samples token by token: marked is what the loss is over, the rest is only read. Line breaks are shown and kept."""
    parts = []
    for sample in shown:
        trained = sum(sample.trained)
        tokens = "".join(_token(text, on) for text, on in zip(sample.tokens, sample.trained, strict=True))
        parts.append(
            f'<div style="margin:0 0 1em"><b>{escape(sample.id)}</b>: {trained} of {len(sample.tokens)} tokens are trained'
            '<div style="max-height:24em;overflow:auto;border:1px solid #d6dde4;border-radius:6px;padding:.6em;'
            f'font-family:monospace;line-height:1.7;white-space:pre-wrap;overflow-wrap:anywhere">{tokens}</div></div>'
        )
    return "".join(parts)


def _token(text: str, trained: bool) -> str:
    shown = str(escape(text)).replace("\n", "\u23ce\n")
    if trained:
        return f'<mark style="background:{TRAINED};border-right:1px solid #d97706">{shown}</mark>'
    return f'<span style="color:#5b6b7a;border-right:1px solid #e2e8ee">{shown}</span>'


def gates_table(gates: Sequence[Gate]) -> PrintedTable:
    """What every gate saw, and what to do where it failed."""
    rows = [
        {"Gate": g.name, "Passed": "yes" if g.passed else "NO", "Seen": g.seen, "Fix": g.fix or NO_VALUE} for g in gates
    ]
    frame = pl.DataFrame(rows) if rows else pl.DataFrame({"Gate": ["none was run"]})
    return plain_table("gates", "Gates before the training", "A failed gate stops the training before its first step.", frame)


def loss_figure(rows: Sequence[Mapping[str, Any]], before: float | None = None, after: float | None = None) -> "Figure":
    """The loss per completion token at every step, and on held-out samples before and after."""
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    steps = [row["step"] for row in rows]
    figure.add_trace(Scatter(x=steps, y=[row["loss"] for row in rows], name="training", mode="lines+markers", line={"color": STRONG[1]}))
    if before is not None and after is not None and rows:
        figure.add_trace(
            Scatter(x=[0, steps[-1]], y=[before, after], name="held out", mode="markers", marker={"color": STRONG[0], "size": 13, "symbol": "diamond"})
        )
    styled(figure)
    figure.update_xaxes(title_text="Step", rangemode="tozero")
    figure.update_yaxes(title_text="Loss: mean of -log p per completion token", rangemode="tozero")
    return figure


def result_table(done: Trained) -> PrintedTable:
    """A finished training in a few rows."""
    m = done.manifest
    losses = [m.get("held_out_loss_before"), m.get("held_out_loss_after")]
    rows = {
        "Base": f"{m['settings']['base']} ({m['base']})",
        "Samples": f"{m['samples']['train']} trained on, {m['samples']['held_out']} held out",
        "Steps": str(m["steps"]),
        "Time in steps": duration(m["training_seconds"]),
        "Tokens through the model": f"{m['tokens']:,}",
        "Loss, first and last step": f"{done.rows[0]['loss']:.3f}, {done.rows[-1]['loss']:.3f}" if done.rows else NO_VALUE,
        "Held-out loss, before and after": NO_VALUE if None in losses else f"{losses[0]:.3f}, {losses[1]:.3f}",
        "Checkpoint": str(done.tuned),
    }
    frame = pl.DataFrame({"What": list(rows), "Value": list(rows.values())})
    return plain_table("training", "The training", "", frame)

"""A GRPO training to be looked at: the reward with all that is watched beside it, the steps, and what came of it."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import polars as pl

from anthrolab.show.figures import GRID, QUIET, STRONG, styled
from anthrolab.show.grpo_view import TrainingView
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table
from anthrolab.training.grpo.watch import POWER, WATCHED, Visible, least_visible
from anthrolab.training.training_log import duration

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ALARM = "#b42318"
TITLES = {
    "reward": "Reward of the rollouts (0 to 1)", "held_out": "Held-out score (0 to 100, valid cases)",
    "chars": "Characters a message", "messages": "Messages a dialogue", "distinct_2": "Distinct character pairs (share)",
    "silent": "Silent decisions (share)", "violations": "Gate violations a dialogue", "rules_score": "Score of the rules judge (0 to 100)",
}  # fmt: skip


def curves_figure(view: TrainingView) -> "Figure":
    """The reward, the held-out score and every watched quantity over the steps.

    A dotted line: the mean of the first which the size of a change is measured against. Red: the steps of alarms, and the quantity
    that each is about.
    """
    from plotly.subplots import make_subplots

    names = ["reward", "held_out", *(q.name for q in WATCHED if any(r.get(q.name) is not None for r in view.rows))]
    if not view.held_out:
        names.remove("held_out")
    high = -(-len(names) // 2)
    figure = make_subplots(rows=high, cols=2, shared_xaxes="all", subplot_titles=[TITLES[n] for n in names], vertical_spacing=0.28 / high, horizontal_spacing=0.07)
    for place, name in enumerate(names):
        at = {"row": place // 2 + 1, "col": place % 2 + 1}
        for trace in _reward_traces(view) if name == "reward" else _held_out_traces(view) if name == "held_out" else _watched_traces(view, name):
            figure.add_trace(trace, **at)
        for alarm in view.alarms:
            if alarm.quantity == name or name == "reward":
                figure.add_vline(x=alarm.step, line={"dash": "dash", "color": ALARM, "width": 1}, **at)
        figure.update_yaxes(rangemode="tozero", showgrid=True, gridcolor=GRID, **at)
        figure.update_xaxes(title_text="Step" if place >= len(names) - 2 else None, showticklabels=True, range=[-0.4, max([1, *view.steps]) + 0.6], **at)
    styled(figure)
    figure.update_layout(height=60 + 210 * high, showlegend=False, margin={"t": 40})
    figure.update_annotations(font_size=13)
    return figure


def _reward_traces(view: TrainingView) -> list[Any]:
    """The mean reward and one standard deviation of the rollouts around it."""
    from plotly.graph_objects import Scatter

    mean = [r["reward"] for r in view.rows]
    ends = [[None if m is None else m + sign * (r.get("reward_std") or 0) for m, r in zip(mean, view.rows, strict=True)] for sign in (-1, 1)]
    pieces = [Scatter(x=view.steps, y=y, mode="lines", line={"width": 0}, hoverinfo="skip", connectgaps=False, **fill) for y, fill in
              zip(ends, ({}, {"fill": "tonexty", "fillcolor": "rgba(29,78,216,0.12)"}), strict=True)]  # fmt: skip
    return [*pieces, _line(view.steps, mean, STRONG[1], "mean reward")]


def _held_out_traces(view: TrainingView) -> list[Any]:
    from plotly.graph_objects import Scatter

    steps = list(view.held_out)
    scores = [_mean_score(f) for f in view.held_out.values()]
    said = [f"{f['score'].count()} of {f.height} cases have a score" for f in view.held_out.values()]
    return [
        Scatter(
            x=steps, y=scores, mode="lines+markers", customdata=said, name="held-out score", line={"color": STRONG[0], "width": 2},
            marker={"size": 11, "symbol": "diamond"}, hovertemplate="step %{x}: %{y:.1f}<br>%{customdata}<extra></extra>",
        )
    ]  # fmt: skip


def _watched_traces(view: TrainingView, name: str) -> list[Any]:
    from plotly.graph_objects import Scatter

    values = [r.get(name) for r in view.rows]
    first = [r[name] for r in view.rows if r.get(name) is not None and r["reward"] is not None][: view.watch.window]
    traces = [_line(view.steps, values, STRONG[2], name)]
    if first and view.steps:
        ends = [view.steps[0], view.steps[-1]]
        traces.insert(0, Scatter(x=ends, y=[fmean(first)] * 2, mode="lines", line={"color": QUIET, "dash": "dot"}, hoverinfo="skip", name="first steps"))
    at = dict(zip(view.steps, values, strict=True))
    found = [a for a in view.alarms if a.quantity == name]
    if found:
        traces.append(
            Scatter(
                x=[a.step for a in found], y=[at[a.step] for a in found], mode="markers", name=f"alarm: {name}", customdata=[a.said for a in found],
                marker={"size": 14, "symbol": "star", "color": ALARM}, hovertemplate="step %{x}: alarm<br>%{customdata}<extra></extra>",
            )
        )  # fmt: skip
    return traces


def _line(steps: Sequence[int], values: Sequence[float | None], colour: str, name: str) -> Any:
    from plotly.graph_objects import Scatter

    return Scatter(
        x=list(steps), y=list(values), mode="lines+markers", name=name, connectgaps=False, line={"color": colour, "width": 2}, marker={"size": 6},
        hovertemplate=f"step %{{x}}: %{{y:.4g}}<extra>{name}</extra>",
    )  # fmt: skip


def alarms_table(view: TrainingView) -> PrintedTable:
    """The watch's alarms in sentences, and in any case what could have been seen at all."""
    rows = [{"Step": str(a.step), "Quantity": a.quantity, "Seen": a.said} for a in view.alarms]
    watch = view.watch
    alone = ", ".join(f"{q.words}: by {q.least:g}" for q in WATCHED if not q.relative)
    caption = (
        f"A watched quantity has a trend over all batches so far, for {watch.window} in a row, and the reward did not fall. It also moved, in the latest "
        f"{watch.window} against the first {watch.window}, by {watch.least_change:.0%} or more ({alone}). False alarms: in at most {watch.level:.0%} of trainings."
    )
    frame = pl.DataFrame(rows) if rows else pl.DataFrame({"Step": ["no alarm"]})
    return plain_table("alarms", "Reward-hacking watch", caption, frame, _what_could_be_seen(view))


def _what_could_be_seen(view: TrainingView) -> list[str]:
    done, least = len(view.rows), view.watch.least_batches
    notes = [] if view.as_raised else ["The manifest names no settings of this version's watch, so the log was looked at anew with the usual ones."]
    found = least_visible(view.rows, view.watch)
    if found:
        changes = "; ".join(f"{v.quantity.words} {_ways(v)} (first {v.first:.2f})" for v in found)
        notes.append(f"Smaller changes can pass unseen. A steady drift over these {done} batches is found in about {POWER:.0%} of such trainings from this change on: {changes}.")
    else:
        notes.append(f"Nothing could be seen yet: an alarm needs {least} batches with a reward; {done} are done. So no alarm says nothing.")
    if beyond := [v.quantity.words for v in found if not _possible(v)]:
        notes.append(f"Could not be seen at all, as no change is large enough: {', '.join(beyond)}.")
    return notes


def _ways(seen: Visible) -> str:
    sign = {"up": "+", "down": "-", "both": "+/-"}[seen.quantity.direction]
    return f"{sign}{seen.least:.2f}"


def _possible(seen: Visible) -> bool:
    """Whether the quantity can change by that much at all: a share stays within 0 and 1, nothing falls below 0."""
    highest = 1.0 if seen.quantity.share else math.inf
    up, down = seen.first + seen.least <= highest, seen.first - seen.least >= 0
    return {"up": up, "down": down, "both": up or down}[seen.quantity.direction]


def steps_table(view: TrainingView) -> PrintedTable:
    """Every step: what was rolled out, what of it had a reward, and how the update went."""
    columns = {
        "Step": ("step", "d"), "Reward": ("reward", ".3f"), "Its sd": ("reward_std", ".3f"), "Dialogues": ("rollouts", "d"), "No reward": ("no_reward", "d"),
        "Invalid": ("invalid", "d"), "Groups": ("groups", "d"), "Flat": ("flat_groups", "d"), "Decisions": ("decisions", "d"), "Tokens": ("tokens", ",d"),
        "Loss": ("loss", ".4f"), "KL": ("kl", ".4f"), "Entropy": ("entropy", ".2f"), "Gradient": ("grad_norm", ".2f"), "Seconds": ("seconds", ".0f"),
        "Held-out, s": ("held_out_seconds", ".0f"),
        "Cost so far, USD": ("cost", ".4f"),
    }  # fmt: skip
    shown = {c: v for c, v in columns.items() if c == "Step" or any(r.get(v[0]) is not None for r in view.rows)}
    rows = [{c: _written(row.get(key), form) for c, (key, form) in shown.items()} for row in view.rows]
    caption = "No reward: the dialogue could not be had, or its judge failed; it is in no mean. Invalid ones have reward 0. Flat: groups whose dialogues all have one reward, which teach nothing."
    frame = pl.DataFrame(rows) if rows else pl.DataFrame({"Step": ["none is done"]})
    return plain_table("steps", "Steps", caption, frame)


def result_table(view: TrainingView) -> PrintedTable:
    """A training in a few rows."""
    s, rows, played = view.settings, view.rows, view.rows
    rewards = [r["reward"] for r in played if r["reward"] is not None]
    window = max(1, min(view.watch.window, len(rewards) // 2))
    held_out = [f"{_written(_mean_score(f), '.1f')} (step {step})" for step, f in view.held_out.items()]
    cost = next((r["cost"] for r in reversed(rows) if r.get("cost") is not None), None)
    values = {
        "Policy": f"{s.get('policy')}, {s.get('kind')}",
        "Partner, judge": f"{s.get('partner')}, {s.get('judge')}",
        "Reward, ablation": f"{(view.manifest.get('reward') or {}).get('ablation', NO_VALUE)}",
        "Steps": f"{len(rows)}, {view.state}",
        "Dialogues": f"{sum(r['rollouts'] for r in played)}, of which {sum(r['invalid'] for r in played)} invalid and {sum(r['no_reward'] for r in played)} without a reward",
        "Groups that taught nothing": f"{sum(r['flat_groups'] for r in played)} of {sum(r['groups'] for r in played)}",
        f"Mean reward, first and last {window} batches": f"{fmean(rewards[:window]):.3f}, {fmean(rewards[-window:]):.3f}" if rewards else NO_VALUE,
        "Held-out score": ", ".join(held_out) or NO_VALUE,
        "Alarms": ", ".join(f"{a.quantity} (step {a.step})" for a in view.alarms) or "none (see what could have been seen)",
        "Time in steps": duration(sum(r["seconds"] for r in rows)),
        "Cost": NO_VALUE if cost is None else f"{cost:.4f} USD",
    }
    frame = pl.DataFrame({"What": list(values), "Value": list(values.values())})
    return plain_table("training", f"The training {view.name}", "", frame)


def _written(value: float | None, form: str) -> str:
    return NO_VALUE if value is None else format(value, form)


def _mean_score(frame: pl.DataFrame) -> float | None:
    """The mean score of the held-out cases that have one."""
    scores = frame["score"].drop_nulls().to_list()
    return fmean(scores) if scores else None

"""Timing in print: the table of the command line, and the table and the figure of the report. Descriptive, no scores."""

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import polars as pl
from pydantic import ValidationError

from anthrolab.bench.printing import as_percent, ratio
from anthrolab.bench.store import Run, RunError
from anthrolab.files import FileError
from anthrolab.metrics.timing import FAST_S, SLOW_S, Asks, Side, Times, Timing, TimingError, measure, pool
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.show.figures import GRID, STRONG, shown_name, styled
from anthrolab.show.measured import Measured
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table
from anthrolab.yaml_files import explain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SIDES: tuple[Side, ...] = get_args(Side)
_ZERO_AT = 0.5
"""Where a delay of 0 s stands on a logarithmic axis."""
_TICKS = {
    _ZERO_AT: "0 s", 1: "1 s", 2: "2 s", 5: "5 s", 10: "10 s", 20: "20 s", 30: "30 s", 60: "1 min", 120: "2 min",
    300: "5 min", 600: "10 min", 3600: "1 h", 86400: "1 day",
}  # fmt: skip


def timing_at(path: Path, sides: Sequence[Side] = SIDES) -> dict[Side, Timing]:
    """The timing of each side over a run folder, or over a file of dialogues (ours or from elsewhere), one a line.

    An AnthrolabError names the file, the line and the fix.
    """
    parts: dict[Side, list[Timing]] = {side: [] for side in sides}
    for where, dialogue in _dialogues_at(path):
        try:
            for side in sides:
                parts[side].append(measure([dialogue], side))
        except TimingError as e:
            raise TimingError(f"{where}: {e}") from e
    if not any(parts.values()):
        raise FileError(f"{path}: holds no dialogue; generate some with `anthrolab run`, or name another file")
    return {side: pool(found) for side, found in parts.items()}


def timing_row(timing: Timing) -> dict[str, object]:
    """All measures by name, for JSON and CSV: seconds end in _s, shares (0 to 1) in _share or _rate; None: not measured."""
    a = timing.asks or Asks()
    known = a.typing + a.waiting > 0
    told = {
        "dialogues_with_asks": a.dialogues, "asks": a.asks, "ask_errors": a.errors, "decisions": a.decided,
        "silent": a.silent, "silence_rate": a.silence_rate, "woken": a.woken, "read": a.read,
        "read_silent": a.read_silent, "read_silent_rate": a.read_silent_rate, "came_back": a.came_back,
        "came_back_rate": a.came_back_rate, "interrupted": a.interrupted, "interruption_rate": a.interruption_rate,
        "interrupted_typing": a.typing if known else None, "interrupted_waiting": a.waiting if known else None,
        "typing_rate": a.typing_rate,
        "kept": a.keep, "revised": a.revise, "replaced": a.replace, "withdrawn": a.withdraw,
        "revision_rate": a.revision_rate, "sent_and_asked": a.sent, "crossed": a.crossed, "overlap_rate": a.overlap_rate,
    }  # fmt: skip
    return {
        "dialogues": timing.dialogues, "messages": timing.messages,
        "replies": timing.replies.n, **_quantiles("reply_delay", timing.replies),
        f"reply_under_{FAST_S}s_share": timing.replies.under(FAST_S),
        f"reply_over_{SLOW_S}s_share": timing.replies.over(SLOW_S),
        "follow_ups": timing.follow_ups.n, **_quantiles("follow_up_gap", timing.follow_ups),
        "bursts": len(timing.bursts), "mean_burst": timing.mean_burst,
        "burst_2_or_more_share": timing.long_burst_share, "burst_lengths": timing.burst_lengths,
        **(told if timing.asks else dict.fromkeys(told)), "guarded": timing.guarded,
    }  # fmt: skip


def timing_text(timings: Mapping[Side, Timing], title: str) -> PrintedTable:
    """A row for each measure and a column for each side, for a terminal; every share says of how many."""
    columns = {{"evaluated": "Tested", "partner": "Partner"}[side]: _lines(t) for side, t in timings.items()}
    labels = list(next(iter(columns.values())))
    frame = pl.DataFrame({"Measure": labels, **{name: list(lines.values()) for name, lines in columns.items()}})
    return plain_table("timing", title, "", frame)


def timing_table(runs: Sequence[Measured]) -> PrintedTable:
    """The report's table: two rows for each run, the tested side and its partner, over all finished dialogues."""
    rows = []
    for m, side, t in _sides(runs):
        a = t.asks or Asks()
        rows.append(
            {
                "System, side": f"{m.system}, tested" if side == "evaluated" else f"{m.partner}, partner",
                "Run": m.run,
                "n": f"{t.messages} in {t.dialogues}",
                "Reply delay, s": f"{_plain(t.replies.quantile(0.5))} ({_quartiles(t.replies)})" if t.replies.n else NO_VALUE,
                "Mean burst": _mean(t.mean_burst),
                "Bursts of 2+": _of(sum(length > 1 for length in t.bursts), len(t.bursts)),
                "Silent": _of(a.silent, a.decided),
                "Read but silent": _of(a.read_silent, a.read),
                "Interrupted": _of(a.interrupted, a.woken),
                "Revised": _of(a.revise + a.replace, a.reconsidered),
                "Overlap": _of(a.crossed, a.sent),
                "Errors": _of(a.errors, a.asks),
                "Guarded": _plain(t.guarded),
            }
        )
    return plain_table(
        "timing-by-side", "Timing by side",
        "Over all finished dialogues of a run, valid or not. n: own messages and dialogues; the given opener is nobody's own message.",
        pl.DataFrame(rows),
        [
            "Reply delay: median (quartiles) of the time from the partner's last message to the answer. Burst: own messages in a row. "
            "Silent: decisions to send nothing, of all decisions. Read but silent: the same, of the decisions on a message of the partner.",
            "Interrupted: messages of the partner that came while an own draft was unsent. Revised: of such drafts those revised or "
            "replaced; the others were kept or withdrawn. Overlap: own messages sent while the partner held an unsent draft. "
            f"Errors (replies that broke the contract) and drafts dropped by a guard are no silence. {NO_VALUE}: not measured.",
        ],
    )  # fmt: skip


def timing_frame(runs: Sequence[Measured]) -> pl.DataFrame:
    """All measures of the report's rows as strings, for CSV; an empty cell: not measured."""
    rows = []
    for m, side, t in _sides(runs):
        system = m.system if side == "evaluated" else m.partner
        lengths = " ".join(f"{length}:{n}" for length, n in t.burst_lengths.items())
        measures = {**timing_row(t), "burst_lengths": lengths}
        rows.append({"run": m.run, "side": side, "system": system} | {k: "" if v is None else str(v) for k, v in measures.items()})
    return pl.DataFrame(rows)


def delay_figure(runs: Sequence[Measured]) -> "Figure | None":
    """The share of replies that came within a time (seconds on a logarithmic axis); None if nobody replied.

    A line for each side that replied: the tested one solid, its partner dotted in the same colour.
    """
    from plotly.graph_objects import Figure, Scatter

    colours = dict(zip([m.run for m in runs], STRONG * (1 + len(runs)), strict=False))
    figure = Figure()
    slowest = SLOW_S
    for m, side, t in _sides(runs):
        if not t.replies.n:
            continue
        tested = side == "evaluated"
        name = shown_name(f"tested: {m.system} ({m.run})" if tested else f"partner: {m.partner} ({m.run})")
        times = sorted(set(t.replies.seconds))
        slowest = max(slowest, times[-1])
        figure.add_trace(
            Scatter(
                x=[max(s, _ZERO_AT) for s in (times[0], *times)],
                y=[0.0, *(sum(s <= limit for s in t.replies.seconds) / t.replies.n for limit in times)],
                customdata=[times[0], *times], mode="lines", name=f"{name}, {t.replies.n} replies",
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
    figure.update_yaxes(title_text="Share of replies within that time", tickformat=".0%", range=[0, 1.03], showgrid=True, gridcolor=GRID)
    return figure


def _dialogues_at(path: Path) -> Iterator[tuple[str, Dialogue]]:
    """The dialogues of a run folder or a file, each with where it stands. A byte order mark and blank lines are passed over."""
    if path.is_dir():
        run = Run(path)
        run.manifest()
        for dialogue in run.dialogues().values():
            yield str(path / "dialogues.jsonl"), dialogue
        return
    try:
        with open(path, "rb") as f:
            for number, line in enumerate(f, 1):
                text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if text.strip():
                    yield f"{path}: line {number}", _dialogue(text, f"{path}: line {number}")
    except OSError as e:
        raise FileError(f"{path}: cannot be read ({e.strerror}); check the path and its permissions") from e


def _dialogue(line: bytes, where: str) -> Dialogue:
    try:
        return Dialogue.model_validate_json(line)
    except ValidationError as e:
        raise RunError(f"{where}: {explain(e, Dialogue)[0]}; mend that line or take it out") from e


def _sides(runs: Iterable[Measured]) -> Iterator[tuple[Measured, Side, Timing]]:
    for m in runs:
        for side in SIDES:
            yield m, side, measure(m.dialogues.values(), side)


def _lines(t: Timing) -> dict[str, str]:
    """What a terminal shows of a timing, by label."""
    a = t.asks or Asks()
    return {
        "Dialogues (with a log of asks)": f"{t.dialogues} ({a.dialogues})",
        "Own messages": str(t.messages),
        "Replies": str(t.replies.n),
        "  delay, median": _plain(t.replies.quantile(0.5), unit=" s"),
        "  delay, quartiles": _quartiles(t.replies, unit=" s"),
        "  90% came within": _plain(t.replies.quantile(0.9), unit=" s"),
        f"  under {FAST_S} s": _of(sum(s < FAST_S for s in t.replies.seconds), t.replies.n),
        f"  over {SLOW_S} s": _of(sum(s > SLOW_S for s in t.replies.seconds), t.replies.n),
        "Follow-ups": str(t.follow_ups.n),
        "  gap, median": _plain(t.follow_ups.quantile(0.5), unit=" s"),
        "  gap, quartiles": _quartiles(t.follow_ups, unit=" s"),
        "Bursts": str(len(t.bursts)),
        "  mean length": _mean(t.mean_burst),
        "  of 2 or more": _of(sum(length > 1 for length in t.bursts), len(t.bursts)),
        "  by length": ", ".join(f"{n} of {length}" for length, n in t.burst_lengths.items()) or NO_VALUE,
        "Silent decisions": _of(a.silent, a.decided),
        "Read but silent": _of(a.read_silent, a.read),
        "  came back later": _of(a.came_back, a.read_silent),
        "Interrupted with a draft": _of(a.interrupted, a.woken),
        "  while typing": _of(a.typing, a.typing + a.waiting),
        "  kept": _of(a.keep, a.reconsidered),
        "  revised": _of(a.revise, a.reconsidered),
        "  replaced": _of(a.replace, a.reconsidered),
        "  withdrawn": _of(a.withdraw, a.reconsidered),
        "Overlap with a partner's draft": _of(a.crossed, a.sent),
        "Errors of the contract": _of(a.errors, a.asks),
        "Drafts dropped by a guard": _plain(t.guarded),
    }


def _quantiles(name: str, times: Times) -> dict[str, float | None]:
    return {f"{name}_{key}_s": times.quantile(q) for key, q in (("median", 0.5), ("q1", 0.25), ("q3", 0.75), ("p90", 0.9))}


def _quartiles(times: Times, unit: str = "") -> str:
    return f"{_plain(times.quantile(0.25))} to {_plain(times.quantile(0.75))}{unit}" if times.n else NO_VALUE


def _plain(value: float | None, unit: str = "") -> str:
    """A number with at most one place; `NO_VALUE` for None."""
    return NO_VALUE if value is None else f"{round(value, 1):.12g}{unit}"


def _mean(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.2f}"


def _of(part: int, whole: int) -> str:
    """A share in percent and of how many; `NO_VALUE` of nothing."""
    return f"{as_percent(ratio(part, whole), 1)} of {whole}" if whole else NO_VALUE

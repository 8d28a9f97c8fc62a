"""Timing in print: the table of the command line, and the table of the report. Descriptive, no scores."""

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import polars as pl
from pydantic import ValidationError

from anthrolab.bench.printing import as_percent, ratio
from anthrolab.bench.store import Run, RunError
from anthrolab.files import FileError
from anthrolab.metrics.asks import Asks, share
from anthrolab.metrics.timing import FAST_S, SLOW_S, Side, Times, Timing, TimingError, measure, pool
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.show.measured import Measured
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table
from anthrolab.yaml_files import explain

SIDES: tuple[Side, ...] = get_args(Side)


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
        "unsent": a.unsent, "unsent_replies": a.unsent_replies, "unsent_follow_ups": a.unsent_follow_ups,
        "dialogues_with_asks": a.dialogues, "asks": a.asks, "ask_errors": a.errors, "decisions": a.decided,
        "silent": a.silent, "silence_rate": a.silence_rate, "woken": a.woken, "read": a.read,
        "read_silent": a.read_silent, "read_silent_rate": a.read_silent_rate, "came_back": a.came_back,
        "came_back_rate": a.came_back_rate, "interruptions": a.interruptions, "interruption_rate": a.interruption_rate,
        "interruptions_typing": a.typing if known else None, "interruptions_waiting": a.waiting if known else None,
        "typing_rate": a.typing_rate, "kept": a.keep, "revised": a.revise, "replaced": a.replace,
        "withdrawn": a.withdraw, "lost": a.lost, "revision_rate": a.revision_rate, "sent_and_asked": a.sent,
        "crossed": a.crossed, "overlap_rate": a.overlap_rate,
    }  # fmt: skip
    replies, bursts = timing.replies, len(timing.bursts)
    return {
        "dialogues": timing.dialogues, "messages": timing.messages,
        "replies": replies.n, **_quantiles("reply_delay", replies),
        f"reply_under_{FAST_S}s_share": share(replies.under(FAST_S), replies.n),
        f"reply_over_{SLOW_S}s_share": share(replies.over(SLOW_S), replies.n),
        "follow_ups": timing.follow_ups.n, **_quantiles("follow_up_gap", timing.follow_ups),
        **(told if timing.asks else dict.fromkeys(told)), "guarded": timing.guarded,
        "bursts": bursts, "mean_burst": timing.mean_burst,
        "burst_2_or_more_share": share(timing.long_bursts, bursts), "burst_lengths": timing.burst_lengths,
    }  # fmt: skip


def timing_text(timings: Mapping[Side, Timing], title: str) -> PrintedTable:
    """A row for each measure and a column for each side, for a terminal; every share and quantile says of how many."""
    columns = {{"evaluated": "Tested", "partner": "Partner"}[side]: _lines(t) for side, t in timings.items()}
    labels = list(next(iter(columns.values())))
    frame = pl.DataFrame({"Measure": labels, **{name: list(lines.values()) for name, lines in columns.items()}})
    return plain_table("timing", title, "", frame)


def timing_table(runs: Sequence[Measured]) -> PrintedTable:
    """The report's table: two rows for each run, the tested side and its partner, over all finished dialogues."""
    rows = []
    for m, side, t in sides_of(runs):
        a = t.asks or Asks()
        rows.append(
            {
                "System, side": f"{m.system}, tested" if side == "evaluated" else f"{m.partner}, partner",
                "Run": m.run,
                "Messages": f"{t.messages} in {t.dialogues}",
                "Reply delay, s": _spread(t.replies),
                "Unsent replies": _plain(a.unsent_replies if t.asks else None),
                "Bursts of 2+": _of(t.long_bursts, len(t.bursts)),
                "Silent": _of(a.silent, a.decided),
                "Read but silent": _of(a.read_silent, a.read),
                "Interruptions": _of(a.interruptions, a.woken),
                "Rewritten": _of(a.revise + a.replace, a.reconsidered),
                "Overlap": _of(a.crossed, a.sent),
                "Errors": _of(a.errors, a.asks),
                "Guarded": _plain(t.guarded),
            }
        )
    return plain_table(
        "timing-by-side", "Timing by side",
        "Over all finished dialogues of a run, valid or not. Messages: own ones, in how many dialogues; the given opener is nobody's own.",
        pl.DataFrame(rows),
        [
            "Reply delay: median (quartiles) of the time from the partner's last message to the answer, over the n replies that were "
            "sent. Unsent replies: decided on but still unsent when the chat stopped, at its horizon or message limit; they have no "
            "delay, and slow ones are cut off first, so many of them mean that the delays lean to the fast. Burst: own messages in a row. "
            "Silent: decisions to send nothing, of all decisions. Read but silent: the same, of the decisions on a message of the partner.",
            "Interruptions: messages of the partner that came while an own draft was unsent, of all that asked for a decision; one draft "
            "can be interrupted several times. Rewritten: of the interruptions with a decision those after which the draft was revised or "
            "replaced; else it was kept or withdrawn. Overlap: own messages sent while the partner held an unsent draft. "
            f"Errors (replies that broke the contract) and drafts dropped by a guard are no silence. {NO_VALUE}: not measured.",
        ],
    )  # fmt: skip


def timing_frame(runs: Sequence[Measured]) -> pl.DataFrame:
    """All measures of the report's rows as strings, for CSV; an empty cell: not measured."""
    rows = []
    for m, side, t in sides_of(runs):
        system = m.system if side == "evaluated" else m.partner
        lengths = " ".join(f"{length}:{n}" for length, n in t.burst_lengths.items())
        measures = {**timing_row(t), "burst_lengths": lengths}
        rows.append({"run": m.run, "side": side, "system": system} | {k: "" if v is None else str(v) for k, v in measures.items()})
    return pl.DataFrame(rows)


def sides_of(runs: Iterable[Measured]) -> Iterator[tuple[Measured, Side, Timing]]:
    """Each run with each of its sides and that side's timing, the tested one first."""
    for m in runs:
        for side in SIDES:
            yield m, side, measure(m.dialogues.values(), side)


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


def _lines(t: Timing) -> dict[str, str]:
    """What a terminal shows of a timing, by label."""
    a = t.asks or Asks()
    return {
        "Dialogues (with a log of asks)": f"{t.dialogues} ({a.dialogues})",
        "Own messages": str(t.messages),
        "Replies sent": str(t.replies.n),
        "  delay, s: median (quartiles)": _spread(t.replies),
        "  delay, s: 90% within": _with_n(_plain(t.replies.quantile(0.9)), t.replies),
        f"  under {FAST_S} s": _of(t.replies.under(FAST_S), t.replies.n),
        f"  over {SLOW_S} s": _of(t.replies.over(SLOW_S), t.replies.n),
        "  replies unsent at the end": _plain(a.unsent_replies if t.asks else None),
        "Follow-ups sent": str(t.follow_ups.n),
        "  gap, s: median (quartiles)": _spread(t.follow_ups),
        "  follow-ups unsent at the end": _plain(a.unsent_follow_ups if t.asks else None),
        "Bursts": str(len(t.bursts)),
        "  mean length": _mean(t.mean_burst),
        "  of 2 or more": _of(t.long_bursts, len(t.bursts)),
        "  by length": ", ".join(f"{n} of {length}" for length, n in t.burst_lengths.items()) or NO_VALUE,
        "Silent decisions": _of(a.silent, a.decided),
        "Read but silent": _of(a.read_silent, a.read),
        "  came back later": _of(a.came_back, a.read_silent),
        "Interruptions of a draft": _of(a.interruptions, a.woken),
        "  while typing": _of(a.typing, a.typing + a.waiting),
        "  draft kept": _of(a.keep, a.reconsidered),
        "  draft revised": _of(a.revise, a.reconsidered),
        "  draft replaced": _of(a.replace, a.reconsidered),
        "  draft withdrawn": _of(a.withdraw, a.reconsidered),
        "  draft lost to an error": _plain(a.lost if t.asks else None),
        "Overlap with a partner's draft": _of(a.crossed, a.sent),
        "Errors of the contract": _of(a.errors, a.asks),
        "Drafts dropped by a guard": _plain(t.guarded),
    }


def _quantiles(name: str, times: Times) -> dict[str, float | None]:
    levels = {"median": 0.5, "q1": 0.25, "q3": 0.75, "p90": 0.9}
    return {f"{name}_{key}_s": times.quantile(level) for key, level in levels.items()}


def _spread(times: Times) -> str:
    """Median and quartiles in seconds, and of how many."""
    median, low, high = (_plain(times.quantile(q)) for q in (0.5, 0.25, 0.75))
    return _with_n(f"{median} ({low} to {high})", times)


def _with_n(value: str, times: Times) -> str:
    return f"{value}, n = {times.n}" if times.n else NO_VALUE


def _plain(value: float | None) -> str:
    """A number with at most one place; `NO_VALUE` for None."""
    return NO_VALUE if value is None else f"{round(value, 1):.12g}"


def _mean(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.2f}"


def _of(part: int, whole: int) -> str:
    """A share in percent and of how many; `NO_VALUE` of nothing."""
    return f"{as_percent(ratio(part, whole), 1)} of {whole}" if whole else NO_VALUE

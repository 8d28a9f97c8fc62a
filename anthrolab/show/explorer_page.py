"""The failure explorer without a kernel: one HTML file that opens offline, and a list for readers without JavaScript."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from anthrolab.cards.library import Library
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.files import write_atomic
from anthrolab.show.beside import Case, case_html, chat_of, explorer_style, texts
from anthrolab.show.bubbles import Bubble, Chat
from anthrolab.show.failure_sources import Source, run_source
from anthrolab.show.failures import STATES, Failures, collect, counted_cases, failing_cases
from anthrolab.show.measured import Measured
from anthrolab.show.pages import asset, environment
from anthrolab.show.records import hints_by_source

MAX_BYTES = 12_000_000
"""Of dialogues and failures in a page; what does not fit is counted on it."""
LISTED = 24
"""Cases that are shown where there is neither a kernel nor JavaScript."""

_PLAIN = ("opener", "turn", "index", "kept", "unsent", "became")


def write_explorer_page(
    measured: Sequence[Measured | Source], out: Path, *, library: Library | None = None, max_bytes: int = MAX_BYTES
) -> Path:
    """Write the explorer of some judged runs (or sources) to the file `out`; returns its path.

    library: the cards, for scenario titles. Passing cases come after failing ones, and chats that would make the data
    larger than `max_bytes` are left out; the page says how many. The same inputs give the same bytes.
    """
    sources = [m if isinstance(m, Source) else run_source(m, library) for m in measured]
    failures = collect(sources)
    data, left_out = page_data(failures, max_bytes)
    page = environment().get_template("explorer.html").render(
        title=f"anthrolab failures: {', '.join(dict.fromkeys(s.measured.run if s.measured else s.name for s in sources))}",
        names=[s.name for s in sources],
        css=Markup(explorer_style()),
        notes=[(s.name, s.note) for s in sources if s.note],
        left_out=left_out,
        data=Markup(data),
        js=Markup(asset("explorer.js")),
        listed=Markup(failures_list(failures, style=False)),
    )  # fmt: skip
    write_atomic(out, page)
    return out


def failures_list(failures: Failures, *, most: int = LISTED, style: bool = True) -> str:
    """Failing cases to read, the first of every system first, each in a fold-out, as an HTML fragment."""
    found = failing_cases(failures.rows)
    rank = pl.int_range(pl.len()).over("source", "system")
    shown = found.sort(rank, "case").head(most)
    cases = []
    for row in shown.iter_rows(named=True):
        case = failures.cases.row(row["case"], named=True)
        own = failures.rows.filter(pl.col("case") == row["case"])
        html = case_html(failures, case, set(own.select("id", "message_index").iter_rows()))
        cases.append((case, row["failures"], ", ".join(row["ids"]), Markup(html)))
    return environment().get_template("failures_list.html").render(
        css=Markup(explorer_style()) if style else "", cases=cases, failing=found.height, counted=counted_cases(failures.cases), failures=failures.rows.height,
    )  # fmt: skip


def page_data(failures: Failures, max_bytes: int = MAX_BYTES) -> tuple[str, dict[str, int]]:
    """What the page's script reads, as JSON that may stand in a script element; and how much is left out of it:
    {"chats": 0, "cases": 0}. Failing cases come first, then the others, which may stand beside one."""
    by_case = failures.rows.partition_by("case", as_dict=True, include_key=False)
    order = failures.cases.sort(pl.col("failures") == 0, "case")
    room, entries = max_bytes, []
    for case in order.iter_rows(named=True):
        entry = _entry(case, by_case.get((case["case"],)))
        room -= len(_encoded(entry))
        if room < 0:
            break
        entries.append((case, entry))
    cases, chats = [], 0
    for case, entry in entries:
        short = whole = _encoded(entry)
        if (case["case_id"], case["sample"]) in failures.sources[case["number"]].dialogues:
            chat = chat_of(failures, case) if room > 0 else None
            whole = _encoded(entry | {"chat": _chat(chat, entry["fails"])}) if chat else short
            room -= len(whole) - len(short)
            if chat is None or room < 0:
                whole, room, chats = short, 0, chats + 1
        cases.append(whole)
    sources = [{"name": s.name, "note": s.note, "playable": s.playable, "judge": s.measured.judge_label if s.measured else "", "worded": s.measured is not None} for s in failures.sources]
    planned = failures.cases.group_by("number", "system", "state", maintain_order=True).len()
    head = _encoded({
        "sources": sources, "texts": texts(failures), "constraints": texts(failures, ""), "categories": CATEGORIES,
        "states": STATES, "planned": list(planned.iter_rows()), "hints": _hints(failures),
    })  # fmt: skip
    data = b'{"head": %s, "cases": [%s]}' % (head, b",\n".join(cases))
    return data.decode("utf-8"), {"chats": chats, "cases": order.height - len(entries)}


def _hints(failures: Failures) -> list[dict[str, str]]:
    """For every source the suggested repair of each id that fails there."""
    by_source = hints_by_source(failures.sources)
    ids = failures.rows.group_by("source", maintain_order=True).agg(pl.col("id").unique().sort())
    failing = dict(ids.iter_rows())
    return [
        {id: by_source[s.name].of(id, s.measured.rubric) for id in failing.get(s.name, ())} if s.measured else {}
        for s in failures.sources
    ]


def _encoded(value: Any) -> bytes:
    """JSON without what could end a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode("utf-8")


def _entry(case: Case, rows: pl.DataFrame | None) -> dict[str, Any]:
    """A case without its chat; `fails` has [by the gate?, id, turn, message index, reason] of every failure."""
    fails = []
    if rows is not None:
        shown = rows.select(pl.col("kind") == "gate", "id", "turn_index", "message_index", "reason")
        fails = [list(row) for row in shown.iter_rows()]
    names = ("number", "run", "judge", "system", "case_id", "sample", "category", "role", "valid", "state", "dialogue_id", "names")
    return {name: case[name] for name in names if case[name] is not None} | {"fails": fails}


def _chat(chat: Chat, fails: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """A chat for the script: what is said where, and the findings that are no failures of the case (`extra`)."""
    known = {(gate, id, index) for gate, id, _, index, _ in fails}
    found = [(b.index, f) for b in chat.bubbles for f in b.findings] + [(None, f) for f in chat.below]
    extra = [[f.id, index, f.text, f.reason, f.by, f.partner] for index, f in found if f.partner or (f.by == "gate", f.id, index) not in known]
    shown = {name: getattr(chat, name) for name in ("title", "relationship", "day", "tested", "partner", "outcome", "good", "silences")}
    notes = [[note.title, note.lines] for note in chat.notes]
    return shown | {"notes": notes, "extra": extra, "bubbles": [_bubble(b) for b in chat.bubbles]}


def _bubble(bubble: Bubble) -> dict[str, Any]:
    plain = {name: value for name in _PLAIN if (value := getattr(bubble, name)) not in (None, False) or name == "index"}
    return {"tested": bubble.tested, "name": bubble.name, "at": bubble.at, "text": bubble.text} | plain

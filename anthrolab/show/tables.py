"""Printed tables: the paper's Tables 7-11 with published and measured blocks, as HTML, Markdown and plain text."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import polars as pl

from anthrolab.bench.published import published_table
from anthrolab.show.blocks import Block

if TYPE_CHECKING:
    from great_tables import GT

NO_VALUE = "–"
PUBLISHED_COLOUR, PUBLISHED_BAND = "#f6f7f9", "#dfe4ea"
MEASURED_COLOUR, MEASURED_BAND = "#fff7e0", "#ffdf8e"
_ACC_COLUMNS = {7: ("ACC", "Turn ACC", "Holistic ACC"), 8: (), 9: "all", 10: (), 11: "all"}
_CAPTIONS = {
    7: (
        "Overall results",
        "ACC, Holistic ACC: share of the valid cases in which every assessed checkbox passes (of the whole case; of the "
        "dialogue card). Turn ACC: mean over cases of the share of turns that pass. Score: 0 to 100, half from the "
        "turns, half from the dialogue card. Per-turn, Holistic: mean weighted scores, 0 to 1.",
    ),
    8: (
        "Score by dimension",
        "Mean share of passed checkboxes, 0 to 1. D1 to D5 are averaged over all evaluated turns, E1 to E5 over cases.",
    ),
    9: (
        "Strict acceptance by dimension",
        "Share of evaluated turns (D1 to D5) and of valid cases (E1 to E5) in which every assessed checkbox of the "
        "dimension passes, in percent.",
    ),
    10: ("Score by scenario category", "Mean Score of the valid cases of the category, 0 to 100."),
    11: (
        "Strict acceptance by scenario category",
        "Share of the valid cases of the category in which every assessed checkbox passes, in percent.",
    ),
}
PLANNED_BY_CATEGORY = (
    "Sport 8, Relation 8, Interest 10, Pet/Fam. 8, Parenting 8, Work 10, Emotion 10, News 8, Daily 10, Game 6, "
    "Tech 6, Finance 8"
)
"""Cases planned in the paper's benchmark: two for each of its 50 bindings."""


@dataclass(frozen=True)
class PrintedTable:
    """A table ready for print.

    frame: strings; the first column is Model. headings, published: the block's heading and kind, one per row.
    Rows with the same heading stand together. labels: header texts of the columns that the paper's table does
    not have. marked: (row, column) -> "best" or "second", within the published block only.
    """

    name: str
    title: str
    caption: str
    frame: pl.DataFrame
    headings: list[str]
    published: list[bool]
    notes: list[str]
    labels: dict[str, str]
    marked: dict[tuple[int, str], str]


def score_table(number: int, blocks: Sequence[Block]) -> PrintedTable:
    """Table 7, 8, 9, 10 or 11 of the paper with all blocks, intervals and marks."""
    partly = any(block.partly for block in blocks)
    printed = published_table(number).columns[1:]
    columns: list[str] = []
    labels: dict[str, str] = {}
    for column in printed:
        columns.append(column)
        if number == 7 and column in ("ACC", "Holistic ACC", "Score"):
            columns.append(f"{column}, 95% interval")
            labels[columns[-1]] = "95% interval"
        if column == "ACC" and partly:
            columns.append("ACC of fully assessed cases")
            labels[columns[-1]] = "ACC of fully assessed cases"
    rows, headings, published = [], [], []
    for block in blocks:
        for row in block.tables[number].iter_rows(named=True):
            rows.append([row["Model"], *(_cell(block, number, row, column) for column in columns)])
            headings.append(block.heading)
            published.append(block.published)
    title, caption = _CAPTIONS[number]
    return PrintedTable(
        name=f"table{number}",
        title=f"Table {number}. {title}",
        caption=caption,
        frame=pl.DataFrame(rows, schema=dict.fromkeys(("Model", *columns), pl.String), orient="row"),
        headings=headings,
        published=published,
        notes=_notes(number, blocks, partly),
        labels=labels,
        marked=_marked(number, blocks),
    )


def plain_table(name: str, title: str, caption: str, frame: pl.DataFrame, notes: Sequence[str] = ()) -> PrintedTable:
    """Any small frame as a printed table without blocks; numbers are written with the places their column needs."""
    text = frame.select(_written(frame[c]) for c in frame.columns)
    return PrintedTable(name, title, caption, text, [], [], list(notes), {}, {})


NOTEBOOK_CSS = ".gt_table { table-layout: auto !important; } .gt_row.gt_right, .gt_row.gt_stub { white-space: nowrap; }"
"""JupyterLab gives all columns the same width, which breaks names and intervals over several lines."""


def great_table(table: PrintedTable) -> "GT":
    """The table as a great_tables object, which notebooks show and `as_raw_html` prints; every cell is escaped."""
    from great_tables import GT, html, loc, style
    from great_tables._text import BaseText

    frame = table.frame.select(pl.all().map_elements(escape, return_dtype=pl.String, skip_nulls=False))
    stub = frame.columns[0]
    if table.headings:
        frame = frame.with_columns(pl.Series("block", [escape(h) for h in table.headings]))
    labels: dict[str, str | BaseText] = {c: table.labels.get(c, c) for c in table.frame.columns[1:]}
    numbers = [c for c in table.frame.columns[1:] if _numeric(table.frame[c])]
    shown = (
        GT(frame, rowname_col=stub, id=table.name, groupname_col="block" if table.headings else None)
        .tab_header(title=table.title, subtitle=table.caption or None)
        .tab_stubhead(stub)
        .cols_label(labels)
        .cols_align("left")
        .cols_align("right", columns=numbers)
        .opt_align_table_header("left")
        .tab_options(
            table_width="100%", table_font_size="13px", table_font_color="#1d2530", heading_title_font_size="17px",
            heading_title_font_weight="600", heading_subtitle_font_size="13px", data_row_padding="3px",
            data_row_padding_horizontal="6px", column_labels_font_weight="600", source_notes_font_size="12px",
            row_group_font_weight="600", table_border_top_style="none", table_border_bottom_color="#9aa5b1",
            source_notes_padding="2px",
        )
        .opt_css(NOTEBOOK_CSS)
    )  # fmt: skip
    for note in table.notes:
        shown = shown.tab_source_note(html(escape(note)))
    for kind, colour, band in ((True, PUBLISHED_COLOUR, PUBLISHED_BAND), (False, MEASURED_COLOUR, MEASURED_BAND)):
        rows = [i for i, p in enumerate(table.published) if p is kind]
        if rows:
            shown = shown.tab_style(style.fill(colour), [loc.body(rows=rows), loc.stub(rows=rows)])
            shown = shown.tab_style(style.fill(band), loc.row_groups(rows=rows))
    for (row, column), mark in table.marked.items():
        how = style.text(weight="bold") if mark == "best" else style.text(decorate="underline")
        shown = shown.tab_style(how, loc.body(columns=column, rows=[row]))
    return shown


def as_html(table: PrintedTable) -> str:
    """The table as an HTML fragment with its own style, ids fixed by the table's name."""
    html: str = great_table(table).as_raw_html()
    return html


def as_markdown(table: PrintedTable) -> str:
    """The table as Markdown: a heading, the caption, one table for each block, the notes."""
    lines = [f"## {table.title}", "", *([table.caption, ""] if table.caption else [])]
    for heading, rows in _by_block(table):
        lines += [f"**{_bars(heading)}**", ""] if heading else []
        lines += ["| " + " | ".join(map(_bars, table.frame.columns)) + " |"]
        lines += ["|" + "|".join("---:" if _numeric(table.frame[c]) else "---" for c in table.frame.columns) + "|"]
        lines += ["| " + " | ".join(map(_bars, row)) + " |" for row in rows]
        lines.append("")
    return "\n".join([*lines, *(f"{_bars(note)}\n" for note in table.notes)])


def as_text(table: PrintedTable) -> str:
    """The table for a terminal: a title, then each block under its heading, columns aligned.

    Columns that the paper's table does not have are left out, so that it fits in some 100 characters.
    """
    places = [i for i, column in enumerate(table.frame.columns) if column not in table.labels]
    columns = [table.frame.columns[i] for i in places]
    widths = [max(map(len, [column, *table.frame[column]])) for column in columns]

    def line(row: Sequence[str]) -> str:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        return "  ".join([row[0].ljust(widths[0]), *cells[1:]]).rstrip()

    lines = [table.title]
    for heading, rows in _by_block(table):
        lines += ["", *([heading] if heading else []), line(columns), *(line([row[i] for i in places]) for row in rows)]
    explained = [note for note in table.notes if note.startswith("*")]
    return "\n".join([*lines, *(["", *explained] if explained else [])])


def _by_block(table: PrintedTable) -> list[tuple[str, list[tuple[str, ...]]]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for heading, row in zip(table.headings or [""] * table.frame.height, table.frame.iter_rows(), strict=True):
        found.setdefault(heading, []).append(row)
    return list(found.items())


def _cell(block: Block, number: int, row: dict[str, str], column: str) -> str:
    if column.endswith(", 95% interval"):
        return block.intervals[row["Model"]].get(column.removesuffix(", 95% interval"), "") or NO_VALUE
    if column == "ACC of fully assessed cases":
        return (block.fully_assessed or {}).get(row["Model"], "") or NO_VALUE
    strict = _ACC_COLUMNS[number]
    mark = "*" if block.partly and row[column] and (strict == "all" or column in strict) else ""
    return row[column] + mark or NO_VALUE


def _notes(number: int, blocks: Sequence[Block], partly: bool) -> list[str]:
    notes = []
    if number == 7:
        notes.append(
            "95% intervals: Wilson over cases for rates (bootstrap by binding where cases share one), bootstrap by binding for Score. The paper prints no scores of "
            "single cases, so its Score has none."
        )
    if partly:
        where = {7: "in the column beside ACC", 11: "in the column beside ACC"}.get(number, "in Table 7")
        starred = "" if _ACC_COLUMNS[number] == () else f"* Over the assessed checkboxes only; ACC of cases with every checkbox assessed is {where}. "
        notes.append(
            f"{starred}A judge that leaves checkboxes unassessed gives higher values than one that answers them all, "
            "so these rows cannot be compared with the published ones."
        )
    if number in (10, 11):
        notes.append(f"Cases planned by category in the paper: {PLANNED_BY_CATEGORY}.")
        for block in blocks:
            if block.cases is not None:
                counts = ", ".join(f"{category} {n}" for category, n in block.cases.items())
                notes.append(f"Valid cases by category in {block.key}: {counts or 'none'}.")
    notes.append(f"Bold: best, underlined: second, both within the published block. {NO_VALUE}: no value.")
    return notes


def _marked(number: int, blocks: Sequence[Block]) -> dict[tuple[int, str], str]:
    """Best and second-best cells of the published block, as in the paper's Table 7."""
    found: dict[tuple[int, str], str] = {}
    first = 0
    for block in blocks:
        table = block.tables[number]
        if block.published:
            for column in table.columns[1:]:
                values = [float(v.rstrip("%")) for v in table[column]]
                ranks = sorted(set(values), reverse=True)[:2]
                for i, value in enumerate(values):
                    if value in ranks:
                        found[first + i, column] = "best" if value == ranks[0] else "second"
        first += table.height
    return found


def _written(column: pl.Series) -> pl.Series:
    """A column as text: whole numbers as they are, floats rounded to 4 places and then with equal places.

    A float above 0 that rounds to 0 is written <0.0001.
    """
    if not column.dtype.is_float():
        return column.cast(pl.String).fill_null("")
    rounded = [None if v is None else round(v, 4) for v in column]
    places = max((len(repr(v).split(".")[1]) for v in rounded if v is not None and "e" not in repr(v)), default=1)
    return pl.Series(column.name, [_float(v, places) for v in column], dtype=pl.String)


def _float(value: float | None, places: int) -> str:
    if value is None:
        return ""
    return "<0.0001" if 0 < value < 0.00005 else f"{value:.{places}f}"


def _numeric(column: pl.Series) -> bool:
    return all(v in (NO_VALUE, "", "no such case") or v.lstrip("<-")[:1].isdigit() for v in column)


def _bars(text: str) -> str:
    """Text that cannot end a cell of a Markdown table or start HTML in it."""
    return escape(text, quote=False).replace("|", "\\|").replace("\n", " ").replace("*", "\\*")

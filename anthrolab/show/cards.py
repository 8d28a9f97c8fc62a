"""The corpus on a page: figures and tables that show its holes, and cards to read. Card text is escaped everywhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from markupsafe import Markup, escape

from anthrolab.cards.library import Library
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.cards.statistics import (
    PERSONA_PARTS,
    QUOTA,
    corpus_counts,
    crossed,
    holes,
    persona_frame,
    scenario_frame,
    table6,
)
from anthrolab.files import write_atomic
from anthrolab.show.figures import GRID, STRONG, styled
from anthrolab.show.tables import PrintedTable, plain_table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

HOLE, FILLED = "#b42318", STRONG[1]
CROSSINGS = (
    ("age band", "gender"), ("relationship status", "age band"), ("occupation group", "age band"),
    ("horizon", "category"), ("relationship kind", "category"),
)  # fmt: skip
"""The pairs that are worth crossing: of personas first, then of scenarios."""

CARD_CSS = """
.card { font: 14px/1.55 "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif;
  color: #1d2530; border: 1px solid #d5dbe2; border-radius: 8px; margin: 0 0 8px; background: #fff; max-width: 1000px; }
.card > summary { cursor: pointer; padding: 7px 14px; overflow-wrap: anywhere; }
.card .quiet { color: #556; font-size: 13px; margin-left: 6px; }
.card dl { display: grid; grid-template-columns: minmax(110px, 170px) 1fr; gap: 3px 14px; margin: 0; padding: 4px 14px 12px; }
.card dl dl { padding: 0; border-left: 3px solid #e8ecf0; padding-left: 10px; grid-template-columns: minmax(90px, 140px) 1fr; }
.card dt { color: #556; font-weight: 400; }
.card dd { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
@media (max-width: 600px) { .card dl, .card dl dl { grid-template-columns: 1fr; } .card dd { min-width: 0; padding-left: 8px; } }
.card dd ul { margin: 0; padding-left: 18px; white-space: normal; }
""".strip()


def crossed_figure(library: Library, rows: str, columns: str) -> "Figure":
    """A map of how many cards have each pair of values; a pair that none has is red. See CROSSINGS."""
    from plotly.graph_objects import Figure, Heatmap

    table = crossed(persona_frame(library) if rows in PERSONA_PARTS else scenario_frame(library), rows, columns)
    names = table.columns[1:]
    counts = [list(row[1:]) for row in table.iter_rows()]
    most = max(1, *(n for row in counts for n in row))
    figure = Figure(
        Heatmap(
            x=names, y=table[rows].to_list(), z=counts, text=counts, texttemplate="%{text}", xgap=2, ygap=2, showscale=False,
            zmin=0, zmax=most, colorscale=[[0, "#fbdcd7"], [0.5 / most, "#fbdcd7"], [0.5 / most, "#e4edfb"], [1, FILLED]],
            hovertemplate=f"{rows}: %{{y}}<br>{columns}: %{{x}}<br>%{{z}} cards<extra></extra>",
        )
    )  # fmt: skip
    styled(figure)
    figure.update_layout(height=90 + 34 * table.height)
    figure.update_yaxes(autorange="reversed", title_text=rows.capitalize(), automargin=True, ticks="", showline=False)
    figure.update_xaxes(title_text=columns.capitalize(), side="bottom", automargin=True, ticks="", showline=False, type="category")
    return figure


def parts_figure(counts: pl.DataFrame, parts: Sequence[str]) -> "Figure":
    """Bars of the counts of each part, one part below the other; a value that no card has is marked with a red 0.

    counts: `corpus_counts`; parts: names in it.
    """
    from plotly.graph_objects import Bar, Figure

    own = counts.filter(pl.col("part").is_in(parts) & ((pl.col("value") != "other") | (pl.col("count") > 0)))
    figure = Figure(
        Bar(
            x=own["count"].to_list(), y=[[p.capitalize() for p in own["part"]], own["value"].to_list()], orientation="h",
            text=[f"<b style='color:{HOLE}'>0</b>" if n == 0 else str(n) for n in own["count"]], textposition="outside",
            marker_color=FILLED, cliponaxis=False, hovertemplate="%{y}: %{x}<extra></extra>",
        )
    )  # fmt: skip
    styled(figure)
    figure.update_layout(height=70 + 23 * own.height, margin={"r": 40})
    figure.update_yaxes(autorange="reversed", automargin=True, ticks="", tickfont={"size": 12}, dividercolor="#9aa5b1")
    figure.update_xaxes(title_text="Cards", showgrid=True, gridcolor=GRID, rangemode="tozero")
    return figure


def quota_figure(library: Library) -> "Figure":
    """Bindings of each category as bars, in the frame of what the benchmark has; what is missing stays white in red."""
    from plotly.graph_objects import Bar, Figure

    have = [sum(library.scenarios[b.scenario].category == c for b in library.bindings.values()) for c in QUOTA]
    missing = [max(0, want - n) for n, want in zip(have, QUOTA.values(), strict=True)]
    figure = Figure()
    for name, values, fill in (("there", have, FILLED), ("missing", missing, "white")):
        figure.add_trace(
            Bar(
                x=list(QUOTA), y=values, name=name, text=[n or "" for n in values], textposition="inside",
                marker={"color": fill, "line": {"color": FILLED if fill == FILLED else HOLE, "width": 1.5}},
                textangle=0, textfont={"color": "white" if fill == FILLED else HOLE}, hovertemplate=f"%{{x}}: %{{y}} {name}<extra></extra>",
            )
        )  # fmt: skip
    styled(figure)
    figure.update_layout(barmode="stack", height=330, bargap=0.35)
    figure.update_yaxes(title_text="Bindings", showgrid=True, gridcolor=GRID, dtick=1)
    figure.update_xaxes(title_text="Scenario category")
    return figure


def corpus_table6(library: Library) -> PrintedTable:
    """The corpus rows of the paper's Table 6 beside ours."""
    return plain_table("table6-corpus", "Table 6. The corpus", "What the paper says of its cards, and what these are.", table6(library))


def holes_table(library: Library) -> PrintedTable:
    """What is missing, the largest holes of each part first."""
    frame = holes(library).rename({"part": "What", "value": "Where", "have": "There", "want": "Wanted", "missing": "Missing"})
    caption = (
        "Cards and categories against the numbers of the paper's benchmark; values of a card's field, and pairs of age band "
        "and gender, that no card has. Education, region, setting, occupation and relationship are derived from the cards' words."
        if frame.height
        else "None: every number is reached, and every value has a card."
    )
    return plain_table("holes", "Holes in the corpus", caption, frame)


def cards_html(library: Library) -> str:
    """All cards as a list to unfold, with the style they need: personas with what they remember, then scenarios with who plays them."""
    played: dict[str, list[str]] = {key: [] for key in library.scenarios}
    for b in library.bindings.values():
        played[b.scenario].append(f"{b.id}: {library.personas[b.persona_a].name} / {library.personas[b.persona_b].name}")
    out = [Markup("<style>\n{}\n</style>").format(Markup(CARD_CSS))]
    for kind, cards in (("personas", library.personas), ("scenarios", library.scenarios)):
        out.append(Markup("<h3>{} {}</h3>").format(len(cards), kind))
        for card in cards.values():
            assert isinstance(card, Persona | Scenario)
            memories = {f"of {about}": m.lines() for (owner, about), m in library.memories.items() if owner == card.id}
            more = {"remembers": memories} if memories else {"played by": played.get(card.id)} if played.get(card.id) else {}
            out.append(Markup(card_html(card, **more)))
    return "\n".join(out)


def card_html(card: Persona | Scenario, **more: object) -> str:
    """One card to unfold: a line that says who or what it is, then every field by name. `more` adds fields."""
    if isinstance(card, Persona):
        title, about = card.name, f"{card.gender} {card.age} · {card.city} · {card.occupation}"
    else:
        title, about = card.title, f"{card.category} · {card.horizon_minutes} min · {card.relationship}"
    head = Markup('<summary><b>{}</b> <b lang="zh">{}</b><span class="quiet" lang="zh">{}</span></summary>').format(card.id, title, about)
    return Markup('<details class="card">{}{}</details>').format(head, _shown(card.model_dump(mode="json") | more))


def cards_page(library: Library) -> str:
    """A page of its own that opens offline: Table 6, the holes, and all cards."""
    from anthrolab.show.tables import as_html

    tables = (f'<div style="overflow-x: auto">{as_html(t)}</div>' for t in (corpus_table6(library), holes_table(library)))
    parts = (*tables, cards_html(library))
    body = Markup("\n").join(Markup(html) for html in parts)
    return Markup(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n<title>Cards</title>\n<style>body {{ font-family: "Segoe UI", Roboto, Arial, "Noto Sans CJK SC", sans-serif; '
        "max-width: 1000px; margin: 24px auto; padding: 0 16px; color: #1d2530; }}</style>\n</head>\n<body>\n<h1>Cards</h1>\n{}\n</body>\n</html>\n"
    ).format(body)


def write_corpus(library: Library, folder: Path) -> list[Path]:
    """Write corpus.csv (counts), table6.csv, holes.csv, personas.csv, scenarios.csv and cards.html; returns the paths."""
    frames = {
        "corpus": corpus_counts(library), "table6": table6(library), "holes": holes(library), "personas": persona_frame(library),
        "scenarios": scenario_frame(library),
    }  # fmt: skip
    files = {f"{name}.csv": frame.write_csv() for name, frame in frames.items()} | {"cards.html": cards_page(library)}
    for name, content in files.items():
        write_atomic(folder / name, content)
    return [folder / name for name in files]


def _shown(value: Any) -> Markup:
    if isinstance(value, dict):
        rows = (Markup("<dt>{}</dt><dd>{}</dd>").format(str(k).replace("_", " "), _shown(v)) for k, v in value.items() if v not in ([], {}))
        return Markup("<dl>{}</dl>").format(Markup("").join(rows))
    if isinstance(value, list):
        return Markup('<ul lang="zh">{}</ul>').format(Markup("").join(Markup("<li>{}</li>").format(v) for v in value))
    if isinstance(value, bool):
        return Markup("yes" if value else "no")
    return Markup('<span lang="zh">{}</span>').format(escape(value))



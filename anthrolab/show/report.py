"""The report: one HTML file that opens offline, with the tables as CSV and Markdown beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anthrolab.bench.audit import audit
from anthrolab.bench.coverage import coverage_table
from anthrolab.bench.passes import passes, printed_passes
from anthrolab.bench.printing import as_csv
from anthrolab.bench.store import RunError
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.files import write_atomic
from anthrolab.judging.rubric import load_rubric
from anthrolab.models.family import family_warnings
from anthrolab.show.acceptance import acceptance_table
from anthrolab.show.blocks import Block, measured_block, published_block
from anthrolab.show.bubbles import Chat, chat_html, chat_view
from anthrolab.show.comparison import comparisons
from anthrolab.show.conditions import conditions_table, provenance_table
from anthrolab.show.coverage import (
    answers_table,
    denominators,
    dimension_shares,
    failed_dialogues,
    failures_table,
    gate_table,
    invalid_cases,
    unassessed,
)
from anthrolab.show.delays import delay_figure
from anthrolab.show.explorer_page import write_explorer_page
from anthrolab.show.figures import category_figure, dimension_figure, figure_html
from anthrolab.show.measured import Measured, load_all, picked_cases, refuse_twins, with_people
from anthrolab.show.pages import asset, environment
from anthrolab.show.passes import passes_table
from anthrolab.show.second_judge import agreement_tables
from anthrolab.show.spend import spend_table, troubles_by_side
from anthrolab.show.stops import (
    Audited,
    audit_of,
    banners,
    faults_table,
    replies_table,
    stops_table,
    warning,
    with_warning,
)
from anthrolab.show.tables import PrintedTable, as_html, as_markdown, plain_table, score_table
from anthrolab.show.timing import timing_frame, timing_table

CONTENTS = (
    ("measured", "What was measured"),
    ("tables", "Tables 7 to 11"),
    ("passes", "Definitions of a pass"),
    ("accepted", "Accepted as training data"),
    ("stops", "Stops and faults"),
    ("coverage", "Coverage and denominators"),
    ("agreement", "Agreement"),
    ("spend", "Spend"),
    ("figures", "Figures"),
    ("timing", "Timing"),
    ("dialogues", "Dialogues"),
    ("audit", "Paper audit"),
    ("provenance", "Provenance"),
)


def write_report(
    runs: Sequence[Path],
    out_dir: Path,
    *,
    rubric_file: Path | None = None,
    cards_dir: Path | None = None,
    seed: int = 0,
    partial: str | None = None,
) -> Path:
    """Render judged runs into `out_dir/index.html` and `out_dir/tables/`; returns the page's path.

    `partial`: one sentence for the head of the page that says what is not there yet, if the runs are not finished.
    Every judge of every run is a block of its own. RunError if a run is not judged, was judged under another
    rubric, or shares its name with another; the same inputs give the same bytes.
    """
    runs = [Path(run) for run in runs]
    refuse_twins(runs)
    from markupsafe import Markup

    rubric = load_rubric(rubric_file)
    measured = [m for run in runs for m in load_all(run, rubric)]
    if not measured:
        raise RunError("no run folder given; name at least one")
    library = load_library(cards_dir or default_cards_dir())
    once = list({m.run: m for m in measured}.values())
    trouble = {m.run: troubles_by_side(m.spends) for m in once}
    audited = [(m, audit_of(m, trouble[m.run])) for m in measured]
    ours = [measured_block(m, seed=seed) for m in measured]
    headlines = [_headline(m, block) for m, block in zip(measured, ours, strict=True)]
    blocks = [published_block(), *(with_warning(b, warning(m, a.flags())) for b, (m, a) in zip(ours, audited, strict=True))]
    tables = [score_table(n, blocks) for n in (7, 8, 9, 10, 11)]
    conditions = conditions_table(measured)
    counted = [passes(m.ledger, m.weights, seed=seed) for m in measured]
    by_pass = passes_table(blocks, counted)
    accepted = acceptance_table(measured)
    stops = _stops_tables(audited)
    timing = timing_table(once)
    spend = spend_table({m.run: (m.manifest, m.spends) for m in once})
    agreement = [t for m in once for t in agreement_tables(m.path, [x for x in measured if x.run == m.run], seed=seed)]
    page = _page(measured, blocks, library, seed, {
        "partial": partial,
        "warnings": [line for m in once for line in (*picked_cases(m), *family_warnings(m.manifest))],
        "agreement": [Markup(as_html(t)) for t in agreement],
        "spend": Markup(as_html(spend)) if spend else None,
        "banners": banners(audited),
        "headlines": headlines,
        "table6": Markup(as_html(conditions)),
        "score_tables": [Markup(as_html(t)) for t in tables],
        "passes": Markup(as_html(by_pass)),
        "acceptance": Markup(as_html(accepted)),
        "stops_tables": [Markup(as_html(t)) for t in (*stops, *_failed(once))],
        "timing": Markup(as_html(timing)),
    })  # fmt: skip
    for table in (conditions, *tables, by_pass, accepted, *stops, *agreement, *([spend] if spend else []), timing):
        write_atomic(out_dir / "tables" / f"{table.name}.md", as_markdown(table))
    for table in (conditions, accepted, *stops, *agreement, *([spend] if spend else [])):
        write_atomic(out_dir / "tables" / f"{table.name}.csv", as_csv(table.frame))
    write_atomic(out_dir / "tables" / f"{timing.name}.csv", as_csv(timing_frame(once)))
    for block in blocks:
        for number, frame in block.tables.items():
            write_atomic(out_dir / "tables" / block.key / f"table{number}.csv", as_csv(frame))
    for m, block, rates in zip(measured, ours, counted, strict=True):
        write_atomic(out_dir / "tables" / block.key / "coverage.csv", as_csv(coverage_table(m.ledger)))
        write_atomic(out_dir / "tables" / block.key / "passes.csv", as_csv(printed_passes(rates)))
    write_explorer_page(measured, out_dir / "failures.html", library=library)
    write_atomic(out_dir / "index.html", page)
    return out_dir / "index.html"


def chats_of(measured: Sequence[Measured], library: Library) -> list[Chat]:
    """Of one run, as all its judges saw it: the first dialogue of every category."""
    one = measured[0]
    known = library.content_hash() == one.manifest["hashes"]["cards"]
    first: dict[str, Chat] = {}
    for key, dialogue in one.dialogues.items():
        category = str(one.case(dialogue)["category"])
        if category in first:
            continue
        view = chat_view(
            dialogue,
            gate=one.gate[key],
            verdicts={m.judge_label: m.verdicts[key] for m in measured if key in m.verdicts},
            rubric=one.rubric,
            scenario=library.scenarios.get(dialogue.scenario or "") if known else None,
            valid=_together([m.case(dialogue)["valid"] for m in measured]),
        )
        first[category] = view
    return [first[c] for c in CATEGORIES if c in first]


def _together(valid: Sequence[bool | None]) -> bool | None:
    """What several judges make of one dialogue: invalid if one finds it so, else not known until all have judged it."""
    return False if False in valid else None if None in valid else True


def _page(
    measured: Sequence[Measured], blocks: Sequence[Block], library: Library, seed: int, parts: Mapping[str, Any]
) -> str:
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    by_run = {run: [m for m in measured if m.run == run] for run in dict.fromkeys(m.run for m in measured)}
    stale = [run for run, ms in by_run.items() if ms[0].manifest["hashes"]["cards"] != library.content_hash()]
    comparison = comparisons(measured, seed=seed)
    delays = delay_figure([ms[0] for ms in by_run.values()])
    names = {d.id: d.name for d in measured[0].rubric.dimensions}
    return environment().get_template("report.html").render(
        title=f"anthrolab report: {', '.join(by_run)}",
        css=Markup(asset("report.css") + asset("chats.css")),
        plotly=Markup(get_plotlyjs()),
        contents=CONTENTS,
        limits=_limits(measured, blocks),
        block_keys=[b.key for b in blocks],
        comparison=Markup(as_html(comparison)) if comparison else None,
        coverage_tables=[Markup(as_html(t)) for t in _coverage_tables(measured)],
        figures=[
            (
                ("Profile over the dimensions", "Values of Table 8. Lines join the dimensions of one card; a gap is a "
                 "dimension of which nothing was assessed. Measured points are over the assessed checkboxes only and by another judge: not comparable."),
                Markup(figure_html(dimension_figure(blocks, names), "figure-dimensions")),
            ),
            (
                ("Score by scenario category", "Values of Table 10; a category without a valid case has no point. The "
                 "measured points are over the assessed checkboxes only and by another judge: not comparable."),
                Markup(figure_html(category_figure(blocks), "figure-categories")),
            ),
        ],
        delays=Markup(figure_html(delays, "figure-delays")) if delays else None,
        dialogues=[(run, Markup(chat_html(chats_of(ms, library)))) for run, ms in by_run.items()],
        audit=[
            (item, Markup(as_html(plain_table(f"audit-{i}", "", "", item.frame)))) for i, item in enumerate(audit(seed=seed), 1)
        ],
        seed=seed,
        cards_note=f"The cards have changed since {', '.join(stale)} was made: its scenario titles are left out." if stale else "",
        provenance=[Markup(as_html(provenance_table(run, ms))) for run, ms in by_run.items()],
        **parts,
    )  # fmt: skip


def _headline(m: Measured, block: Block) -> str:
    """The result in one sentence."""
    row = block.tables[7].row(0, named=True)
    interval = block.intervals[m.system]
    score = f"Score {row['Score']}" + (f" (95% interval {interval['Score']})" if interval["Score"] else "") if row["Score"] else "no Score"
    acc = f"strict ACC {row['ACC']}{'*' if block.partly else ''} ({interval['ACC']})" if row["ACC"] else "no ACC"
    star = " * Over the assessed checkboxes only." if block.partly and row["ACC"] else ""
    return f"{m.system}: {score}, {acc}.{star} This is {block.heading.removeprefix('Measured here: ')}."


def _limits(measured: Sequence[Measured], blocks: Sequence[Block]) -> list[str]:
    lines = [
        "The paper's cards, prompts, judge outputs and rubric wording are not published. Cards and wording here are our "
        "own, so measured rows are not a replication of the published ones.",
    ]
    if any(m.judge == "rules" for m in measured):
        lines.append(
            "The rules judge is deterministic and decides only what rules can decide. It sees form, length, repetition "
            "and times; it does not see whether a chat makes sense, so it is far too kind to a model that talks nonsense."
        )
    if any(b.partly for b in blocks):
        lines.append("Values marked * and all scores of such a block are over the assessed checkboxes only.")
    smallest = min(sum((b.cases or {}).values()) for b in blocks[1:])
    lines.append(f"Few cases: the smallest measured block has {smallest} valid ones. Read the intervals, not the digits.")
    lines += [with_people(m) for m in {m.run: m for m in measured}.values() if m.with_people]
    lines.append("No person has checked these verdicts.")
    return lines


def _stops_tables(audited: Sequence[Audited]) -> list[PrintedTable]:
    """Why chats stopped and how replies came out is the same for every judge of a run; whose fault it is, is not."""
    once = list({m.run: (m, a) for m, a in audited}.values())
    return [stops_table(once), faults_table(audited), replies_table(once)]


def _failed(runs: Sequence[Measured]) -> list[PrintedTable]:
    return [table for m in runs if (table := failed_dialogues(m))]


def _coverage_tables(measured: Sequence[Measured]) -> list[PrintedTable]:
    found: list[PrintedTable | None] = [denominators(measured), answers_table(measured), dimension_shares(measured), unassessed(measured)]
    found += [gate_table(m) for m in measured]
    found += [invalid_cases(m) for m in measured]
    found += [failures_table(m) for m in measured]
    return [table for table in found if table is not None]

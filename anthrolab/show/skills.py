"""What a loop did to its skills: what each round came to, every version beside the one before it, and whether it helped."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from markupsafe import Markup

from anthrolab.cards.skill import SKILL_CHARS, SKILLS, SkillName
from anthrolab.files import write_atomic
from anthrolab.intervals import wilson
from anthrolab.loop.ab import SkillTest
from anthrolab.loop.attribution import SKILL_OF_CONSTRAINT, SKILL_OF_DIMENSION, attribute
from anthrolab.loop.filtering import STATUSES
from anthrolab.loop.skill_files import Evolution
from anthrolab.show.figures import GRID, STRONG, figure_html, styled
from anthrolab.show.loop_view import LoopView
from anthrolab.show.pages import asset, environment
from anthrolab.show.skill_diffs import diffs_html
from anthrolab.show.tables import NO_VALUE, PrintedTable, as_html, plain_table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

NO_TEST = "The curves are on other draws of chats every round, and mostly on bindings that the skills were mended for. They are no test; the A/B is."
MANY = "All A/Bs of a loop are on the same held-back bindings: the more of them, the likelier that one finds something by chance."
NOTHING = "No round of this loop has come to its skills yet: their texts are those that it began with."


def rounds_table(view: LoopView) -> PrintedTable:
    """What every round came to; dialogues of held-back bindings stand apart."""
    rows = []
    for r in view.rounds:
        there = r.statuses or {}
        own = {s.capitalize(): str(there.get(s, 0)) if r.statuses is not None else NO_VALUE for s in STATUSES}
        back = sum(r.held_back.values())
        rows.append(
            {"Round": str(r.number), "Dialogues": str(r.taught_by), **own, "Repaired": str(r.repairs.get("repaired", 0)),
             "Held back, accepted": f"{r.held_back.get('accepted', 0)} of {back}" if back else NO_VALUE, "Skills": became(r.evolution)}
        )  # fmt: skip
    caption = "Dialogues by what the filter made of them; repaired ones are among the rejected and invalid. Held-back bindings are counted apart."
    unfinished = [str(r.number) for r in view.rounds if r.statuses is None]
    notes = [f"Round {', '.join(unfinished)}: begun, and nothing is filtered yet."] if unfinished else []
    return plain_table("rounds", "Rounds", caption, pl.DataFrame(rows), notes)


def became(evolution: Evolution | None) -> str:
    """What a round did to the skills, in a few words."""
    if evolution is None:
        return "not come to it"
    if evolution.outcome == "rewritten":
        return f"{evolution.skill} {evolution.before} to {evolution.after}"
    if evolution.outcome == "superseded":
        return f"{evolution.skill} had another text by then, so it stayed"
    return f"a rewrite of {evolution.skill} was refused: {evolution.error}" if evolution.outcome == "refused" else "no failure to learn from"


def failures_table(view: LoopView) -> PrintedTable:
    """Failures of each dimension and constraint in each round, with the skill that they are attributed to."""
    counted = [Counter(r.dimension or r.box for r in round.records) for round in view.rounds]
    order = [*SKILL_OF_DIMENSION, *SKILL_OF_CONSTRAINT]
    seen = {name for counts in counted for name in counts}
    names = [n for n in sorted(SKILL_OF_DIMENSION) if n in seen] + sorted(seen - set(SKILL_OF_DIMENSION), key=lambda n: (n not in order, n))
    of_skill: dict[str, SkillName] = {**SKILL_OF_DIMENSION, **SKILL_OF_CONSTRAINT}
    rows = [
        {"Failed": name, "Skill": of_skill.get(name, "none"),
         **{f"Round {r.number} ({r.taught_by} dialogues)": str(c[name]) for r, c in zip(view.rounds, counted, strict=True)}}
        for name in names
    ]  # fmt: skip
    caption = "Failed checkboxes by dimension, and broken constraints, at dialogues that teach. A dimension is judged at every turn (D) or once a dialogue (E)."
    frame = pl.DataFrame(rows) if rows else pl.DataFrame({"Failed": ["nothing"]})
    return plain_table("failures-by-round", "Failures by dimension", caption, frame)


def repairs_table(view: LoopView) -> PrintedTable:
    """What share of the dialogues that failed in a dimension was repaired, over all rounds."""
    whole = pl.concat([r.repaired for r in view.rounds]).group_by("dimension", maintain_order=True).agg(pl.col("failed", "tried", "repaired").sum())
    rows = [
        {"Failed in": row["dimension"], "Dialogues": str(row["failed"]), "Tried": str(row["tried"]), "Repaired": str(row["repaired"]),
         "Share of those tried": f"{100 * row['repaired'] / row['tried']:.1f}%" if row["tried"] else NO_VALUE,
         "95% interval": f"{100 * i.low:.1f} to {100 * i.high:.1f}%" if (i := wilson(row["repaired"], row["tried"])) else NO_VALUE}
        for row in whole.iter_rows(named=True) if row["failed"]
    ]  # fmt: skip
    caption = "Rejected and invalid dialogues of all rounds by what failed in them; one that failed in several dimensions counts in each."
    return plain_table("repaired", "Repaired", caption, pl.DataFrame(rows) if rows else pl.DataFrame({"Failed in": ["nothing"]}))


def versions_table(view: LoopView) -> PrintedTable:
    """Every version of every skill with its size against the bound, and where it comes from."""
    rows = [
        {"Skill": v.skill.name, "Version": v.skill.version, "Comes from": v.origin + (f" from {v.made_from}" if v.made_from else ""),
         "Round": str(v.round or NO_VALUE), f"Characters, at most {SKILL_CHARS}": str(len(v.skill.text)), "Hash": v.hash, "Why": v.reason or NO_VALUE}
        for v in view.versions
    ]  # fmt: skip
    return plain_table("skill-versions", "Versions of the skills", "A version is never changed; a rollback is a new one.", pl.DataFrame(rows))


def ab_table(test: SkillTest) -> PrintedTable:
    """The A/B of one round: everything compared, with intervals."""
    rows = []
    for q in test.quantities:
        scale = 1 if q.name == "score" else 100
        ends = f"{scale * q.low:+.1f} to {scale * q.high:+.1f}" if q.low is not None and q.high is not None else NO_VALUE
        rows.append(
            {"Quantity": q.name, "Before": _number(q.before, scale), "After": _number(q.after, scale), "Difference": _number(q.difference, scale, "+"),
             "95% interval": ends, "p": _p(q.p), "p, corrected": _p(q.holm), "Cases": str(q.cases), "Bindings": str(q.bindings)}
        )  # fmt: skip
    caption = (
        f"{test.skill} {' and '.join(map(str, test.versions))}: {test.system} on {len(test.cases)} held-back cases, judge {test.judge}. "
        "Score in points, 0 to 100; everything else in percent. Intervals: bootstrap by binding; p: sign flips by binding."
    )
    return plain_table(f"ab-{test.round}", f"A/B of round {test.round}", caption, pl.DataFrame(rows), test.said)


def rounds_figure(view: LoopView) -> "Figure":
    """Shares of the dialogues over the rounds, in percent."""
    shown = [r for r in view.rounds if r.statuses]
    lines: dict[str, list[float | None]] = {
        "accepted": [100 * (r.statuses or {}).get("accepted", 0) / r.taught_by for r in shown],
        "accepted or repaired": [100 * ((r.statuses or {}).get("accepted", 0) + r.repairs.get("repaired", 0)) / r.taught_by for r in shown],
        "invalid": [100 * (r.statuses or {}).get("invalid", 0) / r.taught_by for r in shown],
        "undecided": [100 * (r.statuses or {}).get("undecided", 0) / r.taught_by for r in shown],
    }
    if any(r.held_back for r in shown):
        lines["held back: accepted"] = [100 * r.held_back.get("accepted", 0) / n if (n := sum(r.held_back.values())) else None for r in shown]
    return _curves([r.number for r in shown], lines, "Share of the round's dialogues (percent)", dashed=("held back: accepted",))


def skills_figure(view: LoopView) -> "Figure":
    """Failures a dialogue that belong to each skill, over the rounds; a star where the skill was rewritten after the round."""
    shown = [r for r in view.rounds if r.statuses]
    counts = [attribute(r.records).counts for r in shown]
    figure = _curves(
        [r.number for r in shown], {s: [c[s] / r.taught_by for r, c in zip(shown, counts, strict=True)] for s in SKILLS},
        "Failures a dialogue (star: rewritten after it)",
    )  # fmt: skip
    for trace in figure.data:
        chosen = [r.evolution is not None and r.evolution.outcome == "rewritten" and r.evolution.skill == trace.name for r in shown]
        trace.marker.update(symbol=["star" if c else "circle" for c in chosen], size=[18 if c else 10 for c in chosen], opacity=1)
    return figure


def write_skills_page(view: LoopView, out: Path) -> Path:
    """Write everything as one page that opens offline; returns its path. The same loop gives the same bytes."""
    from plotly.offline import get_plotlyjs

    html = [
        Markup(as_html(t))
        for t in (rounds_table(view), failures_table(view), versions_table(view), repairs_table(view), *map(ab_table, view.tests.values()))
    ]
    page = environment().get_template("skills.html").render(
        title=f"anthrolab skills: {view.name}", css=Markup(asset("report.css") + asset("skills.css")), plotly=Markup(get_plotlyjs()), no_test=NO_TEST, many=MANY,
        banners=[] if any(r.evolution for r in view.rounds) else [NOTHING], rounds=html[0], failures=html[1], versions=html[2], repaired=html[3], tests=html[4:],
        curves=Markup(figure_html(rounds_figure(view), "figure-rounds")), by_skill=Markup(figure_html(skills_figure(view), "figure-skills")),
        diffs=Markup(diffs_html(view, style=False)),
    )  # fmt: skip
    write_atomic(out, page)
    return out


def _curves(numbers: Sequence[int], lines: Mapping[str, Sequence[float | None]], title: str, dashed: Sequence[str] = ()) -> "Figure":
    from plotly.graph_objects import Figure, Scatter

    figure = Figure()
    for (name, values), colour in zip(lines.items(), STRONG, strict=False):
        dash = "dash" if name in dashed else "solid"
        figure.add_trace(Scatter(
            x=[f"round {n}" for n in numbers], y=list(values), name=name, mode="lines+markers", line={"color": colour, "width": 3, "dash": dash},
            marker={"size": 10}, hovertemplate=f"{name}, %{{x}}: %{{y:.2f}}<extra></extra>",
        ))  # fmt: skip
    styled(figure)
    figure.update_yaxes(title_text=title, rangemode="tozero", showgrid=True, gridcolor=GRID)
    figure.update_xaxes(type="category")
    return figure


def _number(value: float | None, scale: int, sign: str = "") -> str:
    return NO_VALUE if value is None else f"{scale * value:{sign}.1f}"


def _p(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.3f}"

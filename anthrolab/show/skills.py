"""What a loop did to its skills: what each round came to, every version beside the one before it, and whether it helped."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
from markupsafe import Markup

from anthrolab.cards.skill import SKILL_CHARS, SKILLS, SkillName
from anthrolab.files import whole_lines, write_atomic
from anthrolab.loop.ab import SkillTest, read_ab
from anthrolab.loop.attribution import SKILL_OF_CONSTRAINT, SKILL_OF_DIMENSION, attribute
from anthrolab.loop.filtering import STATUSES
from anthrolab.loop.folder import Loop, LoopError
from anthrolab.loop.records import RECORDS, FailureRecord, read_records
from anthrolab.loop.skill_files import Evolution, Version, history, read_evolution
from anthrolab.show.figures import GRID, STRONG, figure_html, styled
from anthrolab.show.pages import asset, environment
from anthrolab.show.tables import NO_VALUE, PrintedTable, as_html, plain_table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

T = TypeVar("T")

SIMILAR = 0.4
"""From this likeness (0 to 1) two lines are shown as one that was changed."""

NO_TEST = "The curves are on other draws of chats every round, and mostly on bindings that the skills were mended for. They are no test; the A/B is."
MANY = "All A/Bs of a loop are on the same held-back bindings: the more of them, the likelier that one finds something by chance."
NOTHING = "No round of this loop has come to its skills yet: their texts are those that it began with."

CSS = """
.al-skill { font: 14px/1.6 "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; color: #1d2530; max-width: 980px; margin: 14px 0 26px; }
.al-skill h4 { font-size: 15px; margin: 0 0 2px; }
.al-skill .where { color: #45505c; font-size: 13px; margin: 0 0 6px; }
.al-skill ul { margin: 2px 0 8px; }
.al-skill .lines { font-family: "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif; border: 1px solid #d5dbe2; border-radius: 4px; overflow: hidden; }
.al-skill .lines p { margin: 0; padding: 2px 10px 2px 30px; text-indent: -18px; min-height: 1.6em; max-width: none; overflow-wrap: anywhere; background: #fff; }
.al-skill .lines .old { background: #fdecea; } .al-skill .lines .new { background: #e7f6ec; }
.al-skill .lines b { display: inline-block; width: 18px; text-indent: 0; font-weight: 400; color: #667; }
.al-skill del { background: #f5b5ae; text-decoration: line-through; } .al-skill ins { background: #a5dfb9; text-decoration: none; }
"""

DIFFS = """{% if css %}<style>{{ css }}</style>{% endif %}
{% for part in parts %}
<section class="al-skill">
<h4>{{ part.title }}</h4>
<p class="where">{{ part.origin }}; {{ part.size }}{% if part.reason %}. {{ part.reason }}{% endif %}</p>
{% if part.evidence %}<p class="where">Failures behind it: {% for e in part.evidence %}{{ e.box }} {{ e.count }} times in {{ e.dialogues }} dialogues{{ "; " if not loop.last }}{% endfor %}</p>{% endif %}
{% if part.changes %}<p class="where">What the writer says it changed:</p><ul>{% for change in part.changes %}<li>{{ change }}</li>{% endfor %}</ul>{% endif %}
<div class="lines" lang="zh-CN">{% for kind, html in part.lines %}<p class="{{ kind }}"><b>{{ {"same": "\u00a0", "old": "−", "new": "+"}[kind] }}</b>{{ html }}</p>{% endfor %}</div>
</section>
{% else %}
<p>{{ nothing }}</p>
{% endfor %}
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>{{ title }}</title>
<style>{{ css }}</style>
<script>{{ plotly }}</script>
</head>
<body>
<h1>{{ title }}</h1>
{% for line in banners %}<p class="banner partial">{{ line }}</p>{% endfor %}
<h2>Rounds</h2>
<div class="table numbers">{{ rounds }}</div>
<p>{{ no_test }}</p>
<div class="figure">{{ curves }}</div>
<h2>Failures</h2>
<div class="table numbers">{{ failures }}</div>
<div class="figure">{{ by_skill }}</div>
<h2>Did the new skills help?</h2>
{% if tests | length > 1 %}<p>{{ many }}</p>{% endif %}
{% for table in tests %}<div class="table numbers">{{ table }}</div>{% else %}<p>There is no A/B yet. Make one: anthrolab loop ab LOOP --round N</p>{% endfor %}
<h2>Versions</h2>
<div class="table">{{ versions }}</div>
{{ diffs }}
</body>
</html>
"""


@dataclass(frozen=True)
class RoundView:
    """One round. statuses: dialogues by status, of bindings that teach and (`held_back`) of those that do not; None where
    nothing is filtered yet. repairs: by outcome. records: failures. evolution: what it did to the skills, if it came to that."""

    number: int
    statuses: Mapping[str, int] | None
    held_back: Mapping[str, int]
    repairs: Mapping[str, int]
    records: Sequence[FailureRecord]
    evolution: Evolution | None

    @property
    def taught_by(self) -> int:
        """Dialogues that teach."""
        return sum((self.statuses or {}).values())


@dataclass(frozen=True)
class LoopView:
    """A loop as it is shown. records of held-back bindings are in no round; tests: the A/Bs by round."""

    name: str
    rounds: Sequence[RoundView]
    versions: Sequence[Version]
    tests: Mapping[int, SkillTest]


def read_loop(path: Path) -> LoopView:
    """What is there of a loop; LoopError for a folder that is none, or that holds no round."""
    loop = Loop(path)
    held_back = set(loop.settings().held_back)
    numbers = loop.rounds()
    if not numbers:
        raise LoopError(f"{path}: holds no round yet; run: anthrolab loop run {path}")
    rounds = []
    for number in numbers:
        folder = loop.round_dir(number)
        done = _values(folder / "filtered.jsonl", lambda row: (row.get("binding") in held_back, str(row["filter_result"]["status"])))
        counts = [Counter(status for is_back, status in done if is_back is back) for back in (False, True)]
        repairs = Counter(_values(folder / "repairs.jsonl", lambda row: str(row["outcome"])))
        records = read_records(folder / RECORDS) if (folder / RECORDS).exists() else []
        own = [r for r in records if r.binding not in held_back]
        filtered = (folder / "filtered.jsonl").exists()
        rounds.append(RoundView(number, counts[0] if filtered else None, counts[1], repairs, own, read_evolution(loop, number)))
    tests = {number: test for number in numbers if (test := read_ab(loop, number)) is not None}
    return LoopView(loop.name, rounds, history(loop), tests)


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


def diffs_html(view: LoopView, *, style: bool = True) -> str:
    """Every version beside the one that it replaced: what went is red, what came is green; everything is escaped."""
    by_key = {(v.skill.name, v.skill.version): v for v in view.versions}
    evolutions = {r.number: r.evolution for r in view.rounds if r.evolution}
    parts = []
    for v in view.versions:
        before = v.made_from if v.origin == "evolved" else f"v{int(v.skill.version[1:]) - 1}"
        old = by_key.get((v.skill.name, before or ""))
        if v.origin == "given" or old is None:
            continue
        evolution = evolutions.get(v.round or 0)
        parts.append({
            "title": f"{v.skill.name}: {old.skill.version} to {v.skill.version}", "origin": f"round {v.round}" if v.round else f"{v.origin}{f' to {v.made_from}' if v.made_from else ''}", "reason": v.reason,
            "size": f"{len(old.skill.text)} to {len(v.skill.text)} of at most {SKILL_CHARS} characters",
            "changes": evolution.changes if evolution else [], "evidence": evolution.evidence if evolution else [], "lines": diff_lines(old.skill.text, v.skill.text),
        })  # fmt: skip
    return environment().from_string(DIFFS).render(css=Markup(CSS) if style else "", parts=parts, nothing="No skill has a second version.")


def diff_lines(old: str, new: str) -> list[tuple[str, Markup]]:
    """The lines of two texts as (kind, HTML): same, old or new. In a line that was changed, what went is in <del> and what
    came in <ins>."""
    a, b = old.split("\n"), new.split("\n")
    found: list[tuple[str, Markup]] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind == "equal":
            found += [("same", Markup.escape(line)) for line in a[i1:i2]]
            continue
        for one, two in _paired(a[i1:i2], b[j1:j2]):
            went, came = _marked(one, two)
            found += [("old", went)] if one is not None else []
            found += [("new", came)] if two is not None else []
    return found


def write_skills_page(view: LoopView, out: Path) -> Path:
    """Write everything as one page that opens offline; returns its path. The same loop gives the same bytes."""
    from plotly.offline import get_plotlyjs

    html = [Markup(as_html(t)) for t in (rounds_table(view), failures_table(view), versions_table(view), *map(ab_table, view.tests.values()))]
    page = environment().from_string(PAGE).render(
        title=f"anthrolab skills: {view.name}", css=Markup(asset("report.css") + CSS), plotly=Markup(get_plotlyjs()), no_test=NO_TEST, many=MANY,
        banners=[] if any(r.evolution for r in view.rounds) else [NOTHING], rounds=html[0], failures=html[1], versions=html[2], tests=html[3:],
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


def _paired(old: Sequence[str], new: Sequence[str]) -> list[tuple[str | None, str | None]]:
    """The lines of a changed passage, in order, like ones beside each other."""
    like = [(SequenceMatcher(None, a, b, autojunk=False).ratio(), -i, -j) for i, a in enumerate(old) for j, b in enumerate(new)]
    if not like or max(like)[0] < SIMILAR:
        return [*((line, None) for line in old), *((None, line) for line in new)]
    _, i, j = max(like)
    return [*_paired(old[:-i], new[:-j]), (old[-i], new[-j]), *_paired(old[1 - i :], new[1 - j :])]


def _marked(old: str | None, new: str | None) -> tuple[Markup, Markup]:
    if old is None or new is None:
        return Markup.escape(old or ""), Markup.escape(new or "")
    went, came = Markup(), Markup()
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        went += Markup.escape(old[i1:i2]) if kind == "equal" or i1 == i2 else Markup("<del>{}</del>").format(old[i1:i2])
        came += Markup.escape(new[j1:j2]) if kind == "equal" or j1 == j2 else Markup("<ins>{}</ins>").format(new[j1:j2])
    return went, came


def _values(path: Path, of: Callable[[Any], T]) -> list[T]:
    """What `of` takes from each line of a JSONL file; none if there is no file."""
    try:
        return [of(json.loads(line)) for line in whole_lines(path)] if path.exists() else []
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise LoopError(f"{path}: a line cannot be read ({e!r}); remove the file and give the loop's command again") from e


def _number(value: float | None, scale: int, sign: str = "") -> str:
    return NO_VALUE if value is None else f"{scale * value:{sign}.1f}"


def _p(value: float | None) -> str:
    return NO_VALUE if value is None else f"{value:.3f}"

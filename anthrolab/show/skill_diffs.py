"""Versions of skills side by side: what went is red, what came is green."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from markupsafe import Markup

from anthrolab.cards.skill import SKILL_CHARS
from anthrolab.show.loop_view import LoopView
from anthrolab.show.pages import asset, environment

SIMILAR = 0.4
"""From this likeness (0 to 1) two lines are shown as one that was changed."""


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
    return environment().get_template("skill_diffs.html").render(css=Markup(asset("skills.css")) if style else "", parts=parts, nothing="No skill has a second version.")


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

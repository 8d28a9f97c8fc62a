"""The view of a setting's effect, as HTML fragments: what a reward is made of, who moves, one group's advantages."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from markupsafe import Markup

from anthrolab.show.pages import environment
from anthrolab.show.reward_weights_dialogues import Grouping
from anthrolab.show.reward_weights_effect import Effect, Scored, advantages, best_changed, flat_groups, places
from anthrolab.training.reward.batch import Flags, Floats
from anthrolab.training.reward.reward import deficits, zpd_match
from anthrolab.training.reward.settings import PAPER

LISTED = 8
"""Dialogues listed that climb, and that fall."""
IN_GROUP = 12
"""Dialogues of a group that are shown."""
PARTS = ("summary", "weights", "curves", "dialogues", "systems", "group")
"""The parts of the view in the order of the page."""


@dataclass(frozen=True)
class Chosen:
    """The grouping that advantages are shown in, and the group: its label, or None for the one that moves most."""

    grouping: Grouping
    label: str | None = None


def view(effect: Effect, chosen: Chosen) -> dict[str, str]:
    """Every part as an HTML fragment, text escaped."""
    written = {"num": num, "by": _by, "percent": _percent}
    macros = environment().get_template("reward_weights_view.html", globals=written).module
    values = {
        "summary": _summary(effect, chosen.grouping), "weights": _weights(effect), "curves": _curves(effect),
        "dialogues": _dialogues(effect), "systems": {"rows": _systems(effect)}, "group": _group(effect, chosen),
    }  # fmt: skip
    return {part: str(getattr(macros, part)(values[part])) for part in PARTS}


def num(x: float, digits: int = 3) -> str:
    """A number as it is printed; nan is "none"."""
    return "none" if x != x else f"{x:.{digits}f}"


def _by(x: float, digits: int = 3) -> str:
    if round(x, digits) == 0 or x != x:
        return "0" if x == x else "none"
    return Markup('<span class="{}">{}</span>').format("up" if x > 0 else "down", f"{x:+.{digits}f}".replace("-", "−"))


def _percent(x: float) -> str:
    return f"{100 * x:.1f}%"


def _summary(effect: Effect, grouping: Grouping) -> dict[str, object]:
    now, paper, batch = effect.now.rewards.reward, effect.paper.rewards.reward, effect.judged.batch
    invalid = int((batch.judged & ~batch.valid).sum())
    number, known = grouping.number, int((~np.isnan(now)).sum())
    changed, groups = best_changed(paper, now, number)
    return {
        "scored": known - invalid, "invalid": invalid, "none": len(now) - known, "mean": _mean(now), "mean_paper": _mean(paper),
        "gain": int((effect.change > 0).sum()), "lose": int((effect.change < 0).sum()), "keep": int((effect.change == 0).sum()),
        "order": effect.same_order, "places": _mean(np.abs(effect.climbed)), "changed": changed, "groups": groups, "kind": grouping.words,
        "flat": flat_groups(advantages(now, number), number), "by_rewarded": effect.moved_by_rewarded, "by_adaptive": effect.moved_by_adaptive,
        "same": not (effect.change != 0).any(), "stand_in": grouping.stand_in, "fixed": effect.now.settings.ablation == "legacy",
    }  # fmt: skip


def _weights(effect: Effect) -> dict[str, object]:
    judged, now, paper, settings = effect.judged, effect.now, effect.paper, effect.now.settings
    on = 0.0 if settings.ablation == "legacy" else settings.mix_adaptive
    of_group = np.where(judged.dimensions.local, settings.local, settings.holistic) * settings.continuous
    theta, rho, alpha, shares, before = (_column_means(a) for a in (judged.theta, now.rho, now.rewards.alpha, now.share, paper.share))
    low, high = _spread(now.rewards.alpha)
    paper_alpha = _column_means(paper.rewards.alpha)
    local = judged.dimensions.local
    rows = [
        {
            "id": k, "name": judged.names.get(k, ""), "theta": theta[i], "deficit": float(deficits(theta[i], settings)), "rho": rho[i], "alpha": alpha[i],
            "low": low[i], "high": high[i], "alpha_paper": paper_alpha[i], "legacy": of_group[i] * (1 - on) * rho[i], "adaptive": of_group[i] * on * alpha[i],
            "share": shares[i], "paper": before[i], "local": bool(local[i]), "known": bool(~np.isnan(shares[i])),
        }
        for i, k in enumerate(judged.dimensions.ids)
    ]  # fmt: skip
    passing = [
        {"local": is_local, "share": settings.strict * part, "paper": PAPER.strict * before_part}
        for is_local, part, before_part in ((True, settings.local, PAPER.local), (False, settings.holistic, PAPER.holistic))
    ]
    most = max([0.25, *(float(max(r["share"], r["paper"])) for r in rows if r["known"]), *(float(max(p["share"], p["paper"])) for p in passing)])
    return {"rows": rows, "passing": passing, "most": most, "on": on, "many": len(judged.systems), "settings": settings}


def _curves(effect: Effect) -> dict[str, object]:
    """d over theta and omega over s - theta, each now and as in the paper; points in a box of 0..1 by 0..1, y downwards."""
    settings, x = effect.now.settings, np.linspace(0, 1, 41)
    theta = _column_means(effect.judged.theta)
    d, d_paper = deficits(x, settings), deficits(x, PAPER)
    top = max(1.25, float(d.max()))
    dots = [(k, t, 1 - float(deficits(t, settings)) / top) for k, t in zip(effect.judged.dimensions.ids, theta, strict=True) if not np.isnan(t)]
    away = np.linspace(-1, 1, 161)
    zero = np.zeros_like(away)
    bell, bell_paper = (1 - zpd_match(away, zero, s) for s in (settings, PAPER))
    return {
        "d": _points(x, 1 - d / top), "d_paper": _points(x, 1 - d_paper / top), "top": top, "dots": dots,
        "bell": _points((away + 1) / 2, bell), "bell_paper": _points((away + 1) / 2, bell_paper), "settings": settings, "ablation": settings.ablation,
    }  # fmt: skip


def _points(x: Floats, y: Floats) -> str:
    """A polyline in a box of 200 by 100."""
    return " ".join(f"{200 * a:.4g},{100 * b:.1f}" for a, b in zip(x, y, strict=True))


def _dialogues(effect: Effect) -> dict[str, object]:
    climbed = np.nan_to_num(effect.climbed)
    order = np.argsort(-climbed, kind="stable")
    up = [i for i in order[:LISTED] if climbed[i] > 0]
    down = [i for i in order[::-1][:LISTED] if climbed[i] < 0]
    known = ~np.isnan(effect.climbed)
    n = max(int(known.sum()) - 1, 1)
    return {
        "up": [_dialogue(effect, int(i), 1) for i in up], "down": [_dialogue(effect, int(i), -1) for i in down], "n": int(known.sum()),
        "rising": _dots(effect, known & (climbed > 0), n), "falling": _dots(effect, known & (climbed < 0), n), "staying": _dots(effect, known & (climbed == 0), n),
        "climb": int((climbed > 0).sum()), "fall": int((climbed < 0).sum()),
    }  # fmt: skip


def _dots(effect: Effect, rows: Flags, n: int) -> str:
    """One SVG path for many dots (its line ends are round): place under the paper's setting to the right, now downwards."""
    x, y = (np.round(280 * (s.place[rows] - 1) / n).astype(int) for s in (effect.paper, effect.now))
    return "".join(f"M{a} {b}h0" for a, b in sorted(set(zip(x.tolist(), y.tolist(), strict=True))))


def _dialogue(effect: Effect, i: int, direction: int) -> dict[str, object]:
    row = effect.judged.cases.row(i, named=True)
    return {
        "system": row["system"], "case": _case(row), "category": row["category"], "before": effect.paper.rewards.reward[i], "now": effect.now.rewards.reward[i],
        "place_before": int(effect.paper.place[i]), "place": int(effect.now.place[i]), "climbed": int(effect.climbed[i]), "why": _why(effect, i, direction),
    }  # fmt: skip


def _why(effect: Effect, i: int, direction: int) -> dict[str, object] | None:
    """The dimension whose changed share explains most of a move: a high score that counts more, or a low one that counts less."""
    scores, before, now = effect.judged.batch.scores[i], effect.paper.share[i], effect.now.share[i]
    if np.isnan(now).all():
        return None
    middle = np.nansum(before * scores) / np.nansum(before)
    pull = np.nan_to_num(direction * (now - before) * (scores - middle))
    k = int(pull.argmax())
    if pull[k] < 1e-9:
        return None
    return {"id": effect.judged.dimensions.ids[k], "score": scores[k], "before": before[k], "now": now[k]}


def _systems(effect: Effect) -> list[dict[str, object]]:
    """Mean reward and place of every system, the best one now first; empty for one system."""
    judged = effect.judged
    if len(judged.systems) < 2:
        return []
    frame = judged.cases.select("system").with_columns(before=_nulled(effect.paper), now=_nulled(effect.now), climbed=pl.Series(np.nan_to_num(effect.climbed)))
    means = frame.group_by("system", maintain_order=True).agg(pl.col("before", "now").mean(), up=(pl.col("climbed") > 0).sum(), down=(pl.col("climbed") < 0).sum())
    before, now = (places(means[c].to_numpy().astype(float)) for c in ("before", "now"))
    table = means.with_columns(place_before=pl.Series(before).fill_nan(None), place=pl.Series(now).fill_nan(None))
    return list(table.sort("place", nulls_last=True, maintain_order=True).iter_rows(named=True))


def _nulled(scored: Scored) -> pl.Series:
    return pl.Series(scored.rewards.reward, nan_to_null=True)


def _group(effect: Effect, chosen: Chosen) -> dict[str, object]:
    grouping = chosen.grouping
    now, before = (advantages(s.rewards.reward, grouping.number) for s in (effect.now, effect.paper))
    moved = np.nan_to_num(np.abs(now - before)).round(9)
    if chosen.label in grouping.labels:
        number = grouping.labels.index(chosen.label)
    else:
        number = int(grouping.number[moved.argmax()]) if len(moved) else 0
    rows = np.flatnonzero(grouping.number == number)
    shown = rows[np.argsort(-np.nan_to_num(np.abs(now[rows]), nan=-1), kind="stable")][:IN_GROUP]
    shown = shown[np.argsort(-np.nan_to_num(now[shown], nan=-99), kind="stable")]
    members = [_dialogue_in_group(effect, int(i), float(before[i]), float(now[i])) for i in shown]
    most = max([1.0, *(abs(a) for i in shown for a in (now[i], before[i]) if not np.isnan(a))])
    return {
        "label": grouping.labels[number] if grouping.labels else "", "words": grouping.words, "stand_in": grouping.stand_in, "members": members, "left_out": len(rows) - len(shown),
        "size": len(rows), "most": most, "changed": chosen.label is None and bool(moved.any()), "kind": grouping.key,
    }  # fmt: skip


def _dialogue_in_group(effect: Effect, i: int, before: float, now: float) -> dict[str, object]:
    row, batch = effect.judged.cases.row(i, named=True), effect.judged.batch
    state = "" if batch.judged[i] and batch.valid[i] else "invalid" if batch.judged[i] else "no reward"
    return {
        "system": row["system"], "case": _case(row), "state": state, "reward_before": effect.paper.rewards.reward[i], "reward": effect.now.rewards.reward[i], "before": before, "now": now,
    }  # fmt: skip


def _case(row: dict[str, object]) -> str:
    return f"{row['case_id']}" + (f" #{row['sample']}" if row["sample"] else "")


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _column_means(values: Floats) -> Floats:
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    found: Floats = np.divide(np.where(known, values, 0.0).sum(axis=0), count, out=np.full(values.shape[1], np.nan), where=count > 0)
    return found


def _spread(values: Floats) -> tuple[Floats, Floats]:
    """The values between which 8 of 10 lie, by column; nan where there is none."""
    count = (~np.isnan(values)).sum(axis=0)
    if not len(values):
        nothing = np.full(values.shape[1], np.nan)
        return nothing, nothing
    ordered = np.sort(values, axis=0)  # nan goes last
    low, high = (np.where(count > 0, ordered[np.maximum(np.round(q * (count - 1)), 0).astype(int), range(values.shape[1])], np.nan) for q in (0.1, 0.9))
    return low, high

"""Reward weights without a kernel: one HTML file that opens offline, with a frame made beforehand for every stop of a slider."""

import base64
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from anthrolab.files import write_atomic
from anthrolab.show.pages import asset, environment
from anthrolab.show.reward_weights_dialogues import JudgedDialogues
from anthrolab.show.reward_weights_effect import effect, score
from anthrolab.show.reward_weights_presets import EXPLAINED, PRESETS, knobs, values_of, with_values
from anthrolab.show.reward_weights_view import PARTS, Chosen, num, view
from anthrolab.training.reward.settings import PAPER, RewardSettings

IN_A_CELL = 5000
"""Dialogues up to which a notebook's cell gets the frames of all sliders; with more, those of the presets only (they take time)."""


@dataclass(frozen=True)
class Axis:
    """A slider of the page: its stops in words, their settings, and the stop where it begins. kind: preset, or one of EXPLAINED."""

    label: str
    says: str
    kind: str
    stops: tuple[str, ...]
    settings: tuple[RewardSettings, ...]
    first: int


def axes(judged: JudgedDialogues, start: RewardSettings) -> list[Axis]:
    """The presets (and `start`, if it is none), then a slider for every setting: it moves that one alone, the others stand at `start`."""
    named = dict(PRESETS)
    if start not in named.values():
        named = {"Chosen setting": start} | named
    first = list(named.values()).index(start)
    found = [Axis("preset", "", "preset", tuple(named), tuple(named.values()), first)]
    values = values_of(start, judged.dimensions)
    for knob in knobs(judged.dimensions, judged.names):
        stops = sorted({*knob.stops, round(values[knob.name], 9)})
        settings = tuple(with_values(start, values | {knob.name: stop}, start.ablation, judged.dimensions) for stop in stops)
        words = tuple(num(stop, 4).rstrip("0").rstrip(".") for stop in stops)
        found.append(Axis(knob.label, knob.says, "adaptive" if knob.adaptive else "weights" if knob.weight else "mixes", words, settings, stops.index(round(values[knob.name], 9))))
    return found


def frames_html(judged: JudgedDialogues, start: RewardSettings = PAPER, *, sliders: bool = True) -> str:
    """Sliders and view as an HTML fragment that brings its own styles, script and frames; presets only without `sliders`."""
    found = axes(judged, start) if sliders else axes(judged, start)[:1]
    paper, chosen = score(judged), Chosen(judged.groupings[0])
    asked = [settings for axis in found for settings in axis.settings]
    made = {key: view(effect(judged, settings, paper), chosen) for key, settings in {s.model_dump_json(): s for s in asked}.items()}
    views = [made[settings.model_dump_json()] for settings in asked]
    packed = base64.b64encode(zlib.compress(json.dumps(_shared(views), ensure_ascii=False).encode("utf-8"), 9)).decode("ascii")
    begin = found[0].first
    return environment().get_template("reward_weights_frames.html").render(
        css=Markup(asset("reward_weights.css")), js=Markup(asset("reward_weights.js")), axes=list(_placed(found)), packed=packed, name=judged.name,
        parts=[(part, Markup(views[begin][part])) for part in PARTS], frames=len(views), paper=start == PAPER, explained=EXPLAINED, sliders=sliders,
    )  # fmt: skip


def write_weights_page(judged: JudgedDialogues, out: Path, start: RewardSettings = PAPER) -> Path:
    """Write the frames to the file `out` as a page; returns its path. The same inputs give the same bytes."""
    body = Markup(frames_html(judged, start))
    write_atomic(out, environment().get_template("reward_weights.html").render(title=f"anthrolab reward weights: {judged.name}", body=body))
    return out


def _shared(views: list[dict[str, str]]) -> dict[str, Any]:
    """Every part's different texts, and which of them each frame has: many frames share a part."""
    packed = {}
    for part in PARTS:
        texts = list(dict.fromkeys(v[part] for v in views))
        place = {text: i for i, text in enumerate(texts)}
        packed[part] = {"texts": texts, "frames": [place[v[part]] for v in views]}
    return packed


def _placed(found: list[Axis]) -> Iterator[dict[str, Any]]:
    """Every axis with the number of its first frame."""
    offset = 0
    for axis in found:
        yield {"label": axis.label, "says": axis.says, "kind": axis.kind, "stops": axis.stops, "first": axis.first, "offset": offset}
        offset += len(axis.settings)

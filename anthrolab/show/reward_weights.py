"""Reward weights in a notebook: move a slider, see at once what would be rewarded, and use the setting for a training.

Where no kernel runs (a report, a page made of the notebook) the same object shows frames made beforehand.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as w  # type: ignore[import-untyped]
from markupsafe import Markup

from anthrolab.errors import AnthrolabError
from anthrolab.show.pages import asset
from anthrolab.show.reward_weights_dialogues import Grouping, JudgedDialogues
from anthrolab.show.reward_weights_effect import Effect, effect, score
from anthrolab.show.reward_weights_page import IN_A_CELL, frames_html
from anthrolab.show.reward_weights_presets import (
    ABLATIONS,
    EXPLAINED,
    PRESETS,
    Knob,
    idle,
    knobs,
    values_of,
    with_values,
)
from anthrolab.show.reward_weights_view import PARTS, Chosen, view
from anthrolab.training.reward.batch import Floats
from anthrolab.training.reward.settings import PAPER, RewardSettings, write_reward_settings

SETTINGS_FILE = "reward_settings.json"
ALL, OWN, MOST = "all systems", "each system's own mean scores", "the one that changes most"
_FULL = {"width": "100%"}


class RewardWeights(w.VBox):  # type: ignore[misc]
    """Sliders, presets and what they do. `settings` is what stands on the sliders, `effect` what was last shown.

    A dragged slider sends its positions one after the other, and ipywidgets holds back all but the latest while the kernel is
    busy: so a slow kernel leaves out frames, never the last one, and nothing has to wait for a pause.
    """

    def __init__(self, judged: JudgedDialogues, folder: Path, others: Mapping[str, Floats] | None = None, start: RewardSettings = PAPER) -> None:
        self.judged, self.others, self.start, self.folder = judged, dict(others or {}), start, folder
        self.effect: Effect
        values = values_of(start, judged.dimensions)
        self.sliders = {k.name: _slider(k, values[k.name]) for k in knobs(judged.dimensions, judged.names)}
        self.ablation = w.Dropdown(options=[(words, key) for key, words in ABLATIONS.items()], value=start.ablation, description="on", layout=_FULL)
        self.presets = {name: w.Button(description=name, layout={"width": "48%"}) for name in PRESETS}
        self.system = w.Dropdown(options=[ALL, *judged.systems] if len(judged.systems) > 1 else judged.systems, description="show", layout=_FULL)
        self.theta = w.Dropdown(options=[OWN, *self.others, *(judged.systems if len(judged.systems) > 1 else [])], description="θ from", layout=_FULL)
        self.grouping = w.Dropdown(description="groups", layout=_FULL)
        self.group = w.Dropdown(description="group", layout=_FULL)
        self.path = w.Text(value=str(folder / SETTINGS_FILE), layout=_FULL)
        self.use = w.Button(description="Use these for training", icon="check", button_style="primary", layout=_FULL)
        self.said, self.problem, self.limit = w.HTML(), w.HTML(), w.HTML()
        self.parts = {part: w.HTML(layout={"margin": "0"}) for part in PARTS}
        self._quiet = False
        self._observe()
        right = w.VBox([self.problem, *self.parts.values()], layout={"flex": "1 1 560px", "min_width": "0"})
        head = Markup('<style>{}</style><p class="al-head"><b>{}</b>: what would a training reward in these dialogues?</p>').format(Markup(asset("reward_weights.css")), judged.name)
        super().__init__([w.HTML(str(head)), w.HBox([self._controls(), right], layout={"align_items": "flex-start"})])
        self.add_class("al-weights")
        self.show_subject()

    @property
    def settings(self) -> RewardSettings:
        """What stands on the sliders; TrainingError, with the fix, if it cannot be used."""
        return with_values(self.start, {name: s.value for name, s in self.sliders.items()}, self.ablation.value, self.judged.dimensions)

    def set(self, settings: RewardSettings) -> None:
        """Put sliders and switch where some settings have them."""
        self._quiet = True
        try:
            self.start = settings
            for name, value in values_of(settings, self.judged.dimensions).items():
                slider = self.sliders[name]
                slider.min, slider.max = min(slider.min, value), max(slider.max, value)
                slider.value = value
            self.ablation.value = settings.ablation
        finally:
            self._quiet = False
        self.show()

    def show_subject(self) -> None:
        """Take the dialogues of the chosen system with the chosen capability, and show them."""
        judged = self.judged if self.system.value == ALL else self.judged.of_system(self.system.value)
        if self.theta.value in self.others:
            judged = judged.with_theta(self.others[self.theta.value])
        elif self.theta.value != OWN:
            judged = judged.with_theta(self.judged.of_system(self.theta.value).theta[0])
        self._subject, self._paper = judged, score(judged)
        self._offer(self.grouping, [(g.words + (" (stand-in)" if g.stand_in else ""), g.key) for g in judged.groupings], self.grouping.value)
        self.show_groups()

    def show_groups(self) -> None:
        """Offer the groups of the chosen kind, and show the dialogues."""
        labels = self._chosen_grouping().labels
        self._offer(self.group, [(MOST, ""), *((label, label) for label in labels)], self.group.value)
        self.show()

    def show(self) -> None:
        """Show what follows from sliders and choices; what cannot be used is said, and the last view stays, greyed."""
        off = idle(self.ablation.value, self.sliders["mix_adaptive"].value)
        for name, slider in self.sliders.items():
            slider.disabled = name in off
        self.said.value = ""
        try:
            settings = self.settings
        except AnthrolabError as e:
            self.problem.value = str(Markup('<p class="problem">{}</p>').format(f"Not shown, since it cannot be used: {e}"))
            for part in self.parts.values():
                part.add_class("al-stale")
            return
        share = 0.0 if settings.ablation == "legacy" else settings.mix_adaptive
        self.limit.value = f"<p>Only the adaptive part follows these: now {share:.2f} of the reward.</p>"
        self.problem.value = ""
        self.effect = effect(self._subject, settings, self._paper)
        for part, html in view(self.effect, Chosen(self._chosen_grouping(), self.group.value or None)).items():
            self.parts[part].value = html
            self.parts[part].remove_class("al-stale")

    def use_for_training(self) -> None:
        """Write the settings to the path, checked; say where, or what is wrong."""
        try:
            path = Path(self.path.value.strip() or self.folder / SETTINGS_FILE)
            write_reward_settings(path, self.settings)
        except AnthrolabError as e:
            self.said.value = str(Markup('<span class="problem">Not written: {}</span>').format(str(e)))
            return
        self.said.value = str(Markup('<span class="good">Written: <b>{}</b>. In notebook 09 set <code>reward = "{}"</code>.</span>').format(path, path))

    def _chosen_grouping(self) -> Grouping:
        kinds = {g.key: g for g in self._subject.groupings}
        return kinds[self.grouping.value]

    def _controls(self) -> Any:
        def box(kind: str, title: str, text: str, *inside: Any) -> Any:
            html = w.HTML(f'<p><b class="{kind}">{title}</b><br>{text}</p>' if text else f'<p><b class="{kind}">{title}</b></p>')
            made = w.VBox([html, *inside], layout={"width": "100%"})
            made.add_class("al-box")
            made.add_class(kind)
            return made

        shown = knobs(self.judged.dimensions, self.judged.names)
        weights, mixes, adaptive = ([self.sliders[k.name] for k in shown if fits(k)] for fits in (
            lambda k: k.weight, lambda k: not k.weight and not k.adaptive, lambda k: k.adaptive))  # fmt: skip
        controls = w.VBox(
            [w.HBox(list(self.presets.values()), layout={"flex_flow": "row wrap", "width": "100%"}),
             box("adaptive", *EXPLAINED["adaptive"], self.limit, *adaptive, self.ablation),
             box("rewarded", *EXPLAINED["mixes"], *mixes),
             box("rewarded", *EXPLAINED["weights"], *weights),
             box("shown", "What is shown", "", self.system, self.theta, self.grouping, self.group),
             box("shown", "Use it", "The file that a training takes:", self.path, self.use, self.said)],
            layout={"width": "330px", "flex": "0 0 330px", "margin": "0 16px 0 0"},
        )  # fmt: skip
        controls.add_class("al-controls")
        return controls

    def _observe(self) -> None:
        for name, slider in self.sliders.items():
            slider.add_class(f"al-{name}")
            slider.observe(partial(self._changed, self.show), names="value")
        for picker, name, act in ((self.ablation, "ablation", self.show), (self.system, "system", self.show_subject), (self.theta, "theta", self.show_subject),
                                  (self.grouping, "grouping", self.show_groups), (self.group, "group", self.show)):  # fmt: skip
            picker.add_class(f"al-{name}")
            picker.observe(partial(self._changed, act), names="value")
        for name, button in self.presets.items():
            button.add_class(f"al-preset-{name.lower().replace(' ', '-')}")
            button.on_click(lambda _, name=name: self.set(PRESETS[name]))
        self.use.on_click(lambda _: self.use_for_training())
        for box, name in ((self.use, "use"), (self.path, "path"), (self.said, "said"), (self.problem, "problem")):
            box.add_class(f"al-{name}")

    def _changed(self, act: Callable[[], None], _: Any) -> None:
        if not self._quiet:
            act()

    def _offer(self, picker: Any, options: list[tuple[str, str]], value: Any) -> None:
        """New options for a picker, without its telling us so; the value stays where it is still offered."""
        self._quiet = True
        try:
            with picker.hold_sync():
                if list(picker.options) != options:
                    picker.options = options
                picker.value = value if value in [key for _, key in options] else options[0][1]
        finally:
            self._quiet = False

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        if not isinstance(bundle, dict):
            return bundle
        return bundle | {"text/html": frames_html(self._subject, self.effect.now.settings, sliders=len(self._subject.batch) <= IN_A_CELL)}


def _slider(knob: Knob, value: float) -> Any:
    step = knob.step if abs(value / knob.step - round(value / knob.step)) < 1e-6 else 1e-4  # else the handle would stand, and read, elsewhere
    return w.FloatSlider(
        value=value, min=min(knob.low, value), max=max(knob.high, value), step=step, description=knob.label, tooltip=knob.says,
        readout_format=".2f" if step >= 0.01 and not knob.weight else ".1f" if knob.weight and step >= 0.1 else ".4f", layout=_FULL,
    )  # fmt: skip


def reward_weights(judged: JudgedDialogues, folder: Path, others: Mapping[str, Floats] | None = None, start: RewardSettings = PAPER) -> RewardWeights:
    """The sliders over some judged dialogues; the settings file goes to `folder`.

    others: capabilities (K,) of other runs by name, to be chosen as theta. start: where the sliders stand first.
    """
    return RewardWeights(judged, folder, others, start)

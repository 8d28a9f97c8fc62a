"""A GRPO training under way: steps of play, judge, reward, learn, each on disk before it is learnt from."""

import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anthrolab.bench.cases import Case
from anthrolab.bench.effort import Effort
from anthrolab.bench.settings import State
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.files import write_atomic
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.models.systems import System, default_systems_path, load_systems
from anthrolab.runtime.prompt import prompts_hash
from anthrolab.sync import Background
from anthrolab.training.checkpoints import cut_log, last_checkpoint, read_log, step_of
from anthrolab.training.grpo import gates
from anthrolab.training.grpo.episodes import Episodes, partner_of
from anthrolab.training.grpo.files import (
    KIND,
    Folder,
    Had,
    add_capability,
    capability_row,
    read_rollouts,
    write_capability,
    write_rollouts,
)
from anthrolab.training.grpo.held_out import is_due, write_held_out
from anthrolab.training.grpo.log import StepFacts, log_callback
from anthrolab.training.grpo.opening import make_sampler, make_trainer, open_episodes
from anthrolab.training.grpo.plan import cases_of_step, split_cases
from anthrolab.training.grpo.policy import Origin, load_policy, load_policy_tokenizer, origin_of
from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.grpo.timeline import PLAYING, Timeline, read_timeline
from anthrolab.training.grpo.trainer import Rows
from anthrolab.training.grpo.voice import Voice
from anthrolab.training.heavy import dtype_of, load_torch
from anthrolab.training.manifest import check_same, read_manifest, same, write_manifest
from anthrolab.training.preflight import Preflight
from anthrolab.training.reward.advantages import flat_groups, group_advantages
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.capability import Capability
from anthrolab.training.reward.ledger import initial_scores
from anthrolab.training.reward.log import RewardRow, rewards_path, write_rewards
from anthrolab.training.reward.reward import rewards
from anthrolab.training.reward.service import batch_of
from anthrolab.training.reward.settings import PAPER, RewardSettings, read_reward_settings
from anthrolab.training.settings import TrainingError
from anthrolab.training.sft import Trained, keep_tuned, library_versions
from anthrolab.training.training_log import Say, duration

CAPABILITY = "capability.json"
"""The filter's state in a checkpoint."""


@dataclass(frozen=True)
class Files:
    """Where systems, cards and rubric are read from; None: those that come with anthrolab."""

    systems: Path | None = None
    cards: Path | None = None
    rubric: Path | None = None


NO_FILES = Files()


@dataclass
class Training:
    """A training under way. Made by `open` (which loads nothing heavy) and used within `at_work`."""

    settings: GRPOSettings
    reward: RewardSettings
    folder: Folder
    library: Library
    rubric: Rubric
    dimensions: Dimensions
    systems: dict[str, System]
    partner: System | None
    state: State
    origin: Origin
    cases: list[Case]
    held_out: list[Case]
    capability: Capability
    manifest: dict[str, Any]
    files: Files
    effort: Effort
    say: Say
    facts: StepFacts = field(default_factory=StepFacts)
    _background: Background | None = None
    _episodes: Episodes | None = None
    _trainer: Any = None
    _checkpoint: Path | None = None
    _began: float = field(default_factory=time.monotonic)
    _spent_before: float = 0.0

    @classmethod
    def open(cls, settings: GRPOSettings, files: Files, effort: Effort, say: Say) -> "Training":
        """Reads every file and checks every name; begins the folder or compares it with what lies there."""
        cards_dir = files.cards or default_cards_dir()
        library, rubric = load_library(cards_dir), load_rubric(files.rubric)
        systems = load_systems(files.systems or default_systems_path())
        reward = PAPER if settings.reward is None else read_reward_settings(settings.reward)
        dimensions = Dimensions.of(rubric, reward.rho)
        scores = None if settings.capability_from is None else initial_scores(settings.capability_from, settings.judge)
        if reward.ablation == "static" and scores is None:
            raise TrainingError("reward.ablation: static keeps theta where it began, and nothing says where that is; give a judged run of the policy as capability_from (--capability-from)")
        state = State.of(None if settings.skills is None else Path(settings.skills), files.cards, {}, "rules", systems)
        cases, held_out = split_cases(library, settings.cases, settings.held_out_cases)
        origin, folder = origin_of(settings.policy), Folder(settings.out)
        training = cls(
            settings, reward, folder, library, rubric, dimensions, systems, partner_of(settings, systems), state, origin, cases, held_out,
            Capability.initial(dimensions, scores, reward), {}, files, effort, say,
        )  # fmt: skip
        training._begin(scores)
        return training

    @property
    def is_finished(self) -> bool:
        """Whether all steps that are wanted are done (or were ended by an alarm)."""
        return bool(self.manifest.get("finished")) and self.settings.steps <= int(self.manifest.get("steps_wanted", 0))

    def _begin(self, scores: dict[str, float | None] | None) -> None:
        """The manifest: a fresh one, or the one that lies there, compared with the settings, models and cards of now."""
        there = read_manifest(self.folder.manifest)
        self.folder.check_own(there)
        now = {
            "kind": KIND,
            "settings": self.settings.decisive,
            **self.origin.identity,
            "reward": self.reward.model_dump(mode="json"),
            "rubric": self.rubric.hash,
            "cards": self.library.content_hash(),
            "prompts": prompts_hash(),
            "skills": [s.label for s in self.state.skills],
            "partner": None if self.partner is None else self.partner.said_by(),
            "judge": self.systems[self.settings.judge].said_by() if self.settings.judge in self.systems else self.settings.judge,
            "cases": [c.id for c in self.cases],
            "held_out": [c.id for c in self.held_out],
            "capability": self.capability.by_dimension(),
        }
        self._checkpoint = last_checkpoint(self.folder.checkpoints, (CAPABILITY,))
        if self._checkpoint is not None and not there:
            raise TrainingError(f"{self.folder.manifest}: is missing, though there are checkpoints; give another folder with --out")
        base = there.get("settings", {}).pop("base", None)  # a path, known by its content below
        if there and self._checkpoint is None and "finished" not in there and not same(there, now):
            self.say(f"{self.folder.path}: nothing was learnt yet and the settings are others now; its dialogues are played anew")
            self.folder.forget_steps()
            there = {}
        if there:
            check_same(self.settings.out, there, now)
        self.manifest = (there or now) | {"settings": {**self.settings.decisive, "base": base or self.origin.base}, "watch": self.settings.watch.model_dump(mode="json")}
        if not there:
            self.manifest |= {"capability_from": str(self.settings.capability_from) if scores else None, "versions": library_versions()}  # fmt: skip

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Model, trainer, partner and judge are ready; all are let go of at the end."""
        load_torch(self.settings.threads)
        tokenizer = load_policy_tokenizer(self.origin)
        dtype = dtype_of(self.settings)
        model = load_policy(self.origin, self.settings, dtype, tokenizer)
        voice = Voice(tokenizer, self.settings)
        model.generation_config.eos_token_id = voice.stops
        log = log_callback(self.folder, self.facts, self.settings.watch, self.say)
        self._trainer = make_trainer(self.settings, self.folder, model, voice, log, self.have, self.keep)
        sampler = make_sampler(self.settings, self._trainer, voice)
        with Background() as background:
            self._background, stack = background, AsyncExitStack()
            try:
                self._episodes = background.run(
                    open_episodes(
                        stack, self.settings, self.folder, self.library, self.rubric, self.dimensions, self.state, self.systems, self.partner, voice,
                        sampler, self.files.systems, self.effort,
                    )
                )  # fmt: skip
                self._spent_before = self._episodes.engine.meter.spent
                yield
            finally:
                background.run(stack.aclose())
                self._background = self._episodes = None

    def preflight(self) -> Preflight:
        """The gates over the first step's dialogues; nothing where a checkpoint shows that they were passed."""
        if self._checkpoint is not None:
            self.say(f"the gates were passed before {self._checkpoint.name}")
            return Preflight()
        self.say("playing the first step's dialogues, for the gates")
        write_manifest(self.folder.manifest, self.manifest)  # what the dialogues are played with
        had, _ = self._rollouts(1)
        assert self._episodes is not None
        voice, model = self._episodes.voice, self._trainer.accelerator.unwrap_model(self._trainer.model)
        seen = gates.template_gates(voice.tokenizer, had, self.settings)
        found = [*seen.gates, gates.tokens_gate(had, voice), gates.contract_gate(had, self.settings), gates.reward_gate(had, self.dimensions)]
        if all(gate.passed for gate in found):
            found.append(gates.log_probs_gate(model, had, dtype_of(self.settings), self.settings))
        self.manifest["gates"] = [vars(gate) for gate in found]
        return Preflight(found, seen.shown, seen.lengths)

    def run(self) -> None:
        """The steps, from the last checkpoint on."""
        done = step_of(self._checkpoint) if self._checkpoint else 0
        cut_log(self.folder.log, done)
        cut_log(self.folder.alarms, done)
        if self._checkpoint is None:
            write_capability(self.folder.capability, [capability_row(0, self.capability, None)])
            write_manifest(self.folder.manifest, self.manifest)
        else:
            self.capability = Capability.from_json((self._checkpoint / CAPABILITY).read_text(encoding="utf-8"))
            cut_log(self.folder.capability, done)
        if self._checkpoint is not None and (done >= self.settings.steps or self._ended_by_alarm(done)):
            self._trainer.restore(str(self._checkpoint))  # train() would go one step further
        else:
            self._trainer.train(resume_from_checkpoint=str(self._checkpoint) if self._checkpoint else None)
        self.manifest["last_held_out_seconds"] = self._look_at_held_out(self._trainer.state.global_step or done, last=True)

    def _ended_by_alarm(self, step: int) -> bool:
        """Whether an alarm that stops the training was raised at its last step, before the command was killed."""
        return self.settings.watch.stop and any(row["step"] == step for row in read_log(self.folder.alarms))

    def have(self, step: int) -> Rows:
        """The training rows of a step: play, judge, reward, observe; everything is on disk before it is learnt from."""
        held_out_seconds = self._look_at_held_out(step - 1)
        had, timeline = self._rollouts(step)
        with timeline.span("reward", f"step {step}"):
            batch = batch_of([judged for _, judged in had], self.dimensions)
            found = rewards(batch, self.capability.theta, self.dimensions, self.reward)
            groups = [r.group for r, _ in had]
            advantages = group_advantages(found.reward, groups, scale=self.settings.scale_advantages)
            after, seen = self.capability.observe(batch, self.reward)
        numbers = {g: i for i, g in enumerate(dict.fromkeys(groups))}
        rows = [
            RewardRow(r.number, numbers[r.group], r.case.id, r.case.binding, r.case.role, r.dialogue, judged, r.fault) for r, judged in had
        ]
        write_rewards(rewards_path(self.folder.rewards, step), step, rows, self.dimensions, batch, found, self.capability.theta, advantages)
        add_capability(self.folder.capability, capability_row(step, after, seen))
        self.capability = after
        self.facts.of_step(step, had, found.reward, flat_groups(found.reward, groups), timeline, self._spent(), self.settings.judge, held_out_seconds)
        pairs = [(d, float(a)) for (r, _), a in zip(had, advantages, strict=True) for d in r.decisions if d.completion]
        learning = [(d, a) for d, a in pairs if a or self.settings.beta]  # without a KL term a row of advantage 0 teaches nothing
        return Rows([d for d, _ in learning], [a for _, a in learning], sum(len(d.completion) for d, _ in pairs))

    def keep(self, checkpoint: str) -> None:
        """The filter's state, last of all into a checkpoint: one without it is not whole."""
        write_atomic(Path(checkpoint) / CAPABILITY, self.capability.to_json() + "\n")

    def finish(self) -> Trained:
        """The adapter (or model) with its tokenizer, and the manifest."""
        rows = read_log(self.folder.log)
        self.manifest |= {
            "steps": len(rows), "steps_wanted": self.settings.steps, "alarms": read_log(self.folder.alarms),
            "training_seconds": round(sum(row["seconds"] for row in rows), 1),
            "held_out_seconds": round(sum(row["held_out_seconds"] for row in rows) + self.manifest.pop("last_held_out_seconds"), 1), "last_command_seconds": round(time.monotonic() - self._began, 1), "finished": True,
        }  # fmt: skip
        keep_tuned(self._trainer.accelerator.unwrap_model(self._trainer.model), self._trainer.processing_class, self.folder.path / "tuned")
        write_manifest(self.folder.manifest, self.manifest)
        self.say(f"trained in {duration(self.manifest['training_seconds'])}: {self.folder.path / 'tuned'}")
        return Trained(self.folder.path, self.folder.path / "tuned", rows, self.manifest)

    def _rollouts(self, step: int) -> tuple[Had, Timeline]:
        """The step's rollouts and how its time went so far: those on disk, or played now."""
        path = self.folder.rollouts(step)
        if path.exists():
            spans = read_timeline(self.folder.timeline(step)) if self.folder.timeline(step).exists() else []
            return read_rollouts(path, self.dimensions), Timeline.resumed([s for s in spans if s.kind in PLAYING])
        timeline = Timeline()
        cases = [c for c in cases_of_step(self.cases, step, self.settings.cases_per_step, self.settings.seed) for _ in range(self.settings.group)]
        had = self._play(f"step-{step:04d}", cases, timeline, self.settings.group)
        timeline.write(self.folder.timeline(step))
        write_rollouts(path, had, self.dimensions)
        return had, timeline

    def _play(self, name: str, cases: list[Case], timeline: Timeline, group: int = 1) -> Had:
        """Play and judge. TrainingError if nothing is known of any dialogue, since partner or judge failed: that is kept nowhere."""
        assert self._background is not None and self._episodes is not None
        sampler = self._episodes.sampler
        if hasattr(sampler, "forget"):
            sampler.forget()
        had = self._background.run(self._episodes.have(name, cases, timeline, group))
        faults = [rollout.fault or (judged.fault if judged else None) for rollout, judged in had if judged is None or judged.status == "judge_failed"]
        if len(faults) == len(had):
            who = "the partner" if had[0][1] is None else "the judge"
            raise TrainingError(f"{name}: no dialogue has a reward: {who} failed ({faults[0]}); see that its server answers, and the same command goes on from here")
        return had

    def _look_at_held_out(self, step: int, last: bool = False) -> float:
        """Have the held-out cases played and judged if it is time (an alarm may end a training early), unless that is on disk.
        Returns the seconds that it took."""
        path = self.folder.held_out(step)
        if not self.held_out or path.exists() or not (last or is_due(step, self.settings.steps, self.settings.held_out_every)):
            return 0.0
        began = time.monotonic()
        self.say(f"after step {step}: {len(self.held_out)} held-out cases")
        had = self._play(f"held-out-{step:04d}", self.held_out, Timeline())
        write_rollouts(self.folder.held_out_rollouts(step), had, self.dimensions)
        write_held_out(path, step, had, self.rubric, self.dimensions)
        return round(time.monotonic() - began, 1)

    def _spent(self) -> float | None:
        assert self._episodes is not None
        meter = self._episodes.engine.meter
        return meter.spent - self._spent_before if meter.priced else None

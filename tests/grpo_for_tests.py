"""The folder of a GRPO training made by hand, with the real cards, rubric, reward, filter and watch, and no model."""

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anthrolab.bench.cases import Case, select_cases
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.files import append_line, write_atomic
from anthrolab.judging.l0.result import L0Result, Violation
from anthrolab.judging.rubric import load_rubric
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Message, Participant, other
from anthrolab.training.grpo.files import Folder, Had, add_capability, capability_row, write_rollouts
from anthrolab.training.grpo.held_out import TYPES
from anthrolab.training.grpo.rollout import Decision as Choice
from anthrolab.training.grpo.rollout import Rollout
from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.grpo.watch import watched
from anthrolab.training.reward.advantages import flat_groups, group_advantages
from anthrolab.training.reward.batch import Batch, Dimensions, Floats
from anthrolab.training.reward.capability import Capability
from anthrolab.training.reward.log import RewardRow, rewards_path, write_rewards
from anthrolab.training.reward.reward import rewards
from anthrolab.training.reward.service import Judged
from anthrolab.training.reward.settings import RewardSettings

SAID = ("在呢", "刚看到 手上有点事", "那你说咋整", "行吧 先这样", "我妈又催我回去", "笑死 你也太能扯了", "周末再说呗", "等下 有人敲门")
PADDING = "真的真的特别特别重要 我觉得我们应该好好聊聊这件事情"
START = (0.62, 0.70, 0.45, 0.66, 0.58, 0.35, 0.52, 0.60, 0.48)
"""What the policy can do in the first nine dimensions before the training; the tenth is never assessed."""


def make_training(
    folder: Path, *, steps: int = 12, ablation: str = "full", gain: float = 0.3, hacked: bool = False, finished: bool = True, seed: int = 1,
    judge: str = "rules", cases: int = 2, group: int = 4, held_out: Sequence[int] | None = None, **changes: Any,
) -> Path:  # fmt: skip
    """A training of some steps, each of `group` dialogues of `cases` cases.

    gain: how much ability the policy has won in each dimension at the end, and of the held-out score (1.0: all).
    hacked: its messages grow from the middle on, while the reward rises. held_out: steps with held-out cases (none
    given: before, in the middle and at the end). In every third step one dialogue is invalid, in every fourth the judge fails at one.
    `changes` replace fields of the manifest.
    """
    library, draws = load_library(default_cards_dir()), np.random.default_rng(seed)
    dimensions = Dimensions.of(load_rubric())
    reward = RewardSettings.of(ablation=ablation)
    planned = select_cases(library, None)
    chosen, kept = planned[:cases], planned[12:24]
    capability = Capability.initial(dimensions, dict(zip(dimensions.ids, START, strict=False)), reward)
    manifest = _manifest(folder, reward, chosen, kept, steps=steps, group=group, judge=judge, seed=seed)
    ends = {"capability": capability.by_dimension(), "steps": steps, "steps_wanted": steps, "finished": finished}
    write_atomic(folder / "manifest.json", json.dumps(manifest | ends | changes, ensure_ascii=False, indent=1) + "\n")
    add_capability(Folder(folder).capability, capability_row(0, capability, None))
    at = (0, steps // 2, steps) if held_out is None else held_out
    for step in range(steps + 1):
        if step in at:
            _write(folder / "held_out" / f"{step:04}.parquet", _held_out(kept, step, gain * step / steps, dimensions, seed))
        if step:
            capability = _step(folder, step, steps, chosen, group, capability, dimensions, reward, gain, hacked, library, draws)
    return folder


def dialogue(library: Library, case: Case, texts: Sequence[str], dialogue_id: str, *, silences: int = 1) -> Dialogue:
    """A chat in which the tested side says `texts`, each answered by its partner, and decides `silences` times to say nothing."""
    binding = library.bindings[case.binding]
    scenario = library.scenarios[binding.scenario]
    tested, start = case.role, scenario.start
    messages = [Message(speaker=scenario.opener.speaker, content=scenario.opener.content, at=start, opener=True)]
    asks = []
    for i, text in enumerate(texts):
        at = start + timedelta(seconds=40 * i + 20)
        asks.append(Ask(speaker=tested, now=messages[-1].at, decision=Decision(content=text, at=at, end=False)))
        messages.append(Message(speaker=tested, content=text, at=at, opener=False))
        messages.append(Message(speaker=other(tested), content=f"嗯 第{i + 1}句", at=at + timedelta(seconds=15), opener=False))
    late = messages[-1].at
    asks += [Ask(speaker=tested, now=late, decision=Decision(content="", at=late, end=True))] * silences
    people = {"a": library.personas[binding.persona_a], "b": library.personas[binding.persona_b]}
    return Dialogue(
        dialogue_id=dialogue_id, binding=binding.id, scenario=scenario.id, evaluated_role=tested,
        speakers={"a": Participant(name=people["a"].name, persona=people["a"].id), "b": Participant(name=people["b"].name, persona=people["b"].id)},
        start=start, horizon_minutes=scenario.horizon_minutes, stop="closed", messages=messages, asks=asks,
    )  # fmt: skip


def _manifest(folder: Path, reward: RewardSettings, chosen: Sequence[Case], kept: Sequence[Case], **given: Any) -> dict[str, Any]:
    """As a training begins it; models by made-up identities."""
    settings = GRPOSettings.of(
        policy="runs/sft/tuned", out=folder, kind="transcript", cases=[c.id for c in chosen], group=given["group"], cases_per_step=len(chosen),
        steps=given["steps"], judge=given["judge"], seed=given["seed"], held_out_cases=[c.id for c in kept], held_out_every=max(1, given["steps"] // 2),
    )  # fmt: skip
    return {
        "settings": settings.decisive | {"base": "gemma3-270m"}, "base": "1" * 16, "adapter": "2" * 16, "reward": reward.model_dump(mode="json"),
        "rubric": load_rubric().hash, "cards": "5" * 16, "prompts": "6" * 16, "skills": [], "partner": {"name": "gemma-3-270m", "policy": "transcript"},
        "judge": given["judge"], "cases": [c.id for c in chosen], "held_out": [c.id for c in kept], "capability_from": None, "versions": {"python": "3.11.0"},
        "gates": [{"name": "contract", "passed": True, "seen": "40 of 41 replies keep it", "fix": ""}],
    }  # fmt: skip


def _step(
    folder: Path, step: int, steps: int, cases: Sequence[Case], group: int, before: Capability, dimensions: Dimensions, reward: RewardSettings,
    gain: float, hacked: bool, library: Library, draws: np.random.Generator,
) -> Capability:  # fmt: skip
    """One step's files; returns the capability after it."""
    n, k = len(cases) * group, len(dimensions.ids)
    ability = np.array([*START, *[np.nan] * k][:k]) + gain * step / steps
    scores = np.round(np.clip(ability + draws.normal(0, 0.12, (n, k)), 0, 1) * 8) / 8
    judged, valid = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
    valid[0], judged[n - 1] = step % 3 != 0, step % 4 != 0
    scores[~(valid & judged)] = np.nan
    batch = Batch(scores, np.where(np.isnan(scores), np.nan, scores == 1), valid, judged)
    given = rewards(batch, before.theta, dimensions, reward)
    long = hacked and step > steps // 2
    rows: list[RewardRow] = []
    had: Had = []
    for i in range(n):
        case = cases[i // group]
        texts = [str(t) + (PADDING if long else "") for t in draws.choice(SAID, draws.integers(3, 6), replace=False)]
        chat = dialogue(library, case, texts, f"step-{step:04}-{case.id}-{i}", silences=int(draws.integers(1, 3)))
        found = _judged(chat, scores[i], batch.passed[i], bool(valid[i]), bool(judged[i]))
        rows.append(RewardRow(i, i // group, case.id, case.binding, case.role, chat, found))
        made = [Choice((2, 9, 9), (7, 7, 1)) for _ in chat.asks or []]
        had.append((Rollout(i, f"step-{step:04}/{case.id}", case, chat, None, made), found))
    groups = [str(row.group) for row in rows]
    write_rewards(rewards_path(folder / "rewards", step), step, rows, dimensions, batch, given, before.theta, group_advantages(given.reward, groups))
    write_rollouts(Folder(folder).rollouts(step), had, dimensions)
    dialogues = [row.dialogue for row in rows if row.dialogue]
    _timeline(folder / "timeline" / f"{step:04}.jsonl", [d.dialogue_id for d in dialogues])
    there = given.reward[~np.isnan(given.reward)]
    row = {
        "step": step, "reward": float(there.mean()), "reward_std": float(there.std()), "rollouts": n, "no_reward": n - len(there),
        "invalid": int((~valid).sum()), "groups": len(cases), "flat_groups": flat_groups(given.reward, groups)[0], "decisions": sum(len(d.asks or []) for d in dialogues), "tokens": 900 * n,
        "loss": float(draws.normal(0, 0.01)), "kl": 0.001 * step, "entropy": 2.0 - 0.02 * step, "grad_norm": 0.8, "learning_rate": 1e-5, "seconds": 61.0,
        **watched(dialogues, [int(not v) for v in valid]), "rules_score": None, "cost": None,
    }  # fmt: skip
    append_line(folder / "log.jsonl", json.dumps(row))
    after, observed = before.observe(batch, reward)
    add_capability(Folder(folder).capability, capability_row(step, after, observed))
    return after


def _judged(chat: Dialogue, scores: Floats, passed: Floats, valid: bool, judged: bool) -> Judged:
    broken = () if valid else (Violation("L0-05", chat.turns()[1], "equals message 2"),)
    gate = L0Result(valid, None if valid else "fatal", broken, (), ("L0-05",))
    if not judged:
        return Judged(chat.dialogue_id, gate, None, "judge_failed", "timeout", scores, passed)
    return Judged(chat.dialogue_id, gate, None, "scored" if valid else "invalid", None if valid else "L0-05", scores, passed)


def _timeline(path: Path, ids: Sequence[str]) -> None:
    """Waves of generation with the partner between them; a dialogue is judged when it has ended, while others go on; then the training."""
    spans, now, judged_until = [], 0.0, 0.0
    for wave in range(6):
        spans.append({"kind": "generate", "of": f"wave {wave + 1}", "start": now, "end": now + 4.0})
        spans += [{"kind": "partner", "of": i, "start": now + 4.0, "end": now + 5.0 + 0.3 * j} for j, i in enumerate(ids[: 6 - wave])]
        now += 6.0
        for i in ids[wave * len(ids) // 6 : (wave + 1) * len(ids) // 6]:
            spans.append({"kind": "judge", "of": i, "start": now, "end": now + 7.0})
            judged_until = now + 7.0
    spans += [{"kind": "reward", "of": "batch", "start": judged_until, "end": judged_until + 0.05},
              {"kind": "train", "of": "batch", "start": judged_until + 0.05, "end": judged_until + 20.0}]  # fmt: skip
    write_atomic(path, "".join(json.dumps(s) + "\n" for s in spans))


def _held_out(cases: Sequence[Case], step: int, lift: float, dimensions: Dimensions, seed: int) -> pl.DataFrame:
    """Scores of the held-out cases; a case is as hard in every run. One is always invalid, one was not had after the beginning."""
    rows = []
    for i, case in enumerate(cases):
        hard = np.random.default_rng(i).uniform(-0.15, 0.15)
        own = np.random.default_rng([i, step, seed]).normal(0, 0.03, len(dimensions.ids))
        s = np.clip(np.array([*START, 0.5][: len(dimensions.ids)]) + hard + lift + own, 0, 1)
        valid = None if i == 11 and step else i != 10
        turn, whole = float(s[dimensions.local].mean()), float(s[~dimensions.local].mean())
        rows.append(
            {"step": step, "case_id": case.id, "binding": case.binding, "role": case.role, "category": case.category, "sample": 0,
             "dialogue_id": f"h{step:04}-{case.id}-0", "valid": valid, "score": 50 * (turn + whole) if valid else None,
             "turn_score": turn if valid else None, "dialogue_score": whole if valid else None, "passed": bool(s.min() > 0.6) if valid else None,
             **{f"s_{d}": float(v) if valid and j < len(START) else None for j, (d, v) in enumerate(zip(dimensions.ids, s, strict=True))}}
        )  # fmt: skip
    return pl.DataFrame(rows, schema={**TYPES, **{f"s_{d}": pl.Float64 for d in dimensions.ids}})


def _write(path: Path, frame: pl.DataFrame) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(path)

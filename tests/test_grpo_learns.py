"""A policy learns what is rewarded: short replies are wanted, and in thirty steps they come, far beyond the noise of draws."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from anthrolab.bench.cases import select_cases  # noqa: E402
from anthrolab.bench.settings import Limits, State  # noqa: E402
from anthrolab.cards.library import default_cards_dir, load_library  # noqa: E402
from anthrolab.judging.l0 import check  # noqa: E402
from anthrolab.models.engine import Engine  # noqa: E402
from anthrolab.models.opening import open_models  # noqa: E402
from anthrolab.models.scripted import Served, serve  # noqa: E402
from anthrolab.models.systems import System  # noqa: E402
from anthrolab.runtime.dialogue import Dialogue  # noqa: E402
from anthrolab.sync import Background  # noqa: E402
from anthrolab.training.grpo.episodes import Episodes  # noqa: E402
from anthrolab.training.grpo.policy import load_policy, load_policy_tokenizer, origin_of  # noqa: E402
from anthrolab.training.grpo.sampler import TransformersSampler  # noqa: E402
from anthrolab.training.grpo.timeline import Timeline  # noqa: E402
from anthrolab.training.grpo.trainer import Rows, arguments, trainer_class  # noqa: E402
from anthrolab.training.grpo.voice import Voice  # noqa: E402
from anthrolab.training.heavy import load_torch  # noqa: E402
from anthrolab.training.reward.advantages import group_advantages  # noqa: E402
from anthrolab.training.reward.service import Judged  # noqa: E402
from tests.grpo_command import settings_of  # noqa: E402
from tests.policy_for_tests import CASE, partner, speaking_policy  # noqa: E402

LIBRARY = load_library(default_cards_dir())
STEPS, LAST = 30, 10
SHORT = 4
"""Characters of a reply that earns a full reward; a decision of silence earns nothing."""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return speaking_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def toy() -> Iterator[Served]:
    with serve(partner) as served:
        yield served


def toy_reward(dialogue: Dialogue) -> float:
    """The share of the policy's messages that are short; 0 without a message."""
    said = [dialogue.messages[i].content for i in dialogue.turns()]
    return sum(len(text) <= SHORT for text in said) / len(said) if said else 0.0


@dataclass
class ToyService:
    """In place of the reward service: the toy reward as the one score."""

    async def judge(self, dialogue: Dialogue) -> Judged:
        score = np.array([toy_reward(dialogue)])
        return Judged(dialogue.dialogue_id, check(dialogue, {}, None), None, "scored", None, score, score)


class Shortened(Voice):
    """The end of every prompt is enough for this toy, and quicker."""

    def encode(self, request: Any) -> tuple[int, ...]:
        return super().encode(request)[-120:]


def rewards_of(policy: Path, served: Served, out: Path, seed: int, rate: float) -> list[float]:
    """The mean toy reward of each step; with `rate` 0 nothing is learnt."""
    settings = settings_of(policy, out, seed=seed, steps=STEPS, learning_rate=rate or 1e-9, group=16, beta=0.0, save_steps=1000, partner="toy", held_out_cases=0)
    load_torch(1)
    tokenizer = load_policy_tokenizer(origin_of(settings.policy))
    model = load_policy(origin_of(settings.policy), settings, "float32", tokenizer)
    voice = Shortened(tokenizer, settings)
    model.generation_config.eos_token_id = voice.stops
    system = System(name="toy", endpoint=served.url, model="scripted", server="openai", policy="chat")
    found: list[float] = []
    with Background() as background:
        stack = AsyncExitStack()
        models = background.run(stack.enter_async_context(open_models()))
        sampler = TransformersSampler(model, tokenizer.pad_token_id, voice.stops, settings.max_new_tokens)
        table = Episodes(settings, LIBRARY, Limits(max_messages=5, window=4), State(()), voice, sampler, ToyService(), models, Engine(), out / "calls", system)  # type: ignore[arg-type]
        cases = select_cases(LIBRARY, [CASE]) * settings.group

        def have(step: int) -> Rows:
            sampler.forget()
            had = background.run(table.have(f"step-{step:04d}", cases, Timeline(), settings.group))
            reward = [float(judged.scores[0]) for _, judged in had if judged]
            found.append(fmean(reward))
            advantages = group_advantages(reward, [r.group for r, _ in had])
            pairs = [(d, float(a)) for (r, _), a in zip(had, advantages, strict=True) for d in r.decisions]
            return Rows([d for d, _ in pairs], [a for _, a in pairs], sum(len(d.completion) for d, _ in pairs))

        try:
            if not rate:
                for step in range(1, LAST + 1):
                    have(step)
                return found
            from datasets import Dataset

            trainer = trainer_class()(
                model=model, args=arguments(settings, out / "checkpoints"), processing_class=tokenizer, train_dataset=Dataset.from_dict({"prompt": ["-"]}),
                have=have, keep=lambda _: None, share_prefixes=True, token_budget=60_000,
            )  # fmt: skip
            trainer.train()
            return found
        finally:
            background.run(stack.aclose())


def test_thirty_steps_raise_the_reward_beyond_the_noise_of_untrained_seeds(policy: Path, toy: Served, tmp_path: Path) -> None:
    untrained = [fmean(rewards_of(policy, toy, tmp_path / f"u{seed}", seed, 0.0)) for seed in range(5)]
    trained = rewards_of(policy, toy, tmp_path / "t", 1, 1.5e-3)
    learnt = fmean(trained[-LAST:])
    print(f"untrained {[round(u, 3) for u in untrained]}, trained {[round(t, 3) for t in trained]}")
    assert learnt > max(untrained)
    assert learnt > fmean(untrained) + 4 * stdev(untrained)

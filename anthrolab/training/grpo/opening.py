"""What a GRPO training works with, opened: the trainer, what samples, and the table where dialogues are played and judged."""

from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

from anthrolab.bench.effort import Effort
from anthrolab.bench.settings import Limits, State
from anthrolab.cards.library import Library
from anthrolab.judging.rubric import Rubric
from anthrolab.models.opening import open_models
from anthrolab.models.systems import System
from anthrolab.training.grpo.episodes import Episodes
from anthrolab.training.grpo.files import Folder
from anthrolab.training.grpo.rollout import Sampler
from anthrolab.training.grpo.sampler import TransformersSampler
from anthrolab.training.grpo.settings import GRPOSettings
from anthrolab.training.grpo.trainer import Rows, arguments, trainer_class
from anthrolab.training.grpo.voice import Voice
from anthrolab.training.reward.batch import Dimensions
from anthrolab.training.reward.service import open_reward_service


def make_trainer(
    settings: GRPOSettings, folder: Folder, model: Any, voice: Voice, log: Any, have: Callable[[int], Rows], keep: Callable[[str], None]
) -> Any:
    """The trainer on TRL. `log`: a callback; `have`: the rows of a step; `keep`: called with each checkpoint's folder."""
    from datasets import Dataset  # type: ignore[import-untyped]
    from transformers import PrinterCallback

    trainer = trainer_class()(
        model=model, args=arguments(settings, folder.checkpoints, voice.stops), processing_class=voice.tokenizer, callbacks=[log],
        train_dataset=Dataset.from_dict({"prompt": ["-"] * settings.cases_per_step}),
        have=have, keep=keep, share_prefixes=settings.share_prefixes, token_budget=settings.token_budget,
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)  # the log says it already
    return trainer


def make_sampler(settings: GRPOSettings, trainer: Any, voice: Voice) -> Sampler:
    """What draws the policy's replies: transformers on the model that is trained, or the trainer's own vLLM."""
    if settings.backend != "transformers":
        found: Sampler = trainer
        return found
    model = trainer.accelerator.unwrap_model(trainer.model)
    return TransformersSampler(model, voice.tokenizer.pad_token_id, voice.stops, settings.max_new_tokens, settings.temperature, settings.share_prefixes)


async def open_episodes(
    stack: AsyncExitStack, settings: GRPOSettings, folder: Folder, library: Library, rubric: Rubric, dimensions: Dimensions, state: State,
    systems: dict[str, System], partner: System | None, voice: Voice, sampler: Sampler, systems_file: Path | None, effort: Effort,
) -> Episodes:  # fmt: skip
    """Partner and judge on one engine, whose replies and money they share; `stack` closes them."""
    models = await stack.enter_async_context(open_models())
    engine = await stack.enter_async_context(effort.engine_at(folder.path, *systems.values()))
    opened = open_reward_service(
        settings.judge, rubric, library, dimensions, folder.calls / f"judge-{settings.judge}.jsonl", systems_file=systems_file,
        engine_for=lambda _: nullcontext(engine), models=models, deadline_s=effort.deadline_s,
    )  # fmt: skip
    service = await stack.enter_async_context(opened)
    limits = Limits(max_messages=settings.max_messages, window=settings.window)
    return Episodes(settings, library, limits, state, voice, sampler, service, models, engine, folder.calls, partner)

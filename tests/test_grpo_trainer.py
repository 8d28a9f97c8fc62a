"""The adapter on TRL: its loss and gradient are those of the formula, however the rows are cut and filled up."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from anthrolab.training import tree_attention  # noqa: E402
from anthrolab.training.dense import load_tokenizer  # noqa: E402
from anthrolab.training.grpo.policy import load_policy, origin_of  # noqa: E402
from anthrolab.training.grpo.rollout import Decision, Prompt, Sampled  # noqa: E402
from anthrolab.training.grpo.sampler import TransformersSampler, speaking  # noqa: E402
from anthrolab.training.grpo.settings import GRPOSettings  # noqa: E402
from anthrolab.training.grpo.trainer import Rows, _of_vllm, _pieces, arguments, trainer_class  # noqa: E402
from anthrolab.training.heavy import load_torch  # noqa: E402
from anthrolab.training.reward.advantages import group_advantages  # noqa: E402
from tests.training_for_tests import tiny_base, tiny_tokenizer  # noqa: E402

TEMPERATURE = 0.7


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    load_torch(1)
    return tiny_base(tmp_path_factory.mktemp("base"))


def model_of(base: Path, lora: bool = True, share: bool = True, dropout: float = 0.0) -> Any:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, set_seed

    tree_attention.register()
    model: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, attn_implementation=tree_attention.NAME if share else "sdpa")
    if not lora:
        return model
    set_seed(3)
    model = get_peft_model(model, LoraConfig(r=4, lora_dropout=dropout, target_modules="all-linear", exclude_modules=["lm_head"], task_type="CAUSAL_LM"))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.3)
    return model


def rollouts(seed: int = 0) -> list[list[Decision]]:
    """Four dialogues with one to four decisions; those of a dialogue begin alike, and their lengths differ."""
    drawn = random.Random(seed)
    found = []
    for dialogue in range(4):
        z = tuple(drawn.randrange(6, 200) for _ in range(12))
        found.append([Decision((*z, *(drawn.randrange(6, 200) for _ in range(3 + 5 * k))), tuple(drawn.randrange(6, 200) for _ in range(2 + (k + dialogue) % 4))) for k in range(dialogue + 1)])
    return found


def rows_of(dialogues: list[list[Decision]], rewards: list[float]) -> Rows:
    advantages = group_advantages(rewards, ["g", "g", "h", "h"])
    pairs = [(d, float(a)) for decisions, a in zip(dialogues, advantages, strict=True) for d in decisions]
    return Rows([d for d, _ in pairs], [a for _, a in pairs], sum(len(d.completion) for d, _ in pairs))


def trainer_of(tmp_path: Path, model: Any, have: Callable[[int], Rows], **changes: Any) -> Any:
    from datasets import Dataset

    given = {"policy": "tiny", "out": tmp_path, "group": 4, "steps": 2, "temperature": TEMPERATURE, "learning_rate": 1e-2, "beta": 0.0, "max_new_tokens": 8, "token_budget": 100_000}
    settings = GRPOSettings.of(**{**given, **changes})
    return trainer_class()(
        model=model, args=arguments(settings, tmp_path / "checkpoints"), processing_class=tiny_tokenizer(), train_dataset=Dataset.from_dict({"prompt": ["-"]}),
        have=have, keep=lambda _: None, share_prefixes=settings.share_prefixes, token_budget=settings.token_budget,
    )  # fmt: skip


def hand_log_p(model: Any, decision: Decision) -> Any:
    """log p of each drawn token at TEMPERATURE, one sequence at a time, from the model's own scores."""
    ids = torch.tensor([[*decision.prompt, *decision.completion]])
    scores = model(input_ids=ids).logits[0, len(decision.prompt) - 1 : -1] / TEMPERATURE
    return scores.log_softmax(-1).gather(1, torch.tensor(decision.completion)[:, None])[:, 0]


def hand_loss(model: Any, rows: Rows, beta: float = 0.0, reference: list[Any] | None = None) -> Any:
    """-(1 / all tokens) sum over rows of A sum over tokens of ratio, the ratio being p / p without gradient; plus beta KL."""
    total = torch.zeros(())
    for i, (decision, advantage) in enumerate(zip(rows.decisions, rows.advantages, strict=True)):
        log_p = hand_log_p(model, decision)
        total = total - advantage * torch.exp(log_p - log_p.detach()).sum()
        if reference is not None:
            apart = reference[i] - log_p
            ratio = torch.exp(log_p - log_p.detach())  # 1, but with it the KL's gradient is unbiased (TRL's use_bias_correction_kl)
            total = total + beta * (ratio * (torch.exp(apart) - apart - 1)).sum()
    return total / rows.tokens


def gradients(model: Any) -> dict[str, Any]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad and p.grad is not None}


def one_step(trainer: Any) -> tuple[float, dict[str, Any]]:
    """Loss and gradient of one training step, nothing changed."""
    trainer.model.zero_grad()
    trainer.current_gradient_accumulation_steps = 1
    loss = trainer.training_step(trainer.model, [{"prompt": "-"}] * 4)
    return float(loss), gradients(trainer.model)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_loss_and_gradient_equal_the_formula(tmp_path: Path, base: Path, share: bool, beta: float) -> None:
    rows = rows_of(rollouts(), [0.9, 0.2, 0.4, 0.7])
    trainer = trainer_of(tmp_path, model_of(base, share=share), lambda _: rows, beta=beta, share_prefixes=share)
    model = trainer.accelerator.unwrap_model(trainer.model).eval()
    reference = None
    if beta:
        with torch.no_grad():
            for name, weight in model.named_parameters():  # the policy has moved away from where it began
                if ".default." in name:
                    weight.add_(0.05)
            with speaking(model, "initial"):
                reference = [hand_log_p(model, d) for d in rows.decisions]
    model.zero_grad()
    expected = hand_loss(model, rows, beta, reference)
    expected.backward()
    by_hand = gradients(model)
    loss, found = one_step(trainer)
    assert loss == pytest.approx(float(expected.detach()), abs=1e-6)
    assert found.keys() == by_hand.keys() and found
    for name, slope in by_hand.items():
        assert torch.allclose(found[name], slope, atol=1e-5, rtol=1e-3), name
    if beta:
        assert reference is not None and any(float((r - hand_log_p(model, d).detach()).abs().max()) > 1e-3 for r, d in zip(reference, rows.decisions, strict=True))


@pytest.mark.parametrize("budget", [64, 90, 150, 100_000])
@pytest.mark.parametrize("share", [True, False])
def test_the_loss_does_not_depend_on_how_the_rows_are_of_vllm(tmp_path: Path, base: Path, budget: int, share: bool) -> None:
    rows = rows_of(rollouts(), [0.9, 0.2, 0.4, 0.7])
    whole = one_step(trainer_of(tmp_path / "a", model_of(base), lambda _: rows, beta=0.1))
    trainer = trainer_of(tmp_path / "b", model_of(base, share=share), lambda _: rows, beta=0.1, token_budget=budget, share_prefixes=share)
    if budget == 64:
        assert len(trainer.pieces(trainer.padded(rows.decisions))) > 2
    loss, found = one_step(trainer)
    assert loss == pytest.approx(whole[0], abs=1e-6)
    for name, slope in whole[1].items():
        assert torch.allclose(found[name], slope, atol=2e-6, rtol=1e-4), name


@pytest.mark.parametrize("more", [1, 7])
def test_padding_changes_no_log_probability(tmp_path: Path, base: Path, more: int) -> None:
    rows = rows_of(rollouts(), [0.9, 0.2, 0.4, 0.7])
    trainer = trainer_of(tmp_path, model_of(base), lambda _: rows)
    batch = trainer.padded(rows.decisions)
    wide = {**batch}
    for name, left in (("prompt_ids", True), ("prompt_mask", True), ("completion_ids", False), ("completion_mask", False)):
        room = (more, 0) if left else (0, more)
        wide[name] = torch.nn.functional.pad(batch[name], room)
    one, other = trainer._scored(trainer.model, batch), trainer._scored(trainer.model, wide)
    assert torch.allclose(one, other[:, : one.shape[1]], atol=1e-5)
    assert not other[:, one.shape[1] :].any()


def test_a_dialogues_gradient_is_its_advantage_times_the_sum_over_its_tokens(tmp_path: Path, base: Path) -> None:
    """Doubling one dialogue's advantage doubles its own part of the gradient, whatever the other dialogues' lengths are."""
    rows = rows_of(rollouts(), [0.9, 0.2, 0.4, 0.7])
    parts = []
    for dialogue in range(4):
        first = sum(range(1, dialogue + 1))
        own = [a if first <= i < first + dialogue + 1 else 0.0 for i, a in enumerate(rows.advantages)]
        parts.append(one_step(trainer_of(tmp_path / str(dialogue), model_of(base), lambda _, own=own: Rows(rows.decisions, own, rows.tokens)))[1])  # type: ignore[misc]
    _, whole = one_step(trainer_of(tmp_path / "all", model_of(base), lambda _: rows))
    for name, slope in whole.items():
        assert torch.allclose(sum(p[name] for p in parts), slope, atol=2e-6, rtol=1e-4), name


def test_rows_without_advantage_may_be_left_out(tmp_path: Path, base: Path) -> None:
    rows = rows_of(rollouts(), [0.9, 0.2, 0.5, 0.5])
    kept = [(d, a) for d, a in zip(rows.decisions, rows.advantages, strict=True) if a]
    assert len(kept) < len(rows.decisions)
    less = Rows([d for d, _ in kept], [a for _, a in kept], rows.tokens)
    (loss, all_of_it), (other, found) = (one_step(trainer_of(tmp_path / n, model_of(base), lambda _, r=r: r)) for n, r in (("a", rows), ("b", less)))  # type: ignore[misc]
    assert loss == pytest.approx(other, abs=1e-6)
    assert all(torch.allclose(found[name], slope, atol=2e-6) for name, slope in all_of_it.items())


def test_a_step_without_rows_changes_nothing(tmp_path: Path, base: Path) -> None:
    model = model_of(base)
    before = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    trainer = trainer_of(tmp_path, model, lambda _: Rows([], [], 0), steps=1)
    trainer.train()
    assert all(torch.equal(before[n], p) for n, p in model.named_parameters() if n in before)


def test_pieces_hold_the_budget_and_every_row_once() -> None:
    drawn = random.Random(1)
    for share in (True, False):
        for _ in range(30):
            prompts = [[drawn.randrange(3) for _ in range(drawn.randrange(1, 20))] for _ in range(drawn.randrange(1, 12))]
            completions = [[drawn.randrange(3) for _ in range(drawn.randrange(1, 5))] for _ in prompts]
            pieces = list(_pieces(prompts, completions, 30, share))
            assert sorted(i for piece in pieces for i in piece) == list(range(len(prompts)))
            for piece in pieces:
                rows = [(*prompts[i], *completions[i]) for i in piece]
                distinct = len({row[: n + 1] for row in rows for n in range(len(row))}) if share else len(rows) * max(map(len, rows))
                assert len(piece) == 1 or distinct <= 30


def sampler_of(model: Any, **changes: Any) -> TransformersSampler:
    return TransformersSampler(**{"model": model, "pad": 0, "stops": [1, 5], "max_new_tokens": 12, "temperature": 0.8, **changes})


def prompts_of(lengths: list[int], shared: int, seed: int = 0, whose: Any = "policy") -> list[Prompt]:
    drawn = random.Random(seed)
    z = [drawn.randrange(6, 200) for _ in range(shared)]
    return [Prompt((*z, *(drawn.randrange(6, 200) for _ in range(n))), "g", whose) for n in lengths]


@pytest.mark.parametrize("lengths", [[5, 5, 5], [3, 40, 17], [60, 1, 2, 33]])
def test_reading_a_shared_beginning_once_draws_the_same(base: Path, lengths: list[int]) -> None:
    model = model_of(base)
    prompts = prompts_of(lengths, 150)
    plain = sampler_of(model, share=False).sample(prompts, 7)
    sharing = sampler_of(model)
    assert sharing.sample(prompts, 7) == plain
    assert sharing._kept, "the beginning was kept"
    grown = [Prompt((*p.ids, 9, 9, 9), "g") for p in prompts]
    assert sharing.sample(grown, 8) == sampler_of(model, share=False).sample(grown, 8), "what was kept serves the next wave"
    assert sampler_of(model, share=False).sample(prompts, 8) != plain, "another seed draws otherwise"


def test_kept_beginnings_do_not_outlive_the_weights(base: Path) -> None:
    model = model_of(base)
    sampler, prompts = sampler_of(model), prompts_of([4, 9], 120)
    sampler.sample(prompts, 1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora" in name:
                weight.mul_(3)
    sampler.forget()
    assert sampler.sample(prompts, 1) == sampler_of(model, share=False).sample(prompts, 1)


def test_sampling_leaves_the_trainings_own_draws_alone(base: Path) -> None:
    model = model_of(base)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    sampler_of(model).sample(prompts_of([3], 10), 99)
    assert torch.equal(torch.rand(3), expected)


def test_a_reply_ends_at_its_stop_token(base: Path) -> None:
    for reply in sampler_of(model_of(base), stops=list(range(0, 120)), max_new_tokens=30).sample(prompts_of([3] * 8, 10), 2):
        assert reply.stopped == (reply.ids[-1] < 120)
        assert all(token >= 120 for token in reply.ids[:-1])
        assert reply.stopped or len(reply.ids) == 30


def test_the_initial_policy_speaks_through_its_own_adapter(tmp_path: Path, base: Path) -> None:
    trainer = trainer_of(tmp_path, model_of(base), lambda _: Rows([], [], 0), beta=0.1)
    model = trainer.accelerator.unwrap_model(trainer.model)
    prompts = prompts_of([6, 8], 20, whose="initial")
    before = sampler_of(model).sample(prompts, 3)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".default." in name:
                weight.mul_(-4)
    assert sampler_of(model).sample(prompts, 3) == before
    assert sampler_of(model).sample(prompts_of([6, 8], 20), 3) != before
    assert model.active_adapter == "default"


def test_a_models_own_sampling_settings_do_not_shape_the_draws(tmp_path: Path, base: Path) -> None:
    """A repetition penalty in generation_config.json would draw from another distribution than the one that is trained."""
    import shutil

    from transformers import GenerationConfig

    other = tmp_path / "base"
    shutil.copytree(base, other)
    GenerationConfig(repetition_penalty=5.0, no_repeat_ngram_size=2, do_sample=True, top_k=3).save_pretrained(other)
    models = []
    for folder in (base, other):
        settings = GRPOSettings.of(policy=str(folder), out=tmp_path / "out", beta=0.0)
        tokenizer = load_tokenizer(str(folder))
        models.append(load_policy(origin_of(str(folder)), settings, "float32", tokenizer))
    prompts = prompts_of([4, 8], 20)
    assert sampler_of(models[0]).sample(prompts, 3) == sampler_of(models[1]).sample(prompts, 3)


def test_an_adapters_dropout_is_off(tmp_path: Path, base: Path) -> None:
    trainer = trainer_of(tmp_path, model_of(base, dropout=0.5), lambda _: Rows([], [], 0))
    found = [m.p for m in trainer.model.modules() if isinstance(m, torch.nn.Dropout)]
    assert found and not any(found)


def test_replies_of_vllm_end_at_the_stop_token_and_a_missing_log_p_is_nan() -> None:
    cut = _of_vllm([9, 5, 7], [-0.1, None, -0.3], [5])
    assert cut.ids == (9, 5) and cut.stopped and cut.logprobs is not None and cut.logprobs[0] == -0.1 and cut.logprobs[1] != cut.logprobs[1]
    assert _of_vllm([9, 8], [-1.0, -2.0], [5]) == Sampled((9, 8), False, (-1.0, -2.0))
    assert not _of_vllm([], [], [5]).stopped

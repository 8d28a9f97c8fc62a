"""Gates before a training: each lets good data through and stops at the fault that it is for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from anthrolab.loop.sft.samples import Sample
from anthrolab.training.chat_template import CHATML, GEMMA, stop_ids, with_chat_template
from anthrolab.training.model_gates import overfit_gate, scores_gate, small_batch
from anthrolab.training.preflight import Preflight, token_gates
from anthrolab.training.settings import TrainingError
from anthrolab.training.tokens import encode, ids_of, render
from tests.training_for_tests import sample, settings, tiny_model, tiny_tokenizer

GATES = ["template round trip", "system role", "think tags", "stop token", "completion only", "truncation"]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    made = tiny_tokenizer()
    with_chat_template(made, "tiny")
    return made


def gates(tokenizer: Any, samples: list[Sample], tmp: Path, template: str | None = None, **changes: Any) -> Preflight:
    chosen = settings(tmp, **changes)
    before = tokenizer.chat_template
    tokenizer.chat_template = template or before
    try:
        encoded = [encode(tokenizer, s, stop_ids(tokenizer), chosen.max_length) for s in samples]
        return token_gates(tokenizer, samples, encoded, chosen)
    finally:
        tokenizer.chat_template = before


def failed(seen: Preflight) -> list[str]:
    return [gate.name for gate in seen.gates if not gate.passed]


SAMPLES = [sample(0, k) for k in range(4)]


def test_good_data_pass_all_gates_of_tokens(tokenizer: Any, tmp_path: Path) -> None:
    seen = gates(tokenizer, SAMPLES, tmp_path)
    assert [gate.name for gate in seen.gates] == GATES
    assert seen.passed, failed(seen)
    seen.require()


def test_two_samples_are_shown_with_the_completion_and_its_stop_token_marked(tokenizer: Any, tmp_path: Path) -> None:
    seen = gates(tokenizer, SAMPLES, tmp_path)
    assert [s.id for s in seen.shown] == ["d0/0", "d0/1"], "a message and a silence"
    for shown in seen.shown:
        first = shown.trained.index(True)
        assert all(shown.trained[first:])
        assert shown.tokens[-1] == "<end_of_turn>"
        assert "".join(shown.tokens[:first]).endswith("<start_of_turn>model\n")


def test_a_template_without_a_generation_prompt_fails_the_round_trip(tokenizer: Any, tmp_path: Path) -> None:
    template = GEMMA.replace("{%- if add_generation_prompt -%}", "{%- if false -%}")
    seen = gates(tokenizer, SAMPLES, tmp_path, template)
    assert "template round trip" in failed(seen)
    with pytest.raises(TrainingError, match=r"gate 'template round trip' failed: .*generation prompt.*; give the tokenizer"):
        seen.require()


def test_a_template_that_asks_in_other_words_than_it_trains_fails_the_round_trip(tokenizer: Any, tmp_path: Path) -> None:
    template = GEMMA.replace("{{ '<start_of_turn>model\\n' }}", "{{ '<start_of_turn>user\\n' }}")
    assert "template round trip" in failed(gates(tokenizer, SAMPLES, tmp_path, template))


def test_a_template_that_drops_the_system_text_fails_the_system_role(tokenizer: Any, tmp_path: Path) -> None:
    template = GEMMA.replace("(first if loop.first else '')", "''")
    assert failed(gates(tokenizer, SAMPLES, tmp_path, template)) == ["system role"]


def test_a_template_that_puts_the_system_text_last_fails_the_system_role(tokenizer: Any, tmp_path: Path) -> None:
    template = GEMMA.replace("+ (first if loop.first else '') }}", "}}").replace("{{ '<end_of_turn>\\n' }}", "{{ (first if loop.first else '') + '<end_of_turn>\\n' }}")
    assert failed(gates(tokenizer, SAMPLES, tmp_path, template)) == ["system role"]


def test_think_tags_in_a_completion_fail_unless_they_are_wanted(tokenizer: Any, tmp_path: Path) -> None:
    thinking = [*SAMPLES, sample(0, 5, completion='<think>嗯</think>{"role": "x"}')]
    seen = gates(tokenizer, thinking, tmp_path)
    assert failed(seen) == ["think tags"]
    assert "d0/5" in next(gate.seen for gate in seen.gates if not gate.passed)
    assert gates(tokenizer, thinking, tmp_path, allow_thinking=True).passed


QWEN_LIKE = (
    "{%- for m in messages -%}{%- if m['role'] == 'assistant' -%}"
    "{{ '<start_of_turn>model\\n<think>\\n\\n</think>\\n\\n' + m['content'] + '<end_of_turn>\\n' }}"
    "{%- else -%}{{ '<start_of_turn>' + m['role'] + '\\n' + m['content'] + '<end_of_turn>\\n' }}{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false -%}{{ '<think>\\n\\n</think>\\n\\n' }}{%- endif -%}{%- endif -%}"
)
"""The last turn has an empty think block, and so has the prompt if thinking is switched off, as with Qwen3."""


def test_an_empty_think_block_of_the_template_belongs_to_the_prompt_and_is_told(tokenizer: Any, tmp_path: Path) -> None:
    seen = gates(tokenizer, SAMPLES, tmp_path, QWEN_LIKE)
    assert seen.passed, failed(seen)
    assert "empty think block" in seen.gates[2].seen and "thinking: false" in seen.gates[2].seen
    shown = seen.shown[0]
    assert "".join(t for t, on in zip(shown.tokens, shown.trained, strict=True) if on).startswith('{"role"')


def test_a_template_that_opens_a_think_block_fails(tokenizer: Any, tmp_path: Path) -> None:
    template = GEMMA.replace("{{ '<start_of_turn>model\\n' }}", "{{ '<start_of_turn>model\\n<think>\\n' }}")
    assert "think tags" in failed(gates(tokenizer, SAMPLES, tmp_path, template))


def test_a_template_that_does_not_end_the_turn_leaves_the_stop_token_untrained(tokenizer: Any, tmp_path: Path) -> None:
    template = GEMMA.replace("{{ message['content'] | trim }}{{ '<end_of_turn>\\n' }}", "{{ message['content'] | trim }}{{ '<end_of_turn>\\n' if role == 'user' else '' }}")
    assert "stop token" in failed(gates(tokenizer, SAMPLES, tmp_path, template))


def test_a_template_that_changes_the_answer_fails_the_mask(tokenizer: Any, tmp_path: Path) -> None:
    template = GEMMA.replace("{{ message['content'] | trim }}", "{{ message['content'] | trim | replace('response', 'answer') }}")
    assert "completion only" in failed(gates(tokenizer, SAMPLES, tmp_path, template))


def test_samples_that_are_too_long_fail_unless_some_may_lose_their_beginning(tokenizer: Any, tmp_path: Path) -> None:
    lengths = [encode(tokenizer, s, stop_ids(tokenizer), 10**6).length for s in SAMPLES]
    limit = max(lengths) - 1
    seen = gates(tokenizer, SAMPLES, tmp_path, max_length=limit)
    assert failed(seen) == ["truncation"]
    assert str(max(lengths)) in seen.gates[5].seen
    assert gates(tokenizer, SAMPLES, tmp_path, max_length=limit, max_truncated=0.5).passed
    cut = encode(tokenizer, SAMPLES[lengths.index(max(lengths))], stop_ids(tokenizer), limit)
    assert (cut.cut, cut.length) == (1, limit)


def test_a_completion_that_would_be_cut_fails_whatever_is_allowed(tokenizer: Any, tmp_path: Path) -> None:
    seen = gates(tokenizer, SAMPLES, tmp_path, max_length=20, max_truncated=0.99)
    assert failed(seen) == ["truncation"]
    assert "completion alone is too long" in seen.gates[5].seen


def test_a_model_that_ignores_the_tree_fails_the_gate_of_shared_prefixes(tokenizer: Any) -> None:
    from anthrolab.training import tree_attention

    tree_attention.register()
    encoded = [encode(tokenizer, s, stop_ids(tokenizer), 4096) for s in SAMPLES]
    model = tiny_model()
    seen = scores_gate(model, encoded, "float32", share_prefixes=True)
    assert not seen.passed, "plain attention sees every earlier token"
    assert (seen.name, seen.fix) == ("shared prefixes", "set share_prefixes to false")
    assert scores_gate(model, encoded, "float32", share_prefixes=False).passed
    model.set_attn_implementation(tree_attention.NAME)
    for share in (True, False):
        seen = scores_gate(model, encoded, "float32", share)
        assert seen.passed, seen.seen


def test_a_model_that_scales_its_scores_fails_with_shared_prefixes_and_without(tokenizer: Any) -> None:
    import torch
    from transformers import GraniteConfig, GraniteForCausalLM

    from anthrolab.training import tree_attention

    tree_attention.register()
    torch.manual_seed(0)
    encoded = [encode(tokenizer, s, stop_ids(tokenizer), 4096) for s in SAMPLES]
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 1.0}
    for scale, passed in ((1.0, True), (8.0, False)):
        model: Any = GraniteForCausalLM(GraniteConfig(vocab_size=len(tokenizer), logits_scaling=scale, max_position_embeddings=4096, **sizes)).eval()
        model.set_attn_implementation(tree_attention.NAME)
        for share in (True, False):
            for dtype in ("float32", "bfloat16"):
                seen = scores_gate(model, encoded, dtype, share)
                assert seen.passed == passed, seen
                assert passed or "take another base" in seen.fix


def test_layers_that_cannot_keep_branches_apart_are_refused_by_name(tokenizer: Any) -> None:
    encoded = [encode(tokenizer, s, stop_ids(tokenizer), 4096) for s in SAMPLES]
    model = tiny_model()
    model.config.layer_types = ["linear_attention", "sliding_attention", "full_attention"]
    seen = scores_gate(model, encoded, "bfloat16", share_prefixes=True)
    assert not seen.passed and "linear_attention" in seen.seen and seen.fix == "set share_prefixes to false"


def test_one_wrong_token_among_many_fails_the_gate_of_scores(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean over all tokens would hide it."""
    from anthrolab.training import model_gates

    encoded = [encode(tokenizer, s, stop_ids(tokenizer), 4096) for s in SAMPLES]
    true = model_gates.token_log_probs
    for dtype, wrong in (("float32", 0.02), ("bfloat16", 2.0)):
        def shifted(model: Any, batch: Any, wrong: float = wrong) -> Any:
            found = true(model, batch)
            found[7] += wrong
            found[8] -= wrong
            return found

        monkeypatch.setattr(model_gates, "token_log_probs", shifted)
        assert not scores_gate(tiny_model(), encoded, dtype, share_prefixes=False).passed


def test_a_template_that_refuses_a_system_text_is_one_line_with_the_fix(tokenizer: Any, tmp_path: Path) -> None:
    refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    with pytest.raises(TrainingError, match=r"the chat template refuses the messages \(System role not supported\); give the tokenizer one that takes a system"):
        gates(tokenizer, SAMPLES, tmp_path, refusing + GEMMA)


def test_one_batch_is_learnt_and_forgotten_again(tokenizer: Any, tmp_path: Path) -> None:
    import torch

    encoded = [encode(tokenizer, s, stop_ids(tokenizer), 4096) for s in SAMPLES]
    model = tiny_model().train()
    before = {name: p.clone() for name, p in model.named_parameters()}
    chosen = settings(tmp_path, share_prefixes=False, overfit_share=0.8)
    assert overfit_gate(model, encoded, chosen).passed
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert model.training


def test_a_model_that_cannot_learn_fails_the_one_batch_gate(tokenizer: Any, tmp_path: Path) -> None:
    encoded = [encode(tokenizer, s, stop_ids(tokenizer), 4096) for s in SAMPLES]
    model = tiny_model()
    for name, p in model.named_parameters():
        p.requires_grad_(name.endswith("layers.0.self_attn.q_norm.weight"))
    seen = overfit_gate(model, encoded, settings(tmp_path, share_prefixes=False, overfit_share=0.8))
    assert not seen.passed
    assert "nothing is learnt" in seen.fix


def test_the_small_batch_is_of_one_group(tokenizer: Any) -> None:
    encoded = [encode(tokenizer, replace(s, dialogue_id=f"d{i}"), stop_ids(tokenizer), 4096) for i, s in enumerate([*SAMPLES, *SAMPLES])]
    assert len({e.group for e in small_batch(encoded)}) == 1


def test_a_base_model_gets_the_template_of_its_own_turns() -> None:
    tokenizer = tiny_tokenizer()
    assert with_chat_template(tokenizer, "tiny") == "<end_of_turn>"
    assert tokenizer.chat_template == GEMMA
    assert [tokenizer.decode([i]) for i in stop_ids(tokenizer)] == ["<eos>", "<end_of_turn>"]
    assert with_chat_template(tokenizer, "tiny") is None
    chatml = tiny_tokenizer()
    chatml.chat_template = None
    chatml.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    vocabulary = chatml.get_vocab
    chatml.get_vocab = lambda: {t: i for t, i in vocabulary().items() if "turn" not in t}
    assert with_chat_template(chatml, "tiny") == "<|im_end|>"
    assert chatml.chat_template == CHATML
    bare = tiny_tokenizer()
    bare.get_vocab = lambda: {"<eos>": 1}
    with pytest.raises(TrainingError, match="tiny: has no chat template and no tokens for turns"):
        with_chat_template(bare, "tiny")


def test_gemmas_template_is_the_one_of_its_instruct_models(tokenizer: Any) -> None:
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]
    assert render(tokenizer, messages[:2], ask=True) == "<bos><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\n"
    assert render(tokenizer, messages, ask=False) == "<bos><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n"
    assert render(tokenizer, messages[1:2], ask=True) == "<bos><start_of_turn>user\nU<end_of_turn>\n<start_of_turn>model\n"
    assert ids_of(tokenizer, "<bos>")[0] == tokenizer.bos_token_id

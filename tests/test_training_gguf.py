"""Tuned weights as a GGUF: the embedded server says what transformers says, and what does not fit is never written."""

import asyncio
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf import GGUFReader, GGUFWriter, TokenType
from safetensors.torch import load_file, save_file
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from anthrolab.files import FileError
from anthrolab.models.client import Request
from anthrolab.models.local import EmbeddedServer
from anthrolab.training.chat_template import CHATML, GEMMA
from anthrolab.training.gguf_file import write_gguf
from anthrolab.training.settings import TrainingError

PIECES = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "<start_of_turn>", "<end_of_turn>", "▁", *"abcdefgh"]
END = PIECES.index("<end_of_turn>")
LAYERS, WIDTH, HEADS, HEAD, INNER, WINDOW = 2, 64, 2, 32, 128, 16


def kind(piece: str) -> TokenType:
    if piece.startswith("<0x"):
        return TokenType.BYTE
    return TokenType.UNKNOWN if piece == "<unk>" else TokenType.CONTROL if piece.startswith("<") else TokenType.NORMAL


def write_base(path: Path, *, tokens: list[str] = PIECES, width: int = WIDTH, architecture: str = "gemma3") -> Path:
    """What the base model's file would be: metadata, a tokenizer, and weights (zeros) that nobody may find in the result."""
    writer = GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    writer.add_sliding_window(WINDOW)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_K_M)
    writer.add_string("quantize.imatrix.file", "somewhere")
    writer.add_tags(["one", "two"])
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(len(tokens))])
    writer.add_token_types([kind(piece) for piece in tokens])
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    shapes = {"token_embd": (len(tokens), width), "output_norm": (width,)}
    for i in range(LAYERS):
        parts = {
            "attn_q": (HEADS * HEAD, width), "attn_k": (HEAD, width), "attn_v": (HEAD, width), "attn_output": (width, HEADS * HEAD),
            "ffn_gate": (INNER, width), "ffn_up": (INNER, width), "ffn_down": (width, INNER), "attn_q_norm": (HEAD,), "attn_k_norm": (HEAD,),
            "attn_norm": (width,), "post_attention_norm": (width,), "ffn_norm": (width,), "post_ffw_norm": (width,),
        }  # fmt: skip
        shapes |= {f"blk.{i}.{name}": shape for name, shape in parts.items()}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", np.zeros(shape, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tiny_model() -> Any:
    """Random weights, norms too, large enough that every one of them changes what is said."""
    torch.manual_seed(7)
    config = Gemma3TextConfig(
        vocab_size=len(PIECES), hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=1, head_dim=HEAD, sliding_window=WINDOW, query_pre_attn_scalar=HEAD, max_position_embeddings=512,
        layer_types=["sliding_attention"] * LAYERS, pad_token_id=0, eos_token_id=1, bos_token_id=2, initializer_range=0.3,
    )  # fmt: skip
    model: Any = Gemma3ForCausalLM(config)
    model.eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.copy_(torch.randn(weight.shape) * 0.5)
            elif "embed" not in name:
                weight.copy_(torch.randn(weight.shape) * 0.3)
    return model


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """base.gguf, and the tuned model in tuned/."""
    folder = tmp_path_factory.mktemp("gguf")
    write_base(folder / "base.gguf")
    tiny_model().save_pretrained(folder / "tuned")
    return folder


@pytest.fixture(scope="module")
def written(home: Path) -> Path:
    return write_gguf(home / "tuned", home / "base.gguf", home / "out" / "tuned-f16.gguf", chat_template=GEMMA, quantize="F16")


@pytest.fixture(scope="module")
def server(written: Path) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(str(written), context=512, slots=1, threads=1) as running:
        yield running


def post(server: EmbeddedServer, path: str, body: dict[str, Any]) -> Any:
    """An answer of llama.cpp's own endpoints."""
    asked = urllib.request.Request(
        server.url.removesuffix("/v1") + path, data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {server.api_key}", "Content-Type": "application/json"},
    )  # fmt: skip
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.parametrize("seed", range(4))
def test_the_server_continues_a_prompt_as_transformers_does(server: EmbeddedServer, home: Path, seed: int) -> None:
    """Greedy, token by token, with prompts longer than the window."""
    model: Any = Gemma3ForCausalLM.from_pretrained(home / "tuned", dtype=torch.float32)
    generator = torch.Generator().manual_seed(seed)
    prompt = [2, *torch.randint(4, 260, (40,), generator=generator).tolist()]
    no_end = [[1, False], [END, False]]
    served = post(server, "/completion", {"prompt": prompt, "n_predict": 24, "temperature": 0, "return_tokens": True, "logit_bias": no_end})
    with torch.no_grad():
        ours = model.generate(
            torch.tensor([prompt]), max_new_tokens=24, do_sample=False, suppress_tokens=[1, END], eos_token_id=None,
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        )  # fmt: skip
    assert served["tokens"] == ours[0, len(prompt) :].tolist()


def test_the_servers_scores_are_those_of_transformers(server: EmbeddedServer, home: Path) -> None:
    model: Any = Gemma3ForCausalLM.from_pretrained(home / "tuned", dtype=torch.float32)
    prompt = [2, *range(30, 80)]
    letter = PIECES.index("c")  # chosen by force, since bytes that are no text have no scores; the scores are without force
    body = {"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": 40, "logit_bias": [[letter, 1000]]}
    (step,) = post(server, "/completion", body)["completion_probabilities"]
    with torch.no_grad():
        ours = model(torch.tensor([prompt])).logits[0, -1].log_softmax(-1)
    assert step["id"] == letter and len(step["top_logprobs"]) == 40
    for found in (step, *step["top_logprobs"]):
        assert found["logprob"] == pytest.approx(float(ours[found["id"]]), abs=0.05)


def test_the_server_writes_prompts_by_the_template_and_answers_chats(server: EmbeddedServer) -> None:
    messages = [{"role": "system", "content": "abc"}, {"role": "user", "content": "de f"}]
    prompt = post(server, "/apply-template", {"messages": messages})["prompt"]
    assert prompt == "<start_of_turn>user\nabc\n\nde f<end_of_turn>\n<start_of_turn>model\n"  # the server puts <bos> before it

    async def ask() -> Any:
        async with server.client() as client:
            params = {"max_tokens": 5, "temperature": 0, "logit_bias": {PIECES.index("a"): 100}}
            return await client.ask(Request("m", messages=messages, params=params))

    reply = asyncio.run(ask())
    assert reply.text == "aaaaa"
    tokens = post(server, "/tokenize", {"content": prompt, "parse_special": True, "add_special": True})["tokens"]
    assert tokens[0] == 2 and tokens[1] == PIECES.index("<start_of_turn>") and reply.prompt_tokens == len(tokens)


def test_a_reply_is_over_at_the_end_of_turn(server: EmbeddedServer) -> None:
    body = {"messages": [{"role": "user", "content": "ab"}], "max_tokens": 9, "logit_bias": [[END, 1000]]}
    answer = post(server, "/v1/chat/completions", body)
    assert answer["choices"][0]["finish_reason"] == "stop" and answer["usage"]["completion_tokens"] == 1


def test_tokenizer_and_metadata_are_the_bases_own(home: Path, written: Path) -> None:
    base, out = GGUFReader(home / "base.gguf"), GGUFReader(written)
    theirs = {key: (f.contents(), f.types) for key, f in base.fields.items() if not key.startswith("GGUF.")}
    ours = {key: (f.contents(), f.types) for key, f in out.fields.items() if not key.startswith("GGUF.")}
    changed = {key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)}
    assert changed == {
        "general.file_type", "general.quantization_version", "tokenizer.chat_template", "tokenizer.ggml.eot_token_id", "quantize.imatrix.file",
    }  # fmt: skip
    assert ours["tokenizer.ggml.eot_token_id"][0] == END and ours["tokenizer.chat_template"][0] == GEMMA
    assert ours["general.file_type"][0] == gguf.LlamaFileType.MOSTLY_F16


def test_matrices_in_q8_0_are_off_by_at_most_half_a_step_and_norms_are_exact(home: Path, tmp_path: Path) -> None:
    out = GGUFReader(write_gguf(home / "tuned", home / "base.gguf", tmp_path / "q8.gguf", chat_template=GEMMA))
    weights = load_file(home / "tuned" / "model.safetensors")
    tensors = {t.name: t for t in out.tensors}
    assert len(tensors) == len(weights)
    pairs = {
        "token_embd.weight": "model.embed_tokens.weight",
        "blk.1.ffn_down.weight": "model.layers.1.mlp.down_proj.weight",
        "blk.0.attn_q.weight": "model.layers.0.self_attn.q_proj.weight",
    }
    for ours, theirs in pairs.items():
        assert tensors[ours].tensor_type == gguf.GGMLQuantizationType.Q8_0
        stored = gguf.quants.dequantize(tensors[ours].data, tensors[ours].tensor_type)
        meant = weights[theirs].numpy()
        blocks = np.abs(meant).reshape(-1, 32).max(axis=1, keepdims=True)
        assert (np.abs(stored - meant).reshape(-1, 32) <= blocks / 127 * 0.563).all()  # half, and 127 times what the step loses in 16 bits
    norm = tensors["blk.1.ffn_norm.weight"]
    assert norm.tensor_type == gguf.GGMLQuantizationType.F32
    assert (norm.data == weights["model.layers.1.pre_feedforward_layernorm.weight"].numpy() + 1).all()
    assert out.fields["general.file_type"].contents() == gguf.LlamaFileType.MOSTLY_Q8_0


def test_weights_in_several_files_give_the_same_file(home: Path, tmp_path: Path, written: Path) -> None:
    tiny_model().save_pretrained(tmp_path / "parts", max_shard_size="60KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 2
    again = write_gguf(tmp_path / "parts", home / "base.gguf", tmp_path / "again.gguf", chat_template=GEMMA, quantize="F16")
    a, b = ({t.name: t.data.tobytes() for t in GGUFReader(path).tensors} for path in (again, written))
    assert a == b


def test_weights_in_bfloat16_are_taken(home: Path, tmp_path: Path) -> None:
    tiny_model().to(torch.bfloat16).save_pretrained(tmp_path / "half")
    out = GGUFReader(write_gguf(tmp_path / "half", home / "base.gguf", tmp_path / "half.gguf", chat_template=GEMMA, quantize="F16"))
    weights = load_file(tmp_path / "half" / "model.safetensors")
    stored = next(t.data for t in out.tensors if t.name == "blk.0.ffn_up.weight")
    assert (stored == weights["model.layers.0.mlp.up_proj.weight"].to(torch.float16).numpy()).all()


def set_config(**fields: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    return change


def set_weights(edit: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "model.safetensors"
        weights = load_file(path)
        edit(weights)
        save_file(weights, path)

    return change


def only_an_adapter(folder: Path) -> None:
    (folder / "config.json").rename(folder / "adapter_config.json")


Q = "model.layers.0.self_attn.q_proj.weight"


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (set_config(architectures=["Qwen3ForCausalLM"]), r"config.json: architectures is \['Qwen3ForCausalLM'\]"),
        (set_config(num_hidden_layers=3), "config.json: num_hidden_layers is 3, but block_count of base.gguf is 2"),
        (set_config(sliding_window=8), "config.json: sliding_window is 8"),
        (only_an_adapter, "holds an adapter, no model; merge it"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json: no JSON"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"no weights"), "model.safetensors: cannot be read as weights"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors: cannot be read as weights"),
        (set_weights(lambda w: w.pop(Q)), "has no tensor for blk.0.attn_q.weight of base.gguf; save the whole"),
        (set_weights(lambda w: w.update({"model.layers.0.self_attn.q_proj.lora_A.weight": torch.zeros(2, 2)})), "lora_A.weight: is none of base.gguf"),
        (set_weights(lambda w: w.update({Q: torch.zeros(32, WIDTH)})), rf"{Q}: shape is \[32, 64\], in base.gguf \[64, 64\]"),
        (set_weights(lambda w: w.update({"lm_head.weight": torch.ones(len(PIECES), WIDTH)})), "lm_head.weight: differs from the embeddings"),
        (set_weights(lambda w: w.update({Q: torch.full((64, 64), float("nan"))})), rf"{Q}: holds numbers that are not finite"),
    ],
)
def test_a_model_that_does_not_fit_is_an_error_and_leaves_the_old_file_alone(
    home: Path, tmp_path: Path, break_it: Callable[[Path], Any], said: str
) -> None:
    tiny_model().save_pretrained(tmp_path / "tuned")
    break_it(tmp_path / "tuned")
    out = tmp_path / "out" / "tuned.gguf"
    out.parent.mkdir()
    out.write_bytes(b"the old one")
    with pytest.raises(TrainingError, match=said):
        write_gguf(tmp_path / "tuned", home / "base.gguf", out, chat_template=GEMMA)
    assert out.read_bytes() == b"the old one" and list(out.parent.iterdir()) == [out]


def test_a_head_that_equals_the_embeddings_is_left_out(home: Path, tmp_path: Path, written: Path) -> None:
    tiny_model().save_pretrained(tmp_path / "tuned")
    set_weights(lambda w: w.update({"lm_head.weight": w["model.embed_tokens.weight"].clone()}))(tmp_path / "tuned")
    out = write_gguf(tmp_path / "tuned", home / "base.gguf", tmp_path / "tuned.gguf", chat_template=GEMMA, quantize="F16")
    assert [t.name for t in GGUFReader(out).tensors].count("output.weight") == 0 and len(GGUFReader(out).tensors) == len(GGUFReader(written).tensors)


def test_a_base_file_that_does_not_fit_is_an_error(home: Path, tmp_path: Path) -> None:
    tuned, out = home / "tuned", tmp_path / "out.gguf"
    (tmp_path / "text.gguf").write_text("no model at all, only a text of some length")
    for base, said in (
        (tmp_path / "text.gguf", "text.gguf: no GGUF file that can be read"),
        (tmp_path / "gone.gguf", "gone.gguf: no GGUF file that can be read"),
        (write_base(tmp_path / "llama.gguf", architecture="llama"), "general.architecture is 'llama', not 'gemma3'"),
        (write_base(tmp_path / "wide.gguf", width=96), "hidden_size is 64, but embedding_length of wide.gguf is 96"),
        (write_base(tmp_path / "vocabulary.gguf", tokens=PIECES[:-1]), "embed_tokens.weight: shape is"),
    ):
        with pytest.raises(TrainingError, match=said):
            write_gguf(tuned, base, out, chat_template=GEMMA)
    with pytest.raises(TrainingError, match=r"has no token <\|im_end\|>, which the chat template writes"):
        write_gguf(tuned, home / "base.gguf", out, chat_template=CHATML)
    assert not out.exists()


def test_a_folder_that_cannot_be_written_to_is_an_error(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(FileError, match="cannot be written"):
        write_gguf(home / "tuned", home / "base.gguf", tmp_path / "file" / "out.gguf", chat_template=GEMMA)

"""Tuned weights as a GGUF file, for the embedded server.

Everything but the weights comes from the base model's own GGUF: its tokenizer stays byte for byte what it was. The chat
template is the one that the model was trained with, so that the server writes the prompts of the training.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anthrolab.files import read_text, unwritable
from anthrolab.training.settings import INSTALL_TRAIN, TrainingError

if TYPE_CHECKING:
    import numpy as np

Quantize = Literal["Q8_0", "F16"]

ARCHITECTURE, KIND = "gemma3", "Gemma3ForCausalLM"
"""What can be written: its name in GGUF files, and in config.json."""

END_OF_TURN = ("<end_of_turn>", "<|im_end|>")
"""Tokens that end a reply, in chat templates of `chat_template.py`."""

METADATA = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.sliding_window": "sliding_window",
}
"""Fields of the base file -> fields of config.json that must say the same: the metadata are copied."""


def write_gguf(checkpoint: Path, base_gguf: Path, out: Path, *, chat_template: str, quantize: Quantize = "Q8_0") -> Path:
    """Write the weights of a folder of transformers (Gemma 3, text; adapters merged) as one GGUF file; returns `out`.

    base_gguf: any GGUF of the model that was tuned, whatever its own quantisation: tokenizer and metadata are copied.
    Matrices become Q8_0 (8.5 bits a weight) or F16; what has one dimension stays F32. A reply ends at the template's
    end of turn. The file takes its name only when it is whole. TrainingError where folder and base do not fit.
    """
    try:
        from gguf import GGUFReader
    except ImportError:
        raise TrainingError(f"writing GGUF files needs the package gguf; run: {INSTALL_TRAIN}") from None
    config = _config(checkpoint)
    try:
        base = GGUFReader(base_gguf)
    except (OSError, ValueError, KeyError, IndexError) as e:
        raise TrainingError(f"{base_gguf}: no GGUF file that can be read ({e}); give the file of the model that was tuned") from None
    _check_architecture(checkpoint, config, base_gguf, base)
    neighbour = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    with ExitStack() as stack:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            stack.callback(_remove, neighbour)
            weights = _Weights(checkpoint, stack)
            names = _tensor_names(checkpoint, weights, base_gguf, base)
            _write(neighbour, base, base_gguf, weights, names, chat_template, quantize)
            os.replace(neighbour, out)
        except OSError as e:
            raise unwritable(out, e) from e
    return out


class _Weights:
    """The tensors of a folder, read one at a time."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        from safetensors import SafetensorError, safe_open

        self.files: dict[str, Any] = {}
        index = folder / "model.safetensors.index.json"
        names = sorted(set(json.loads(read_text(index))["weight_map"].values())) if index.exists() else ["model.safetensors"]
        for name in names:
            try:
                file = stack.enter_context(safe_open(folder / name, framework="pt"))
            except (OSError, SafetensorError) as e:
                raise TrainingError(f"{folder / name}: cannot be read as weights ({e}); save the merged model there again") from None
            self.files.update(dict.fromkeys(file.keys(), file))

    def shape(self, name: str) -> list[int]:
        return list(self.files[name].get_slice(name).get_shape())

    def read(self, name: str) -> "np.ndarray[Any, Any]":
        array: np.ndarray[Any, Any] = self.files[name].get_tensor(name).float().numpy()
        return array


def _config(folder: Path) -> dict[str, Any]:
    if (folder / "adapter_config.json").exists() and not (folder / "config.json").exists():
        raise TrainingError(f"{folder}: holds an adapter, no model; merge it into its base first")
    try:
        config = json.loads(read_text(folder / "config.json"))
    except ValueError as e:
        raise TrainingError(f"{folder / 'config.json'}: no JSON ({e}); save the merged model there again") from None
    if not isinstance(config, dict) or KIND not in (config.get("architectures") or []):
        found = config.get("architectures") if isinstance(config, dict) else None
        raise TrainingError(
            f"{folder / 'config.json'}: architectures is {found}, not ['{KIND}']; only text models of Gemma 3 can be written as GGUF, "
            "serve others with vLLM or `transformers serve`"
        )
    return config


def _check_architecture(folder: Path, config: dict[str, Any], base_gguf: Path, base: Any) -> None:
    architecture = _value(base, "general.architecture")
    if architecture != ARCHITECTURE:
        raise TrainingError(f"{base_gguf}: general.architecture is {architecture!r}, not '{ARCHITECTURE}'; give the GGUF of the model that was tuned")
    for field, name in METADATA.items():
        theirs, ours = _value(base, f"{ARCHITECTURE}.{field}"), config.get(name)
        if theirs is not None and theirs != ours:
            raise TrainingError(
                f"{folder / 'config.json'}: {name} is {ours}, but {field} of {base_gguf.name} is {theirs}; give the GGUF of the model that was tuned"
            )


def _tensor_names(folder: Path, weights: _Weights, base_gguf: Path, base: Any) -> dict[str, str]:
    """Tensor of the GGUF -> tensor of the folder; TrainingError unless both hold the same ones in the same shapes."""
    from gguf import MODEL_ARCH, get_tensor_name_map

    table = get_tensor_name_map(MODEL_ARCH.GEMMA3, int(_value(base, f"{ARCHITECTURE}.block_count")))
    shapes = {tensor.name: [int(n) for n in reversed(tensor.shape)] for tensor in base.tensors}
    names: dict[str, str] = {}
    for name in weights.files:
        known = table.get_name(name, try_suffixes=(".weight",))
        if known == "output.weight" and known not in shapes:
            _check_tied(folder, weights, name)  # one matrix for both ends of the model: token_embd is written
        elif known is None or known not in shapes:
            raise TrainingError(f"{folder}: tensor {name}: is none of {base_gguf.name}; merge the adapter into a {KIND} and save that")
        else:
            names[known] = name
    for known, shape in shapes.items():
        if known not in names:
            raise TrainingError(f"{folder}: has no tensor for {known} of {base_gguf.name}; save the whole merged model there")
        if (found := weights.shape(names[known])) != shape:
            raise TrainingError(f"{folder}: tensor {names[known]}: shape is {found}, in {base_gguf.name} {shape}; give the GGUF of the model that was tuned")
    return names


def _check_tied(folder: Path, weights: _Weights, head: str) -> None:
    embedding = next((n for n in weights.files if n.endswith("embed_tokens.weight")), None)
    if embedding is not None and weights.shape(head) == weights.shape(embedding) and (weights.read(head) == weights.read(embedding)).all():
        return
    raise TrainingError(f"{folder}: tensor {head}: differs from the embeddings, which the base shares with it; train with tie_word_embeddings")


def _write(
    file: Path, base: Any, base_gguf: Path, weights: _Weights, names: dict[str, str], chat_template: str, quantize: Quantize
) -> None:
    import gguf
    import numpy as np
    from gguf import GGMLQuantizationType as Kind

    matrix, file_type = {
        "Q8_0": (Kind.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
        "F16": (Kind.F16, gguf.LlamaFileType.MOSTLY_F16),
    }[quantize]
    writer = gguf.GGUFWriter(file, ARCHITECTURE)
    writer.data_alignment = base.alignment
    try:
        end = _end_of_turn(base, base_gguf, chat_template)
        for key, value, kind, item in _copied(base):
            writer.add_key_value(key, value, kind, item)
        writer.add_file_type(file_type)
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        writer.add_chat_template(chat_template)
        if end is not None:
            writer.add_eot_token_id(end)
        kinds: dict[str, Kind] = {}
        for known, name in names.items():
            shape = weights.shape(name)
            whole_blocks = shape[-1] % gguf.GGML_QUANT_SIZES[matrix][0] == 0
            kinds[known] = Kind.F32 if len(shape) == 1 else matrix if whole_blocks else Kind.F16
            stored = gguf.quant_shape_to_byte_shape(shape, kinds[known])
            writer.add_tensor_info(known, stored, np.dtype(np.uint8), int(np.prod(stored)), kinds[known])
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for known, name in names.items():
            array = weights.read(name)
            if not np.isfinite(array).all():
                raise TrainingError(f"{name}: holds numbers that are not finite; the training has failed, lower its learning_rate")
            if known.endswith("norm.weight"):
                array = array + 1  # llama.cpp multiplies by the weight itself, transformers by 1 + weight
            writer.write_tensor_data(gguf.quants.quantize(array, kinds[known]).view(np.uint8))
        writer.flush()
        assert writer.fout is not None
        for stream in writer.fout:
            os.fsync(stream.fileno())
    finally:
        writer.close()


REPLACED = ("general.architecture", "general.file_type", "general.quantization_version", "tokenizer.chat_template", "tokenizer.ggml.eot_token_id")


def _copied(base: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Key, value, type and type of the items of what the base says about itself; not how it was quantised or split."""
    for key, field in base.fields.items():
        if key in REPLACED or key.startswith(("GGUF.", "quantize.", "split.", "tokenizer.chat_template.")):
            continue
        value = field.contents()
        if value != []:
            yield key, value, field.types[0], field.types[-1] if len(field.types) > 1 else None


def _end_of_turn(base: Any, base_gguf: Path, chat_template: str) -> int | None:
    """The token after which llama.cpp ends a reply, besides the end of the text; None if the template writes none that is known."""
    marks = [mark for mark in END_OF_TURN if mark in chat_template]
    if not marks:
        return None
    tokens = _value(base, "tokenizer.ggml.tokens") or []
    for mark in marks:
        if mark in tokens:
            return int(tokens.index(mark))
    raise TrainingError(f"{base_gguf}: has no token {marks[0]}, which the chat template writes; take the template that the model was trained with")


def _value(base: Any, key: str) -> Any:
    field = base.fields.get(key)
    return None if field is None else field.contents()


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()

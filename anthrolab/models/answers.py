"""Reading what an OpenAI-compatible server answered: pure, from the bytes of a 200 reply to a `Reply`."""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any

from anthrolab.models.client import Fault, Reply

_SURROGATE = re.compile("[\ud800-\udfff]")
_THINK = re.compile(r"<(think|thinking)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THINK_END = re.compile(r"\A(.*?)</(?:think|thinking)>", re.DOTALL | re.IGNORECASE)
_THINK_STRAY = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_THINK_START = re.compile(r"<(?:think|thinking)>", re.IGNORECASE)


class UnreadableAnswerError(Exception):
    """A 200 reply without a usable answer in it; `fault` is the kind of failure, the message what was found.

    again: another attempt may help, since the server has answered something that it should not have.
    """

    def __init__(self, fault: Fault, found: str, *, again: bool = False) -> None:
        self.fault: Fault = fault
        self.again = again
        super().__init__(found)


def read_answer(content: bytes, is_chat: bool) -> Reply:
    """The reply in the body of a 200 answer to a chat (`is_chat`) or completion request.

    An empty text is a legitimate completion; in a chat it counts as an answer only beside reasoning.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        found = f"answered with {describe_body(content)} where JSON is due"
        raise UnreadableAnswerError("not_json", found, again=not _is_page(content)) from None
    if not isinstance(body, dict):
        raise UnreadableAnswerError("not_json", "answered with JSON that is no object", again=True)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        if body.get("error"):
            raise UnreadableAnswerError("rejected", f"answered with an error: {describe_body(content)}")
        raise UnreadableAnswerError("empty", "answered without any choice", again=True)
    finish = choice.get("finish_reason")
    message = choice.get("message") if is_chat else {"content": choice.get("text")}
    message = message if isinstance(message, dict) else {}
    if _text(message.get("refusal")) and not _text(message.get("content")):
        raise UnreadableAnswerError("refusal", f"refused: {_text(message.get('refusal'))[:200]}")
    text, thought = split_reasoning(_text(message.get("content")))
    told = [_text(message.get(field)) for field in ("reasoning", "reasoning_content")]
    reasoning = "\n".join(dict.fromkeys(part for part in (*told, thought) if part)) or None
    if is_chat and not text.strip() and reasoning is None:
        raise UnreadableAnswerError("empty", f"answered with an empty message (finish_reason {finish})", again=True)
    usage = _mapping(body.get("usage"))
    cached = _count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    if cached is None:
        cached = _count(_mapping(body.get("timings")).get("cache_n"))
    return Reply(
        text=text,
        reasoning=reasoning,
        finish_reason=finish if isinstance(finish, str) else None,
        prompt_tokens=_count(usage.get("prompt_tokens")),
        cached_tokens=cached,
        completion_tokens=_count(usage.get("completion_tokens")),
    )


def read_models(content: bytes) -> list[str]:
    """The names in the body of a list of models."""
    with contextlib.suppress(ValueError):
        body = json.loads(content)
        if isinstance(body, dict) and isinstance(body.get("data"), list):
            return [str(entry.get("id")) for entry in body["data"] if isinstance(entry, dict)]
    raise UnreadableAnswerError("not_json", f"answered the list of models with {describe_body(content)}")


def split_reasoning(content: str) -> tuple[str, str | None]:
    """What is said and what was thought: `<think>` blocks are taken out, also one that the length cap cut.

    A closing tag without its opening one (chat templates that open the block themselves) ends a thought that
    began with the reply.

    >>> split_reasoning("<think>他累了</think>早点睡")
    ('早点睡', '他累了')
    >>> split_reasoning("<think>他累")
    ('', '他累')
    """
    if "<" not in content:
        return content, None
    thoughts: list[str] = []
    headless = _THINK_END.match(content)
    if headless and not _THINK_START.search(headless[1]):
        thoughts.append(headless[1])
        content = content[headless.end() :]

    def take(match: re.Match[str]) -> str:
        thoughts.append(match[2])
        return ""

    said = _THINK.sub(take, content)
    if not thoughts:
        return content, None
    return _THINK_STRAY.sub("", said).strip(), "\n".join(t.strip() for t in thoughts).strip() or None


def describe_body(content: bytes, limit: int = 200) -> str:
    """What a body that is no answer says, in one short line: the server's error words, or what kind of page it is."""
    text = content.decode("utf-8", errors="replace").strip()
    if not text:
        return "an empty body"
    if _is_page(content):
        title = re.search(r"<title>(.*?)</title>", text, re.DOTALL | re.IGNORECASE)
        return f"an HTML page ('{_shorten(title[1], 60)}')" if title else "an HTML page"
    try:
        body = json.loads(text)
    except ValueError:
        return f"text that is no JSON ('{_shorten(text, 80)}')"
    return f"'{_shorten(_words(body), limit)}'"


def _is_page(content: bytes) -> bool:
    head = content.lstrip()[:500].lower()
    return head.startswith(b"<") and (b"<html" in head or b"<!doctype" in head)


def _words(body: object) -> str:
    """The human part of an error body: servers put it under error.message, error, message or detail."""
    if isinstance(body, dict):
        for field in ("error", "message", "detail"):
            if body.get(field):
                return _words(body[field])
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def _shorten(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def _text(value: object) -> str:
    """A message field as text; some servers send a list of parts.

    Half a surrogate pair (an emoji that the length cap cut) becomes U+FFFD, since no file can hold it.
    """
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, dict))
    return ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None

"""What the fault server answers, from a request's content alone: the faults of its first attempts, then the good answer.

Pure: nothing here knows of time, order or the network. Two servers with the same seed and salt treat the same request
alike, so a run that was disturbed can be compared to the byte with one that was not.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar, get_args

from anthrolab.files import canonical_json, content_hash

T = TypeVar("T")

Kind = Literal[
    "429",  # too many requests, no word about how long to wait
    "429_retry_after",  # the same with Retry-After (0 or 1 s) or Retry-After-Ms
    "500",
    "502_html",  # a proxy's page
    "503",
    "reset_before",  # the connection is reset or closed without a byte
    "reset_inside",  # closed after half of the body
    "reset_after",  # a whole good answer, then the connection is reset
    "slow_loris",  # headers, then a byte now and then
    "broken_json",  # 200 with a body that is no JSON
    "wrong_json",  # 200 with JSON that is no answer
    "doubled_body",  # 200 with the JSON twice in one body
    "doubled_response",  # a whole good response twice on one connection
    "empty",  # 200 with content ""
    "length",  # 200, cut off with finish_reason "length"
    "reasoning_only",  # 200, all text in reasoning_content
    "hang",  # nothing ever comes
]
KINDS: tuple[Kind, ...] = get_args(Kind)

CONTENT: tuple[Kind, ...] = ("length", "reasoning_only", "empty")
"""A client draws these anew only once, so a request meets at most one of them."""

GOOD: tuple[Kind, ...] = ("reset_after", "doubled_response")
"""The good answer does go out whole; what follows it is the fault."""

AT_ONCE: tuple[Kind, ...] = ("429", "429_retry_after", "500", "502_html", "503", "reset_before", "slow_loris", "hang")
"""Begun without waiting for a model."""

Move = bytes | float | Literal["close", "reset"]
"""Bytes to send, seconds to wait, or the end of the connection."""

PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>"
RETRY_AFTER = ("Retry-After: 0", "Retry-After-Ms: 20", "Retry-After-Ms: 80") * 4 + ("Retry-After: 1",)
DRIP_S = 0.2
"""Seconds between two bytes of a slow_loris body, whose last byte never comes."""

HEADS = "|哎 |说真的 |对了 |哈哈 |也是 |其实吧 |不瞒你说 |你别说 |那倒是 |我跟你讲 |话说回来 ".split("|")
TOPICS = (
    "楼下那家面馆|上回那部剧|小区那只橘猫|这个月的房租|早高峰的地铁|新来的那个同事|门口那家奶茶|我妈做的红烧肉|家里那台旧空调|"
    "那双跑鞋|公司楼下的便利店|周五那场球|老家的天气|那个群|朋友推荐的歌|阳台上那几盆花|上次那个火锅|那本书|隔壁的装修|我那辆自行车"
).split("|")
SAYS = (
    "还挺不错的|真有点让人头疼|我一直没顾上|比以前好多了|贵得有点离谱|说不上来啥感觉|怪可惜的|我倒是挺惦记|越想越好笑|"
    "其实就那样|没你说的那么夸张|我都快忘了|最近老有人提|得看怎么比|让我想了半天|总算有点盼头了"
).split("|")
TAILS = "| 你觉得呢| 你说是不| 真的|吧|…| 回头再细说| 哈哈哈".split("|")
PASSED = ("像随手打的，没毛病", "接得上前面的话", "长短合适，口气对", "没看出问题")
FAILED = ("这句有点书面", "没接住对方的话", "和前面的口气不一样")


def request_key(path: str, body: Any) -> str:
    """The content key of a request: the hash of its path and its parsed body."""
    return content_hash(canonical_json([path, body]).encode("utf-8", "surrogatepass"))


def fraction(*parts: object) -> float:
    """A number in [0, 1) drawn from what it is for."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def pick(options: Sequence[T], *parts: object) -> T:
    """One of the options, drawn from what it is for."""
    return options[int(fraction(*parts) * len(options))]


def plan(key: str, seed: int, share: float, kinds: Sequence[Kind], most: int = 3) -> tuple[Kind, ...]:
    """The faults of attempts 1, 2, ... of a request; after them it is always answered well.

    Each attempt fails with probability `share`; the run ends at the first that does not, and after `most`.

    >>> plan("k", 0, 1.0, ["503"]), plan("k", 0, 0.0, ["503"])
    (('503', '503', '503'), ())
    """
    faults: list[Kind] = []
    while kinds and len(faults) < most and fraction("fault", seed, key, len(faults)) < share:
        kind = pick(kinds, "kind", seed, key, len(faults))
        faults.append("500" if kind in CONTENT and any(f in CONTENT for f in faults) else kind)
    return tuple(faults)


def good_text(body: Mapping[str, Any], key: str, salt: str = "") -> str:
    """The good answer's text: a decision, a judge's answers, a repair, a skill, lists, or a short text that ends in the key.

    What is asked is read from the JSON schema, and from the prompt where none was sent.
    """
    draw = f"{salt}/{key}"
    system, user = _prompts(body)
    fields = _schema_fields(body)
    if fields is None:
        fields = _fields_asked_for(system, user)
    if {"role", "response"} <= fields.keys():
        value = _decision(fields["role"], user, draw)
    elif any(_kind(f) in ("passed", "violated") for f in fields.values()):
        value = _judgement(fields, user, draw)
    elif fields.get("changes", {}).get("items", {}).get("type") == "object":
        value = {"changes": _repair(user, draw)}
    elif {"text", "changes"} <= fields.keys():
        value = {"text": _skill(user, draw), "changes": ["多了一条规矩"]}
    elif lists := [name for name, field in fields.items() if _kind(field) == "list"]:
        line = f"{pick(TOPICS, draw, 'line')}的事说好了回头再定"
        value = {name: [line] if name == lists[0] else [] for name in lists}
    else:
        return f"{_message(draw)} {key}"
    return json.dumps(value, ensure_ascii=False)


def reply_body(
    body: Mapping[str, Any], name: str, text: str, finish_reason: str = "stop", message: Mapping[str, Any] | None = None
) -> bytes:
    """The body of a 200 answer with this text; `name` is its id, `message` overrides fields of the chat message."""
    is_chat = "messages" in body
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish_reason}
    if is_chat:
        choice["message"] = {"role": "assistant", "content": text, **(message or {})}
    else:
        choice["text"] = text
    asked = sum(map(len, _prompts(body)))
    return json.dumps(
        {
            "id": name,
            "object": "chat.completion" if is_chat else "text_completion",
            "created": 0,
            "model": body.get("model"),
            "choices": [choice],
            "usage": {"prompt_tokens": asked, "completion_tokens": len(text), "total_tokens": asked + len(text)},
        }
    ).encode("ascii")


def _prompts(body: Mapping[str, Any]) -> tuple[str, str]:
    """The text before the last message, and the last one; a plain prompt is a last one."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return "", str(body.get("prompt") or "")
    texts = [str(m.get("content") or "") for m in messages if isinstance(m, dict)]
    return "\n".join(texts[:-1]), texts[-1] if texts else ""


def _schema_fields(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Field name to its schema, as the request's `response_format` has it; None if it has no schema."""
    wanted: Any = body
    for step in ("response_format", "json_schema", "schema", "properties"):
        wanted = wanted.get(step) if isinstance(wanted, dict) else None
    return wanted if isinstance(wanted, dict) else None


def _fields_asked_for(system: str, user: str) -> dict[str, Any]:
    """The same from the prompt's words (`_schema_fields` has nothing where the ladder stands below json_schema)."""
    name = re.search(r"你就是(.+?)。\n", f"{system}\n{user}")
    if name and "现在是 " in user:
        return {"role": {"enum": [name[1]]}, "response": {}}
    if ids := re.search(r"请逐项回答这些编号：([^。]+)。", user):
        return {i: {"properties": {"violated" if i.startswith("L0") else "passed": {}}} for i in ids[1].split("、")}
    shape = re.search(r'\{"\w+": \[\](?:, "\w+": \[\])*\}', system)
    return {name: {"type": "array"} for name in json.loads(shape[0])} if shape else {}


def _kind(field: Any) -> str:
    """What a field of an answer is: passed (a checkbox), violated (an L0 constraint), list, or other."""
    properties = field.get("properties", {}) if isinstance(field, dict) else {}
    found = [name for name in ("passed", "violated") if name in properties]
    return found[0] if found else "list" if isinstance(field, dict) and field.get("type") == "array" else "other"


def _message(draw: str) -> str:
    """One of some 30,000 harmless private messages."""
    return "".join(pick(options, draw, i) for i, options in enumerate((HEADS, TOPICS, SAYS, TAILS)))


def _decision(role: Mapping[str, Any], user: str, draw: str) -> dict[str, Any]:
    """A valid decision. Silence grows likelier as the chat goes on, and ends it when both sides choose it."""
    stamp = re.search(r"现在是 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", user)
    now = datetime.fromisoformat(stamp[1] if stamp else "2026-03-06T20:31:00")
    seen = 99 if "【前面聊过的" in user else user.count("\n[")
    if fraction(draw, "end") < (0.02 if seen < 5 else 0.3 if seen < 10 else 0.5):
        response = {"content": "", "timestamp": now.isoformat(), "end": True}
    else:
        at = now + timedelta(seconds=5 + int(55 * fraction(draw, "delay")))
        response = {"content": _message(draw), "timestamp": at.isoformat(), "end": False}
    return {"role": pick(role.get("enum") or [""], draw, "role"), "response": response}


def _judgement(fields: Mapping[str, Any], user: str, draw: str) -> dict[str, Any]:
    """An entry for each id. Nine answers of ten pass everything, so that some cases pass as a whole."""
    strict = fraction(draw, "mood") < 0.1
    own = re.findall(r"^#(\d+) \S+ \S+ 被评者(?:（待评）)?：", user, re.MULTILINE)
    answers: dict[str, Any] = {}
    for i, field in fields.items():
        if _kind(field) == "passed":
            passed = not (strict and fraction(draw, i) < 0.2)
            answers[i] = {"reason": pick(PASSED if passed else FAILED, draw, i, "reason"), "passed": passed}
        elif _kind(field) == "violated":
            violated = bool(own) and fraction(draw, i) < 0.01
            number = int(pick(own, draw, i, "message")) if violated else None
            answers[i] = {"reason": "明明白白对不上" if violated else "没有", "violated": violated, "message": number}
    return answers


def _repair(user: str, draw: str) -> list[dict[str, Any]]:
    """A new text for every message that must be changed, and for one that may be."""
    groups = re.findall(r"(准许改的是|最多\d+条)：((?:#\d+、?)+)", user.rsplit("材料到此为止", 1)[-1])
    chosen = [int(n) for kind, listed in groups for n in re.findall(r"\d+", listed)[: 99 if kind == "准许改的是" else 1]]
    return [{"message": n, "content": _message(f"{draw}/{n}")} for n in sorted(set(chosen))]


def _skill(user: str, draw: str) -> str:
    """The text of the skill in the prompt with one rule more, or with its last rule replaced where it is long."""
    old = re.search(r"<<<SKILL (\S+)\n(.*?)\nSKILL \1>>>", user, re.DOTALL)
    assert old is not None
    lines = old[2].split("\n")
    rule = f"- {pick(HEADS, draw, 'rule')}{pick(TOPICS, draw, 'rule')}这种事，想好再开口。"
    return "\n".join([*(lines if len(old[2]) < 1200 else lines[:-1]), rule])


def moves(fault: Kind | None, body: Mapping[str, Any], key: str, attempt: int, salt: str = "") -> Iterator[Move]:
    """What goes over the wire in answer to one attempt, in order."""
    error = json.dumps({"error": {"message": f"{fault}, on purpose", "type": "fault"}}).encode()
    match fault:
        case "429":
            yield http(error, "429 Too Many Requests")
        case "429_retry_after":
            yield http(error, "429 Too Many Requests", pick(RETRY_AFTER, key, attempt))
        case "500":
            yield http(error, "500 Internal Server Error")
        case "502_html":
            yield http(PAGE, "502 Bad Gateway", "Content-Type: text/html")
        case "503":
            yield http(error, "503 Service Unavailable")
        case "reset_before":
            yield pick(("close", "reset"), key, attempt)
        case "hang":
            yield math.inf
        case _:
            yield from _bodies(fault, body, key, attempt, good_text(body, key, salt))


def _bodies(fault: Kind | None, body: Mapping[str, Any], key: str, attempt: int, text: str) -> Iterator[Move]:
    """The same for everything with the status 200."""
    name = f"cmpl-{key}-{attempt}"  # no two answers have one id, only two copies of an answer
    good = reply_body(body, name, text)
    whole = http(good)
    half = len(good) // 2
    match fault:
        case None:
            yield whole
        case "reset_inside":
            yield whole[:-half]
            yield "close"
        case "reset_after":
            yield whole
            yield "reset"
        case "slow_loris":
            yield whole[: -len(good)]
            for byte in good[:-1]:
                yield bytes([byte])
                yield DRIP_S
            yield math.inf
        case "broken_json":
            yield http(pick((good[:half], b"upstream connect error", b"", b"data: " + good), key, attempt))
        case "wrong_json":
            yield http(pick((b'{"ok": true}', b"[]", b"null", b'"ok"', b'{"choices": []}'), key, attempt))
        case "doubled_body":
            yield http(good + good)
        case "doubled_response":
            # The second copy always comes with the end of the first: one that crosses the client's next request could
            # be told from its answer by nobody. Headers sent ahead find the client already waiting for the body.
            ahead = pick((0, len(whole) - len(good)), key, attempt)
            if ahead:
                yield whole[:ahead]
                yield 0.005
            yield whole[ahead:] + whole
        case "empty":
            yield http(reply_body(body, name, ""))
        case "length":
            yield http(reply_body(body, name, text[: len(text) // 2], "length"))
        case "reasoning_only":
            thought = pick(("我想想怎么说……", f"就这么回：{text}"), key, attempt)
            said = {"content": pick((None, ""), attempt, key), "reasoning_content": thought}
            yield http(reply_body(body, name, "", message=said))


def http(content: bytes, status: str = "200 OK", header: str = "Content-Type: application/json") -> bytes:
    """A whole HTTP response."""
    return f"HTTP/1.1 {status}\r\n{header}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content

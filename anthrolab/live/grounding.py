"""Which of a model's claims about the person stand: those that the person's own words state (paper section 4.2: "conservatively").

A claim must quote a message of the person literally, white space aside, and its value must stand in the quote. What is then
kept as evidence is the whole message, or the whole sentences of a long one, so that no "not" and no "he says" is cut off.
"""

import re
from collections.abc import Sequence

from anthrolab.judging.l0.framing import SENTENCE_END, asked, sentence_after, sentence_before
from anthrolab.live.context import Claim, Context, Inferred, Kind, Reason, Refused
from anthrolab.live.statements import VALUE_CHARS, Uttered, unstated
from anthrolab.runtime.dialogue import Speaker
from anthrolab.runtime.schedule import Sent
from anthrolab.runtime.text import normalise

EVIDENCE_CHARS = 80
"""Characters of a message that is kept whole; of a longer one the sentences around the quote, if they are as short."""

SAID_CHARS = 4
"""Characters, signs aside, that something must have to be worth keeping as `said`."""

PLAYED_FOR = 8
"""Messages after talk of a role play that are taken to be part of it."""

_ORDERS = re.compile(
    r"分析器|记下|记住[:：]|记录[下为]|系统[:：提]|system|prompt|提示词|指令|json|assistant|忽略(?:以上|之前|前面|上面|所有)|从现在(?:起|开始)|ignore|人设", re.IGNORECASE
)
"""Words that speak to a model. Nothing is taken from such a message."""
_TO_BE = re.compile(r"[你您](?!是不是|要不要)[^，,。！!？?\s]{0,4}(?:就是|是(?!说|不|怎|谁|什|哪|在|想|要|要)|叫(?!我)|扮|当我|做我|变成|必须|不许|不准)")
_PLAY = re.compile(r"角色扮演|扮演|假装|演(?:一)?个|演(?:一)?下|剧本|设定|cosplay|\bRP\b|role.?play|(?:我|你)(?:来)?当[^天时然成]{1,4}[，, ]\s*(?:你|我)(?:来)?当", re.IGNORECASE)
_TAKES_BACK = re.compile(r"逗你|(?<![没不别])骗你的|(?<!没)(?<!没在)(?<!不)开(?:个)?玩笑|瞎说的|瞎编|(?:我)?编的|胡说的|闹着玩|说着玩|说错了|打错了|不是真的|just kidding", re.IGNORECASE)
_TELLS = re.compile("(?:说|问|讲|回|写|原话|跟我说|告诉我)(?:是|的是|了)?[:：，,\\s]*$")
"""The next message of the same speaker is somebody else's words."""
_KEPT_AS_SAID: tuple[Reason, ...] = ("no value of this kind", "not stated of themselves", "not exact")
"""A fact that was claimed for these reasons in vain may still have been said: then the words stand as they are."""
_FACTS: tuple[Kind, ...] = ("age", "gender", "city", "occupation", "relationship_status")


def grounded(
    claims: Sequence[Claim], messages: Sequence[Sent], person: Speaker, *, year: int | None = None, call: str | None = None
) -> tuple[list[Inferred], list[Refused]]:
    """What stands of the claims, and what does not. `year`: the calendar year of the chat, for birth years."""
    found, refused = list[Inferred](), list[Refused]()
    for claim in claims:
        entry = _entry(claim, messages, person, year)
        if isinstance(entry, Inferred):
            found.append(entry.model_copy(update={"call": call}))
        else:
            refused.append(Refused(**claim.model_dump(), reason=entry))
    return found, refused


def still_said(known: Context, messages: Sequence[Sent], person: Speaker) -> Context:
    """The context without what the analyser has from messages that the person took back since (我逗你的)."""
    kept = [e for e in known.entries if e.by == "hand" or e.message is None or not _taken_back(e.message, messages, person)]
    return known.model_copy(update={"entries": kept}) if len(kept) < len(known.entries) else known


def _entry(claim: Claim, messages: Sequence[Sent], person: Speaker, year: int | None) -> Inferred | Reason:
    if not (words := "".join(claim.quote.split())) or not (value := _value(claim)):
        return "no such quote" if not words else "no value of this kind"
    # The number of the message may be off by some; the words may not.
    order = sorted(range(len(messages)), key=lambda i: abs(i - claim.message))
    places = [(i, m) for i in order if (m := _in(words, messages[i].content))]
    if not places:
        return "no such quote"
    places = [(i, m) for i, m in places if messages[i].speaker == person]
    if not places:
        return "not the person's words"
    at, place = places[0]
    content = messages[at].content
    at_value = _in(value, content[place.start() : place.end()])
    if at_value is None:
        return "the value is not in the quote"
    if reason := _not_earnest(at, messages, person):
        return reason
    begin, end = _widened(content, place.start(), place.end())
    if end - begin > EVIDENCE_CHARS:
        return "too long"
    before = [m.content for m in messages[max(0, at - 2) : at]]
    asks = before[-1] if at and messages[at - 1].speaker != person else ""
    start = place.start() + at_value.start()
    said = Uttered.of(content, start, start + len(at_value.group()), before, asks, year)
    kind, value = claim.kind, at_value.group()
    reason = _unkept(kind, content, begin, end, value) if kind in ("said", "topic") else unstated(kind, said)
    if reason in _KEPT_AS_SAID and kind in _FACTS and re.search(r"我|\bI\b", said.text):
        kind, reason = "said", _unkept("said", content, begin, end, value)
    if reason:
        return reason
    quote = content[begin:end]
    return Inferred(kind=kind, value=quote if kind == "said" else value, quote=quote, message=at)


def _value(claim: Claim) -> str:
    """The claimed value without what is ours and not the person's: units, marks."""
    value = "".join(claim.value.split()).strip("“”\"'。，,.")
    if claim.kind == "age":
        return value.removesuffix("岁").removesuffix("周")
    if claim.kind == "gender":
        return next((g for g in "女男" if g in value), value)
    return value.removesuffix("市") if claim.kind == "city" else value


def _in(words: str, text: str) -> re.Match[str] | None:
    """Where the words stand in a text, white space aside."""
    return re.search(r"\s*".join(map(re.escape, words)), text)


def _not_earnest(at: int, messages: Sequence[Sent], person: Speaker) -> Reason | None:
    """Why nothing is taken from a message, whatever it states."""
    if _ORDERS.search(messages[at].content):
        return "tells the persona what to be"
    if any(_PLAY.search(m.content) for m in messages[max(0, at - PLAYED_FOR) : at + 1]):
        return "role play"
    if at and messages[at - 1].speaker == person and _TELLS.search(messages[at - 1].content):
        return "quoted from others"
    return "a joke" if _taken_back(at, messages, person) else None


def _taken_back(at: int, messages: Sequence[Sent], person: Speaker) -> bool:
    """The person says within their next two messages (or in this one) that it was not meant."""
    after = [m.content for m in messages[at + 1 : at + 5] if m.speaker == person][:2]
    return any(_TAKES_BACK.search(content) for content in [messages[at].content, *after])


def _widened(content: str, start: int, end: int) -> tuple[int, int]:
    """The span that is kept as evidence for a quote."""
    if len(content.strip()) > EVIDENCE_CHARS:
        start -= len(sentence_before(content, start))
        if end == start or not SENTENCE_END.match(content[end - 1]):
            end += len(sentence_after(content, end))
    else:
        start, end = 0, len(content)
    text = content[start:end]
    return start + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))


def _unkept(kind: Kind, content: str, begin: int, end: int, value: str) -> Reason | None:
    """Why words are not kept as `said`, or as evidence of a topic. They keep their own frame, so only what states nothing
    or is put to the persona is left out."""
    text = content[begin:end]
    if _TO_BE.search(text):
        return "tells the persona what to be"
    if kind == "topic":
        return "too long" if len(value) > VALUE_CHARS else None
    if asked(content, max(begin, end - 1)) or re.search("[?？]", text):
        return "a question"
    return "says too little" if len(normalise(text)) < SAID_CHARS else None

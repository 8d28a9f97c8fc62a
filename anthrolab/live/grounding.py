"""Which of a model's claims about the person stand: those that the person's own words state (paper section 4.2: "conservatively").

A claim must quote a message of the person literally, white space aside, and its value must stand in the quote. What is then
kept as evidence is the whole message, or the whole sentences of a long one, so that no "not" and no "he says" is cut off.
"""

import re
from collections.abc import Sequence

from anthrolab.judging.l0.framing import SENTENCE_END, asked, sentence_after, sentence_before
from anthrolab.live.context import Claim, Context, Inferred, Kind, Reason, Refused
from anthrolab.live.earnest import not_earnest, taken_back
from anthrolab.live.moment import TIES
from anthrolab.live.statements import VALUE_CHARS, unstated
from anthrolab.live.utterance import Uttered, plainly
from anthrolab.runtime.dialogue import Speaker
from anthrolab.runtime.schedule import Sent
from anthrolab.runtime.text import normalise

EVIDENCE_CHARS = 80
"""Characters of a message that is kept whole; of a longer one the sentences around the quote, if they are as short."""

SAID_CHARS = 4
"""Characters, signs aside, that something must have to be worth keeping as `said`."""

_TO_BE = re.compile(
    r"[你您](?!是不是|要不要)[^，,。！!？?\s]{0,4}(?:就是|是(?!说|不|怎|谁|什|哪|在|想|要|要)|叫(?!我)|扮|当我|做我|变成|必须|不许|不准|应该|只能|只要|得(?!到|了|意|罪|空|闲)|以后)"
    r"|(?:叫|喊|称呼)我(?:主人|老公|老婆|爸|妈|哥|姐|宝)|回复|语气|口吻|(?<!我)必须|禁止|不要再|别再(?:说|提|问)"
)
"""Words that would have the persona be, say or do something."""
_TIED = re.compile(rf"我[^，,。]{{0,4}}是[你您][^，,。]{{0,4}}(?:{TIES.pattern})|我(?:俩|们俩?|和你)[^，,。]{{0,2}}是[^，,。]{{0,3}}(?:{TIES.pattern})", re.IGNORECASE)
_LABEL = re.compile("[:：](?!\\d)|^\\s*[\\[【《(（]")
_KEPT_AS_SAID: tuple[Reason, ...] = ("no value of this kind", "not stated of themselves", "not exact")
"""A fact that was claimed for these reasons in vain may still have been said: then the words stand as they are."""
_FACTS: tuple[Kind, ...] = ("age", "gender", "city", "occupation", "relationship_status")


def grounded(
    claims: Sequence[Claim], messages: Sequence[Sent], person: Speaker, *, year: int | None = None, call: str | None = None, name: str = ""
) -> tuple[list[Inferred], list[Refused]]:
    """What stands of the claims, and what does not. `year`: the calendar year of the chat, for birth years;
    `name`: the persona's."""
    found, refused = list[Inferred](), list[Refused]()
    for claim in claims:
        entry = _entry(claim, messages, person, year, name)
        if isinstance(entry, Inferred):
            found.append(entry.model_copy(update={"call": call}))
        else:
            refused.append(Refused(**claim.model_dump(), reason=entry))
    return found, refused


def still_said(known: Context, messages: Sequence[Sent], person: Speaker) -> Context:
    """The context without what the analyser has from messages that the person took back since (我逗你的)."""
    kept = [e for e in known.entries if e.by == "hand" or e.message is None or not taken_back(e.message, messages, person)]
    return known.model_copy(update={"entries": kept}) if len(kept) < len(known.entries) else known


def _entry(claim: Claim, messages: Sequence[Sent], person: Speaker, year: int | None, name: str) -> Inferred | Reason:
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
    if reason := not_earnest(at, messages, person):
        return reason
    begin, end = _widened(content, place.start(), place.end())
    if end - begin > EVIDENCE_CHARS:
        return "too long"
    before = [m.content for m in messages[max(0, at - 2) : at]]
    asks = before[-1] if at and messages[at - 1].speaker != person else ""
    start = place.start() + at_value.start()
    said = Uttered.of(content, start, start + len(at_value.group()), before, asks, year)
    kind, value = claim.kind, at_value.group()
    reason = _unkept(kind, content, begin, end, value, name) if kind in ("said", "topic") else unstated(kind, said)
    if reason in _KEPT_AS_SAID and kind in _FACTS and re.search(r"我|\bI\b", said.text):
        kind, reason = "said", _unkept("said", content, begin, end, value, name)
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


def _unkept(kind: Kind, content: str, begin: int, end: int, value: str, name: str) -> Reason | None:
    """Why words are not kept as `said`, or as evidence of a topic. They keep their own frame, so what is left out is what
    states nothing, what is put to the persona, and what is about the persona alone."""
    text = plainly(content[begin:end])
    if any(_TO_BE.search(t) or _TIED.search(t) for t in (text, "".join(text.split()))):
        return "tells the persona what to be"
    if kind == "topic":
        return "too long" if len(value) > VALUE_CHARS else None
    if _LABEL.search(content[:begin]):
        return "quoted from others"
    if asked(text, max(0, len(text) - 1)) or re.search("[?？]|吗[。.！!\\s]*$", text):
        return "a question"
    if (name and name in text) or (re.search("[你您]", text) and "我" not in text):
        return "about somebody else"
    return "says too little" if len(normalise(text)) < SAID_CHARS else None

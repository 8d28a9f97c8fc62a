"""Rules about whether a dialogue hangs together, as far as shared words show it."""

import re
from collections.abc import Iterator
from itertools import groupby

from anthrolab.judging.rules.asking import asking
from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import is_filler, is_near_copy, shown
from anthrolab.runtime.text import is_farewell, normalise

ARC = 8
"""Fewest messages, both sides and the opener counted, that a chat needs to go anywhere (the paper's cases have 11 to
17 evaluated turns)."""

_FUNCTION = set(
    "的了是我你他她它您们在不没有就都也还这那哪吗呢吧啊呀哦嗯么个一去来要会能好说看想和跟给把被让很太又再才只得着过到从对为"
    "什怎咋啥谁几多少点上下里外前后时候今明昨天年月日号些样自己人家可以知道应该觉真最但而且如果因所与及或之其此"
)
_CONFUSED = re.compile(
    r"^[?？]{1,}$|听不懂|没听懂|没懂|看不懂|没看懂|啥意思|什么意思|(?:你|你在|在)说(?:什么|啥)|说的(?:什么|啥)|答非所问|"
    r"什么(?:跟|和)什么|啥跟啥|你没事吧|喝多了吧|你在跟谁说|发错(?:人|了)|说人话|说中文|胡说八道"
)

_INSISTS = re.compile(
    r"(?:我|我是|我就|我可是)问(?:的是|的|你(?!个|一|件|点|下|妈|爸)|(?![问了过他她下一个题候]))|(?:^|[^我想请])问你(?!个|一|件|点|下|妈|爸|好)|谁问你|谁管[他她你]|我是说|(?:听没听|听见没|听到没)|(?:别|老|净|乱)打岔|"
    r"答非所问|别(?:扯|岔)|先回答|好好说话|你倒是(?:说|答)|我要的是|我在问|[说讲]的?是?[^，,。]{1,4}呢$|我说(?:的是)?(?!我|不|了|过|没|完|说|呢)[一-鿿]{2,4}$|我没问|你能不能先|别跟我说"
)
_WANTED = re.compile(r"我要(?![去走是回先不]|.*(?:做啥|干嘛|干吗|做什么))|急死|[?？]{2}$")
_DEMANDS = re.compile(r"给我|发我|发来|告诉我|报一?下|给句话|说一?[下声]")
_EMPTY_PAIRS = frozenset("的是 是我 我是 你的 是不 不是 有没 没有 了没 这个 那个 我的 就是 还是 一个 你是 你在 我在 你说 我说 我问 问你 什么 怎么 干嘛 干吗 咋了 明天 今天 昨天 晚上 现在 礼拜 星期 你们 我们 上个 个月".split())


_RUN = re.compile(r"(.{1,8}?)\1{2,}")
"""The same characters over and over inside a message: a matter of clean text (D5.2), counted once here."""


def takes_up_the_event(scene: Scene) -> Finding:
    """Compares the person's words with the scenario card: passes if two messages use three words (pairs of content
    characters) of the title, goal, opener and triggers; fails if six turns with eight words in all (four with ten) share
    none with these, and at most one with the rest of the card and with what the partner says."""
    if scene.scenario is None:
        return UNDECIDED
    card = scene.scenario
    event = [card.title, card.goal, card.opener.content, card.speakers.a.trigger, card.speakers.b.trigger]
    around = [card.relationship, card.tone]
    for side in (card.speakers.a, card.speakers.b):
        around += [side.place, side.emotion, *side.knows]
    of_event = _words(event)
    shared = [words for m in scene.own if (words := _words([m.content]) & of_event)]
    if len(shared) >= 2 and len(frozenset().union(*shared)) >= 3:
        return PASSED
    said = _words([m.content for m in scene.own])
    wordy = (len(said) >= 8 and len(scene.own) >= 6) or (len(said) >= 10 and len(scene.own) >= 4)
    near = len(said & _words(around)) + len(said & _words([m.content for m in scene.partner if not m.opener]))
    if wordy and not said & of_event and near <= 1:
        return failed(f"hardly a word of {len(scene.own)} messages has to do with the occasion ({card.title}) or with the partner's words")
    return UNDECIDED


def _words(texts: list[str]) -> frozenset[str]:
    """Pairs of neighbouring Chinese characters of which neither is a function word."""
    return frozenset(
        core[i : i + 2]
        for core in map(normalise, texts)
        for i in range(len(core) - 1)
        if all("一" <= c <= "鿿" and c not in _FUNCTION for c in core[i : i + 2])
    )


def partner_follows(scene: Scene) -> Finding:
    """Fails if the partner twice says not to follow (你在说什么) right after messages of the person, or twice running
    comes back to a question that got no answer, once at least outright (我问的是几点); never passes (one-sided)."""
    confused: list[str] = []
    protests: list[str] = []
    outright = False
    about: frozenset[str] = frozenset()
    for theirs in _partner_after_own(scene):
        text = " ".join(theirs)
        confused += [t for t in theirs[:1] if _CONFUSED.search(t.strip())]
        insists, returns = bool(_INSISTS.search(text)), bool(about & _parts(text))
        wanted = returns and len(normalise(text)) <= 14 and bool(_WANTED.search(text))
        if insists or wanted or (returns and (asking(text) == "yes" or len(normalise(text)) <= 6)):
            protests.append(text)
            outright = outright or insists or wanted
            about |= _parts(text) if insists and asking(text) == "yes" else frozenset()
        else:
            protests, outright, about = [], False, _parts(text) if asking(text) != "no" else frozenset()
        if len(confused) >= 2 or (len(protests) >= 2 and outright):
            return failed(f"the partner does not get through: {' '.join(map(shown, (protests or confused)[:3]))}")
        if not about and _DEMANDS.search(text):
            about = _parts(text)
    return UNDECIDED


def _partner_after_own(scene: Scene) -> Iterator[list[str]]:
    """Runs of partner messages, each right after a message of the person (the opener and what it opens included)."""
    for speaker, run in groupby(scene.dialogue.messages, key=lambda m: m.speaker):
        if speaker != scene.dialogue.evaluated_role:
            yield [m.content for m in run]


def _parts(text: str) -> frozenset[str]:
    """Pairs of neighbouring characters, and the single ones that carry content."""
    core = normalise(text)
    pairs = {core[i : i + 2] for i in range(len(core) - 1)}
    return frozenset(pairs - _EMPTY_PAIRS | {c for c in core if "一" <= c <= "鿿" and c not in _FUNCTION and c != "问"})


def keeps_moving(scene: Scene) -> Finding:
    """Fails if the chat ends before it could go anywhere, if the person three times (twice in at most ten turns) says
    nearly what was said before, says goodbye four times, or mostly shuffles the same words; passes if the
    person's words keep changing (`variety` of at least 0.9, `richness` of at least 0.6)."""
    messages = scene.dialogue.messages
    if len(messages) < ARC:
        return failed(f"over after {len(messages)} messages")
    copies: list[str] = []
    before: list[str] = []
    for message in messages:
        text = message.content
        own = message.speaker == scene.dialogue.evaluated_role and not message.opener
        if own and not is_filler(text) and any(is_near_copy(text, earlier) for earlier in before):
            copies.append(text)
        before.append(text)
    if len(copies) >= 3 or (len(copies) == 2 and len(scene.own) <= 10):
        return failed(f"{len(copies)} messages repeat earlier ones, such as {shown(copies[-1])}")
    goodbyes = [m.content for m in scene.own if is_farewell(m.content)]
    if len(goodbyes) >= 4:
        return failed(f"{len(goodbyes)} goodbyes, such as {shown(goodbyes[-1])}")
    texts = [m.content for m in scene.own]
    varied, rich = variety(texts), richness(texts)
    if (varied is not None and varied < 0.82) or (rich is not None and rich < 0.52):
        return failed(f"the same words over and over, such as {shown(texts[-1])}")
    if varied is None or rich is None:
        return UNDECIDED
    return PASSED if varied >= 0.9 and rich >= 0.6 and not copies else UNDECIDED


def richness(texts: list[str]) -> float | None:
    """Share of different ones among the first 80 Chinese characters, 0 to 1; None for fewer than 30. Chats written by
    people stay above 0.6; one that turns in a circle sinks below 0.5.

    >>> richness(["多喝热水", "热水多喝", "多喝点热水", "你多喝热水", "记得多喝热水", "热水要喝热的", "喝热水"])
    0.3
    """
    signs = [c for t in texts for c in _RUN.sub(r"\1", normalise(t)) if "一" <= c <= "鿿"][:80]
    return round(len(set(signs)) / len(signs), 2) if len(signs) >= 30 else None


def variety(texts: list[str]) -> float | None:
    """Share of different ones among the first 100 pairs of neighbouring characters (filler left out), 0 to 1; None
    for fewer than 25. Chats written by people stay above 0.9; a small base model's are often below 0.8.

    >>> variety(["周六下午三点见", "周六下午三点见", "周六下午三点见", "周六下午三点见", "周六下午三点见"])
    0.2
    """
    pairs = [core[i : i + 2] for t in texts if not is_filler(t) for core in [_RUN.sub(r"\1", normalise(t))] for i in range(len(core) - 1)]
    pairs = pairs[:100]
    return len(set(pairs)) / len(pairs) if len(pairs) >= 25 else None

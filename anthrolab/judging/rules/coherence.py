"""Rules about whether a dialogue hangs together, as far as shared words show it."""

import re
from collections import Counter
from itertools import pairwise

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import (
    is_filler,
    is_near_copy,
    is_question,
    is_real_question,
    is_stock_question,
    shown,
    similarity,
)
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


def no_repeated_question(scene: Scene) -> Finding:
    """Fails if a question is asked nearly word for word again after the partner spoke, or any but the shortest
    (咋了, 是吗) three times; passes if there is at most one question of substance, or none resembles another."""
    every = Counter(normalise(m.content) for m in scene.own if is_question(m.content))
    for text, times in every.items():
        if times >= 3 and len(text) >= 3 and not is_stock_question(text):
            return failed(f"asks {shown(text)} {times} times")
    asked: list[tuple[int, str]] = []
    closest = 0.0
    for position, message in enumerate(scene.dialogue.messages):
        if message.speaker != scene.dialogue.evaluated_role or not is_real_question(message.content):
            continue
        for earlier_position, earlier in asked:
            between = scene.dialogue.messages[earlier_position + 1 : position]
            alike = similarity(message.content, earlier)
            closest = max(closest, alike)
            answered = any(m.speaker != message.speaker for m in between)
            if answered and alike >= 0.8 and min(len(normalise(message.content)), len(normalise(earlier))) >= 5:
                return failed(f"asks {shown(message.content)} after {shown(earlier)}")
        asked.append((position, message.content))
    return PASSED if scene.own and closest < 0.3 else UNDECIDED


def takes_up_the_event(scene: Scene) -> Finding:
    """Compares the person's words with the scenario card: passes if two messages use three words (pairs of content
    characters) of the title, goal, opener and triggers; fails if six turns (four, if wordy) share no word with all that the card says."""
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
    if (len(scene.own) >= 6 or (len(scene.own) >= 4 and len(said) >= 10)) and not said & (of_event | _words(around)):
        return failed(f"no word of {len(scene.own)} messages has to do with the occasion ({card.title})")
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
    """Fails if the partner twice says not to follow, right after a message of the person; never passes (one-sided)."""
    confused: list[str] = []
    messages = scene.dialogue.messages
    for before, message in pairwise(messages):
        own_first = before.speaker == scene.dialogue.evaluated_role != message.speaker
        if own_first and not before.opener and _CONFUSED.search(message.content.strip()):
            confused.append(message.content)
    if len(confused) >= 2:
        return failed(f"the partner does not follow: {' '.join(map(shown, confused[:3]))}")
    return UNDECIDED


def keeps_moving(scene: Scene) -> Finding:
    """Fails if the chat ends before it could go anywhere, if the person three times (twice in at most ten turns) says
    nearly what was said before, says goodbye four times, or mostly shuffles the same words; passes if the
    person's words keep changing (`variety` of at least 0.9)."""
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
    varied = variety([m.content for m in scene.own])
    if varied is None:
        return UNDECIDED
    if varied < 0.82:
        return failed(f"the same words over and over: {1 - varied:.0%} of the character pairs were there before")
    return PASSED if varied >= 0.9 and not copies else UNDECIDED


def variety(texts: list[str]) -> float | None:
    """Share of different ones among the first 100 pairs of neighbouring characters (filler left out), 0 to 1; None
    for fewer than 25. Chats written by people stay above 0.9; a small base model's are often below 0.8.

    >>> variety(["周六下午三点见", "周六下午三点见", "周六下午三点见", "周六下午三点见", "周六下午三点见"])
    0.2
    """
    pairs = [core[i : i + 2] for t in texts if not is_filler(t) for core in [normalise(t)] for i in range(len(core) - 1)]
    pairs = pairs[:100]
    return len(set(pairs)) / len(pairs) if len(pairs) >= 25 else None

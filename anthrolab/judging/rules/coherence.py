"""Rules about whether a dialogue hangs together, as far as shared words show it."""

import re
from itertools import pairwise

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import is_filler, is_near_copy, is_real_question, shown, similarity
from anthrolab.runtime.text import is_farewell, normalise

ARC = 6
"""Fewest messages, both sides and the opener counted, that a chat needs to go anywhere."""

_FUNCTION = set(
    "的了是我你他她它您们在不没有就都也还这那哪吗呢吧啊呀哦嗯么个一去来要会能好说看想和跟给把被让很太又再才只得着过到从对为"
    "什怎咋啥谁几多少点上下里外前后时候今明昨天年月日号些样自己人家可以知道应该觉真最但而且如果因所与及或之其此"
)
_CONFUSED = re.compile(
    r"^[?？]{1,}$|听不懂|没听懂|没懂|看不懂|没看懂|啥意思|什么意思|(?:你|你在|在)说(?:什么|啥)|说的(?:什么|啥)|答非所问|"
    r"什么(?:跟|和)什么|啥跟啥|你没事吧|喝多了吧|你在跟谁说|发错(?:人|了)|说人话|说中文|胡说八道"
)


def no_repeated_question(scene: Scene) -> Finding:
    """Fails if a question is asked nearly word for word again after the partner spoke; passes if there is at most
    one question of substance, or none resembles another."""
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
    characters) of the title, goal, opener and triggers; fails if at least four turns share no word with the card."""
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
    if len(scene.own) >= 4 and len(said) >= 10 and not said & (of_event | _words(around)):
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


def no_going_in_circles(scene: Scene) -> Finding:
    """Fails if the person three times says nearly what was said before, or twice in at most ten turns, says goodbye
    four times, or if the chat ends before it could go anywhere; never passes (one-sided)."""
    if len(scene.dialogue.messages) < ARC:
        return failed(f"over after {len(scene.dialogue.messages)} messages")
    copies: list[str] = []
    before: list[str] = []
    for message in scene.dialogue.messages:
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
    return UNDECIDED

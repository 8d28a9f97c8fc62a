"""Rules about how the evaluated role behaves over the whole dialogue."""

import re
from itertools import pairwise

from anthrolab.judging.rules.habits import chinese_number
from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import (
    is_filler,
    is_question,
    is_real_question,
    letters,
    may_be_question,
    shown,
)
from anthrolab.runtime.dialogue import Message, other
from anthrolab.runtime.text import normalise

_VOCATIVE_END = r"(?=[，,、!！~～\s啊呀哥姐你您]|$)"
_GREETINGS = {"早上好": (4, 16), "早安": (4, 16), "上午好": (5, 13), "中午好": (10, 15), "下午好": (11, 20), "晚上好": (16, 24)}
_CLOCK = re.compile(r"(?:现在|这会儿)(?:都|已经|才|快|是)*([0-9]{1,2}|[一二两三四五六七八九十]{1,3})点(?:半|多|钟)?了")
_DISMISSAL = re.compile(r"关我(?:什么|啥|屁)事|懒得理你|别来?烦我|不想[跟和]你(?:说|聊)|不想理你|没空理你|爱咋咋地吧")
_REPLY = re.compile(r"(?:是的|好的|对的|谢谢[你您]?|不客气|没事的?|收到)(?:$|[，,。！!~～\s啊呀哈])")
_JOKING = re.compile(r"哈|嘿|[~～]|hh|\[|😂|🤣|😏|😜", re.IGNORECASE)
_OF_SELF = re.compile(
    r"(?:^|[，,。！!…\s]|今天|昨天|刚才?|反正|可是?|但|其实)(?:我|俺|本人)"
    r"(?!们?(?:知道|明白|理解|懂你|建议|会帮|可以帮|能帮|来帮|帮你|很高兴|能理解|完全|给你|为你))[^，,。？?]{3,}"
)


def who_is_who(scene: Scene) -> Finding:
    """Fails if the person calls the partner by their own name, gives the partner's name as theirs, or answers their
    own question as if the partner had asked; passes if names are used and rightly; else undecided."""
    messages = scene.dialogue.messages
    for asked, reply in pairwise(messages):
        own = asked.speaker == reply.speaker == scene.dialogue.evaluated_role
        if own and is_question(asked.content) and _REPLY.match(reply.content.strip()):
            return failed(f"answers their own question: {shown(asked.content)} {shown(reply.content)}")
    role = scene.dialogue.evaluated_role
    own_names = _names(scene.dialogue.speakers[role].name)
    partner_names = _names(scene.dialogue.speakers[other(role)].name)
    if own_names & partner_names:
        return UNDECIDED
    rightly = False
    for message in scene.own:
        text = message.content.strip()
        for name in own_names:
            if re.match(re.escape(name) + r"(?=[，,、!！~～\s]*[你您])|" + re.escape(name) + r"(?=[!！~～，,]|$)", text):
                return failed(f"calls the partner by the own name: {shown(text)}")
            rightly |= bool(re.match(rf"我(?:是|叫){re.escape(name)}", text))
        for name in partner_names:
            if re.match(rf"我(?:是|叫){re.escape(name)}(?:$|[，,。!！\s啊呀])", text):
                return failed(f"gives the partner's name as their own: {shown(text)}")
            rightly |= bool(re.match(re.escape(name) + _VOCATIVE_END, text))
    return PASSED if rightly else UNDECIDED


def _names(name: str) -> frozenset[str]:
    """The full name and, of a Chinese name of three or four characters, the last two."""
    chinese = re.fullmatch(r"[一-鿿]{3,4}", name)
    return frozenset({name, name[-2:]} if chinese else {name})


def greeting_fits_clock(scene: Scene) -> Finding:
    """Fails if a greeting, a 晚安 or a stated hour is far from the clock; passes if there is one and all fit."""
    fits = False
    for message in scene.own:
        core, hour = normalise(message.content), message.at.hour
        for greeting, (first, end) in _GREETINGS.items():
            if core.startswith(greeting) and len(core) <= 10:
                if not first <= hour < end and not (greeting == "晚上好" and hour < 4):
                    return failed(f"{shown(message.content)} at {message.at:%H:%M}")
                fits = True
        if core.startswith("晚安") and len(core) <= 8:
            if 7 <= hour < 18:
                return failed(f"{shown(message.content)} at {message.at:%H:%M}")
            fits = True
        if stated := _CLOCK.search(message.content):
            apart = abs(chinese_number(stated.group(1)) - (hour + message.at.minute / 60)) % 12
            if min(apart, 12 - apart) > 1.5:
                return failed(f"{shown(message.content)} at {message.at:%H:%M}")
            fits = True
    return PASSED if fits else UNDECIDED


def no_cold_shutdown(scene: Scene) -> Finding:
    """Fails if only filler answers a partner who talks, if the partner's question and two more messages stay without
    an answer at the end, or on a plain dismissal; passes if questions got something back and filler is rare."""
    fillers = [m for m in scene.own if is_filler(m.content)]
    talk = [m for m in scene.partner if letters(m.content) >= 8]
    if len(scene.own) >= 4 and len(fillers) == len(scene.own) and len(talk) >= 3:
        return failed(f"nothing but filler in {len(fillers)} messages, such as {shown(fillers[-1].content)}")
    for message in scene.own:
        if _DISMISSAL.search(message.content):
            return UNDECIDED if _JOKING.search(message.content) else failed(f"dismisses: {shown(message.content)}")
    unanswered = _unanswered(scene)
    if len(unanswered) >= 3 and any(is_real_question(m.content) for m in unanswered):
        return failed(f"{len(unanswered)} messages without an answer, such as {shown(unanswered[0].content)}")
    left_open = any(is_question(m.content) for m in unanswered)
    return PASSED if len(scene.own) >= 3 and not left_open and 3 * len(fillers) <= len(scene.own) else UNDECIDED


def _unanswered(scene: Scene) -> list[Message]:
    """The partner's messages after the evaluated role's last."""
    trailing: list[Message] = []
    for message in reversed(scene.dialogue.messages):
        if message.speaker == scene.dialogue.evaluated_role:
            break
        trailing.insert(0, message)
    return trailing


def asks_a_question(scene: Scene) -> Finding:
    """Passes on a question of substance; fails if at least four turns hold nothing that could be a question."""
    if any(is_real_question(m.content) for m in scene.own):
        return PASSED
    if len(scene.own) >= 4 and not any(may_be_question(m.content) for m in scene.own):
        return failed(f"no question in {len(scene.own)} messages")
    return UNDECIDED


def tells_of_self(scene: Scene) -> Finding:
    """Passes on a statement with the speaker as its subject; fails if at least three turns are all filler."""
    if any(_OF_SELF.search(m.content) and not is_question(m.content) for m in scene.own):
        return PASSED
    if len(scene.own) >= 3 and all(is_filler(m.content) for m in scene.own):
        return failed(f"only filler in {len(scene.own)} messages")
    return UNDECIDED


def not_passive(scene: Scene) -> Finding:
    """Passes if at least half of three or more turns have content, fails if at most a fifth of four or more have."""
    turns = len(scene.own)
    content = sum(not is_filler(m.content) and (letters(m.content) >= 5 or is_question(m.content)) for m in scene.own)
    if turns >= 4 and 5 * content <= turns:
        return failed(f"{content} of {turns} messages say anything of their own")
    return PASSED if turns >= 3 and 2 * content >= turns else UNDECIDED


def both_take_part(scene: Scene) -> Finding:
    """Passes if each has three messages with content and a quarter of all such; fails if the person has at most one
    turn with content, or if one of the two has none of six or more, or less than a tenth of ten or more."""
    if sum(not is_filler(m.content) for m in scene.own) <= 1:
        return failed(f"{len(scene.own)} messages of the evaluated person, at most one of them with content")
    own = sum(not is_filler(m.content) for m in scene.dialogue.messages if m.speaker == scene.dialogue.evaluated_role)
    partner = sum(not is_filler(m.content) for m in scene.partner)
    fewer, total = min(own, partner), own + partner
    if len(scene.dialogue.messages) >= 6 and (fewer == 0 or (total >= 10 and 10 * fewer < total)):
        return failed(f"messages with content: {own} of the evaluated person, {partner} of the partner")
    return PASSED if fewer >= 3 and 4 * fewer >= total else UNDECIDED

"""The rule about who is who: names, pronouns, and whose news it is."""

import re
from collections.abc import Iterator
from itertools import groupby, pairwise

from anthrolab.judging.rules.asking import asking
from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import is_question, shown
from anthrolab.runtime.dialogue import other
from anthrolab.runtime.text import normalise

_VOCATIVE_END = r"(?=[，,、!！~～\s啊呀哥姐你您]|$)"
_NAME_END = r"(?=$|[，,。!！?？\s啊呀哦呢吧在说这])"
_REPLY = re.compile(r"(?:是的|好的|对的|(?:好的)?谢谢[你您]?|不客气|没事的?|收到)(?:$|[，,。！!~～\s啊呀哈])")
_KIN = r"(?:爸|妈|外婆|外公|姥姥|姥爷|公公|婆婆|丈母娘|岳父|岳母|爷爷?|奶奶?|哥|姐|弟|妹|姑|姨|舅|叔|儿子?|女儿|闺女|姑娘|孩子|娃|老公|老婆|对象|老师|外甥|侄[子女]|外孙女?|孙子|孙女|家里?|[猫狗车])"
_THANKS = re.compile(r"^(?:谢谢|多谢|感谢|谢)(?:谢谢)?(?:你|您|关心|啊|呀|哈)*")
_THING = r"(?:[一-鿿]{1,3})"
_YOURS_ASKED = re.compile(rf"(?:^|[，,。\s])[你您](?:家?的?)({_KIN}|房子|钱|腿|腰|病|牙|票|房)")
_CORRECTED = re.compile(
    r"(?:搞|弄|说|听)[反混](?:了|吧)|你(?:串|糊涂)了|你说的(?:是)?你(?:自己|家)|是我[一-鿿]{0,3}(?:借|给|送)给?你的|不是我(?:借|给|送|请|还)[一-鿿]{0,2}你的?(?:吗|么)|"
    r"是你(?:欠|借|求|催)我|是我欠你|你叫错|叫我干嘛叫|(?:我的|我家)[一-鿿]{1,2} ?你哪来|(?:说|讲)的是我[一-鿿]{1,3}吧|你才是[一-鿿]{2,3}$"
)
_CLAIMED = re.compile(r"^[?？啊]*\s*(?:那|今天)?是我(?:自己)?(?![一-鿿]{1,5}的$)([一-鿿]{1,6})|([一-鿿]{1,3})的是我")
"""The partner says whose matter it is; a correction only if the person spoke of it as 我."""
_COMMON = set("的了是我你他她不没有在就都也还这那个一去来要会说想看给好吧啊呀啦吗呢啥对先刚今明昨天")
_WHO = re.compile(r"^(?:你(?:是|到底)?|请问你?是|喂 ?)?(?:谁|哪位)[啊呀呢]?(?:$|[?？\s])|^你是哪个")
_NEWS = re.compile(r"考上|考过|升职|升了|中奖|结婚|订婚|生了|毕业|当上|出院|住院|生日|得奖|拿奖|评上|大寿|录取|赢了|找到工作|买房|通过了|过了|怀孕|第一名|退休|病了|好多了")
_SHARED = re.compile(r"也|(?<![跟和给对])你说|说什么|跟你一样|一样|还不是|才对|彼此|同")


def who_is_who(scene: Scene) -> Finding:
    """Fails if the person calls the partner by their own name, gives the partner's name as theirs, speaks to the
    partner of the partner by name, takes the partner's news as their own (thanks for it, repeats it as 我 ...), answers
    你... with 你..., answers their own question as if the partner had asked, or is put right by the partner (是我去,
    搞反了); passes if names are used and rightly; else undecided."""
    for find in (_names_swapped, _answers_itself, _sides_swapped):
        if evidence := find(scene):
            return failed(evidence)
    role = scene.dialogue.evaluated_role
    own, partner = (_names(scene.dialogue.speakers[who].name) for who in (role, other(role)))
    if own & partner:
        return UNDECIDED
    rightly = any(
        re.match(rf"我(?:是|叫){re.escape(name)}", m.content.strip()) for m in scene.own for name in own
    ) or any(re.match(re.escape(name) + _VOCATIVE_END, m.content.strip()) for m in scene.own for name in partner)
    return PASSED if rightly else UNDECIDED


def _names(name: str) -> frozenset[str]:
    """The full name and, of a Chinese name of three or four characters, the last two."""
    chinese = re.fullmatch(r"[一-鿿]{3,4}", name)
    return frozenset({name, name[-2:]} if chinese else {name})


def _names_swapped(scene: Scene) -> str | None:
    role = scene.dialogue.evaluated_role
    own, partner = (_names(scene.dialogue.speakers[who].name) for who in (role, other(role)))
    if own & partner:
        return None
    for message in scene.own:
        text = message.content.strip()
        for name in map(re.escape, own):
            if re.match(rf"(?:[哎喂嗨诶欸]|哎呀)?\s*{name}(?:[，,、!！~～\s]*[你您]|[!！~～，,])|你{name}(?!吧|说|的|家)", text):
                return f"calls the partner by the own name: {shown(text)}"
        for name in map(re.escape, partner):
            if _as_own(name).search(text) and not re.search(r"[他她]|人家|如果|要是|当|以为", text):
                return f"gives the partner's name as their own: {shown(text)}"
            if _as_third(name).search(text):
                return f"speaks to the partner as of a third person: {shown(text)}"
    return None


def _as_own(name: str) -> re.Pattern[str]:
    return re.compile(rf"我(?:就|也)?(?:是|叫){name}{_NAME_END}|我{name}(?!$)(?=[一-鿿\s，,])")


def _as_third(name: str) -> re.Pattern[str]:
    you = r"(?:[你您](?!们)|^记得|^麻烦|^顺便|^帮我|^替我)(?:[帮替]我)?[^，,。我]{0,5}?"
    verb = "(?:跟|告诉|问问|问|通知|转告|提醒|见着|见到|碰到|碰见|看见|看到|联系)"
    return re.compile(rf"{you}{verb}(?:一下|下)?{name}(?![他她的家妈爸们])|{name}(?:这个?人|那个?人)[^。]*你")


def _answers_itself(scene: Scene) -> str | None:
    for asked, reply in pairwise(scene.dialogue.messages):
        own = asked.speaker == reply.speaker == scene.dialogue.evaluated_role
        if own and is_question(asked.content) and _is_reply_to(asked.content, reply.content.strip()):
            return f"answers their own question: {shown(asked.content)} {shown(reply.content)}"
    return None


def _is_reply_to(asked: str, reply: str) -> bool:
    """是的 ... and 谢谢 after an own question; 好的, 没事, 收到 may answer an earlier message of the partner and count
    only with a word of the question in them (你几点下班？ 收到 我六点下)."""
    if not (match := _REPLY.match(reply)):
        return False
    if re.match("是的|对的|谢谢|好的谢谢", reply):
        return len(normalise(reply)) >= 4
    words = {c for c in normalise(asked) if "一" <= c <= "鿿"} - set("你您吗呢吧啊了的不没有我是几什么怎哪好去来那这还要会就都")
    return any(c in words for c in reply[match.end() - 1 :])


def _sides_swapped(scene: Scene) -> str | None:
    partner = _names(scene.dialogue.speakers[other(scene.dialogue.evaluated_role)].name)
    for theirs, reply in _answers(scene):
        if _WHO.search(theirs.strip()) and any(re.match(rf"我?{name}(?:[啊呀吧,，!！\s]|$)", reply.strip()) for name in partner):
            return f"gives the partner's name as their own: {shown(theirs)} {shown(reply)}"
        if reason := _swapped(theirs.strip(), reply.strip()):
            return f"{reason}: {shown(theirs)} {shown(reply)}"
    for news, said, put_right in _corrections(scene):
        if "我" in said and (_CORRECTED.search(put_right) or _claimed(news, said, put_right)):
            return f"put right by the partner: {shown(said)} {shown(put_right)}"
    return None


def _claimed(news: str, said: str, put_right: str) -> bool:
    """The partner's 是我学车啊 or 开刀的是我 after a message that says 我 of what the partner told."""
    match = _CLAIMED.search(put_right)
    protests = re.match("[?？啊]", put_right) or re.search(r"(?:啊|好吧|好不好|不是你)[~～!！。]*$", put_right)
    if match is None or not protests or "我" not in news or re.search("以为", said) or asking(put_right.lstrip("?？ ")) == "yes":
        return False
    matter = match.group(1) or match.group(2)
    told = any("一" <= c <= "鿿" and c in news and c not in _COMMON for c in matter)
    return told or any(f"我{part}" in said or f"{part}我" in said for part in (matter[:2], matter[-1]) if part not in _COMMON)


def _corrections(scene: Scene) -> Iterator[tuple[str, str, str]]:
    """Runs of partner, person, partner: all that the first said, and the last and first messages of the others."""
    runs = [list(run) for _, run in groupby(scene.dialogue.messages, key=lambda m: m.speaker)]
    for first, second, third in zip(runs, runs[1:], runs[2:], strict=False):
        if second[0].speaker == scene.dialogue.evaluated_role:
            yield " ".join(m.content for m in first), " ".join(m.content for m in second), third[0].content.strip()


def _answers(scene: Scene) -> Iterator[tuple[str, str]]:
    """A message of the partner and the person's next one, right after it."""
    for first, second in pairwise(scene.dialogue.messages):
        if first.speaker != second.speaker == scene.dialogue.evaluated_role:
            yield first.content, second.content


def _swapped(theirs: str, reply: str) -> str | None:
    thanked = _THANKS.match(reply)
    news = re.match(rf"我(?:们家?|家)?({_KIN})?", theirs)
    if thanked and news and asking(theirs) == "no" and not re.search(r"[你您]", theirs) and _NEWS.search(theirs):
        rest, kin = reply[thanked.end() :].strip(), news.group(1)
        mine = rest.startswith("我") or (kin and f"我{kin}" in rest) or re.search(r"来喝我的|到时候.{0,6}我的", rest)
        if mine and not _SHARED.search(rest.replace("也没想到", "")):
            return "takes the partner's news as their own"
    clause = re.search(r"我[一-鿿]{4,}", theirs)
    if clause and asking(theirs) == "no" and re.search(rf"{clause.group()}了?(?:$|[\s，,。!！~])", reply) and not _SHARED.search(reply):
        return "repeats the partner's news as their own"
    if asking(theirs) == "yes" and asking(reply) != "yes":
        for thing in _YOURS_ASKED.findall(theirs):
            if re.match(rf"^(?:[嗯哦啊]\s*)?[你您](?:家?的?){re.escape(thing)}(?!呢|跟|比|才|也|倒|同|那|不也|的)", reply):
                return "answers for the partner"
    return None

"""Short answers to a question about the speaker, as the statements they stand for: 你老家哪儿的 - 乌鲁木齐啊."""

import re
from collections.abc import Iterator
from typing import Literal

from anthrolab.judging.l0.facts.occupations import PLAIN, TRADES
from anthrolab.judging.l0.facts.places import REGIONS, known_places

Fact = Literal["age", "gender", "city", "occupation", "relationship"]

TRIGGERS = (
    "多大 几岁 贵庚 高寿 哪年 几几 几零 属啥 属什 属哪 岁数 年龄 哪里 哪儿 哪的 哪人 住哪 哪个 做什 做啥 干什 干啥 干嘛 么工 啥工 职业 哪行 啥的 几年 对象 结婚 单身 "
    "成家 男朋 女朋 男的 女的 男生 女生 性别 男是 男还 嫁人 小哥 帅哥 哥还 小伙"
)
"""Words of a question that may ask for a fact of the partner."""

LONGEST = 30
"""Characters that an answer may have; what is longer says more than the bare fact."""

_YOU = r"(?:你|您)(?:今年|现在|到底|平时|平常|人(?=在)|是|自己|究竟|这边|那边|,|，|\s)*"
_QUESTIONS: tuple[tuple[Fact, re.Pattern[str]], ...] = (
    ("age", re.compile(rf"{_YOU}(?:都)?(?:多大|几岁|贵庚|高寿|多少岁|什么岁数|啥岁数|年龄|岁数)(?!的)|{_YOU}(?:(?:哪一?|几几|几零|多少)年(?:出生|生)?的|属(?:什么|啥|哪个))")),
    ("gender", re.compile(rf"{_YOU}(?:男(?:的|生|孩)?(?:还是)?女(?:的|生|孩)?|女(?:的|生)?(?:还是)?男(?:的|生)?|性别|小?哥哥?还是小?姐姐?|帅哥还是美女|小伙还是姑娘)")),
    ("city", re.compile(
        rf"{_YOU}(?:的)?(?:老家)?(?:在|是)?(?:哪儿?|哪里|什么地方|啥地方)(?:儿)?(?:的|人|那边的)|{_YOU}(?:的)?(?:老家|家)(?:在|是)?(?:哪|什么地方|啥地方)"
        rf"|{_YOU}(?:住|定居|生活)(?:在)?(?:哪个(?:城市|省|市|地方)|哪儿?里?|什么地方)|{_YOU}(?:在|住|是)?哪个(?:城市|省|市)|(?:你|您)(?:那边|那儿|那里|那)是?哪|{_YOU}在(?:哪|哪里|哪儿|哪个城市)(?:上班|工作|生活|读书|上学)"
    )),
    ("occupation", re.compile(
        rf"{_YOU}(?:是)?(?:做|干)(?:什么|啥|哪行|嘛)(?:工作|的|行业|职业|活)|{_YOU}(?:什么|啥)(?:工作|职业)|{_YOU}(?:职业|工作)是(?:什么|啥)|{_YOU}(?:上|读|念)(?:几年级|大几|高几)"
    )),
    ("relationship", re.compile(
        rf"{_YOU}(?:有|找|处|谈)?(?:没有?)?(?:男朋友|女朋友|对象)(?:了)?(?:没|吗|么|不|[?？])|{_YOU}(?:结婚|成家|嫁人)(?:了)?(?:没|吗|么|[?？])|{_YOU}(?:单身|单着)(?:吗|么|[?？]|不|没)|{_YOU}有没有(?:对象|男朋友|女朋友)|{_YOU}结没结婚"
    )),
)  # fmt: skip

_START = r"^\s*(?:我(?:啊|呀)?[，,\s]*|嗯[，,\s]*|哦[，,\s]*|啊[，,\s]*)?"
_TRAIL = r"(?=$|[，,。.！!～~\s…]|啊|呀|啦|嘛|呗|哦|喽|嘞|咧|哩|捏|噻|哇|哟|呢|的|吧(?!台)|这边|人|那边|了|咯|哈)"
_NUMERAL = r"(?:\d{2}|[二三四五六七八九]十有[一二三四五六七八九]|[二三四五六七八九]?十[一二三四五六七八九]?|[二三四五六七八九]十?[一二三四五六七八九])"
_PLACES = "|".join(sorted([*known_places(), *REGIONS], key=len, reverse=True))
_WORK = "|".join(sorted(PLAIN, key=len, reverse=True))
_TRADE = "|".join(sorted(TRADES, key=len, reverse=True))
_AGE = re.compile(
    rf"{_START}((?:今年|虚岁|周岁|实岁|都|才|刚满|满|快|马上|就要|刚|,|\s)*)({_NUMERAL})(好几|多|几|出头|来)?(?:周?岁)?(?:的人)?{_TRAIL}"
)
_YEAR = re.compile(rf"{_START}((?:19|20)?\d\d|[零〇五六七八九一二三四][零〇一二三四五六七八九])(年|后)?{_TRAIL}")
_ANIMAL = re.compile(rf"{_START}(?:属|小|大)*([鼠牛虎兔龙蛇马羊猴鸡狗猪]){_TRAIL}(?!吧)")
_GENDER = re.compile(rf"{_START}(?:是|当然是|就是)?(男|女)(?:的|生|孩子?|士)?{_TRAIL}")
_CITY = re.compile(rf"{_START}(?:老家|家|人|就|也|是|在|住|我)*({_PLACES})(?:市|省)?{_TRAIL}(?!.{{0,3}}(?:出差|旅游|玩|开会))")
_ELSEWHERE = re.compile(rf"^不是?[，,啊呀\s]+(?:我)?(?:是|老家)?({_PLACES})(?:的|人){_TRAIL}")
_WORKER = re.compile(rf"{_START}(?:是|就|就是|一|个|一个|一名|普通|做|当|干|搞|的)*({_WORK})(?:{_TRAIL}|(?=一个|一枚|混|三班))")
_TRADESMAN = re.compile(rf"{_START}(?:是|就|就是|个|一个|的|给人|帮人)*({_TRADE})的?{_TRAIL}")
_AT_WORK = re.compile(rf"{_START}(?:就)?(在[^，,。！!？?\s]{{1,8}}(?:教书|(?:当|做)(?:{_WORK})))")
_OTHER_WORK = re.compile(rf"{_START}(还在上学|还在读书|还在念书|(?:上|读|念)?(?:大|高|研)[一二三四]|退休了)")
_NONE = re.compile(rf"{_START}(?:还|都|暂时|目前)?(?:没有?|单着|单身|没谈|没处|没找|没结)(?:呢|啊|呀|嘞|咧|哦|得|的|对象|婚)?(?=$|[，,。！!\s])")
_SOME = re.compile(rf"{_START}(?:早|已经|都)?(?:有|谈着|处着|有对象)(?:的|了|啊|呀|呢|啦)?(?=$|[，,。！!\s])")
_WED = re.compile(rf"{_START}(?:早|已经|都|当然)?(?:就)?(结了|结婚|成家|已婚|嫁了)(?:了|啊|呀|的|啦|都)?(?=$|[，,。！!\s])")
_PARTED = re.compile(rf"{_START}(?:早|已经|都|又|结了又)?离(?:了|婚了|异)(?=$|[，,。！!\s])")
_YES = re.compile(r"^(?:嗯?对(?:啊|呀|的|头|哦)?|是(?:啊|呀|的)|没错|可不(?:是)?(?:嘛|么)?|就是(?:啊|呀)?)(?=$|[，,。！!\s])")
_LIGHTLY = re.compile("哈哈|哈$|嘿|嘻|永远|笑|😂|🤣|🐶|才怪|个屁|像|装|梦")


_ASKED_OUT = re.compile(r"(?:了|的|来着|啊|呀|呢|吗|嘛|么|哇|哦|喔|嘞|啦|哈|吧|没|没有|不|年纪|年龄|岁数|岁|城市|地方|省|市|级|行|行业|职业|工作|活|人|这边|那边|儿|里|还是|女的|男的|女生|男生)*(?=$|[，,。！!？?\s～~…])")
"""The question ends here: 你多大, not 你多大鞋码."""
_OF_THEN = re.compile("当年|那年|那时|那会|时候|以前|之前|想|如果|要是|猜|几点")


def may_answer(text: str, asked: str, asks: bool = True) -> bool:
    """Whether a message is short enough, and the one before is put to its speaker; the cheap look before `answered`.

    `asks`: the question has a word of `TRIGGERS`; one that has not can only be owned up to or set right.
    """
    return len(text) <= LONGEST and ("你" in asked or "您" in asked) and (asks or text[:1] in "嗯对是没可就不")


def answered(text: str, asked: str) -> Iterator[tuple[Fact, str, int]]:
    """Each fact that a message answers a question of it by: the statement that the answer stands for, and how many
    characters of the message it takes."""
    if _LIGHTLY.search(text):
        return
    for fact, question in _QUESTIONS:
        found = question.search(asked)
        if found and _ASKED_OUT.match(asked, found.end()) and not _OF_THEN.search(asked) and (said := _statement(fact, found.group(), text)):
            yield fact, *said


    if re.search(r"你[^，,。\s]{0,8}(?:的|人)", asked) and (m := _ELSEWHERE.match(text)):
        yield "city", f"我是{m[1]}的", m.end()


def _statement(fact: Fact, question: str, text: str) -> tuple[str, int] | None:
    if fact == "age":
        return _of_age(question, text)
    if fact == "gender":
        return (f"我是{m[1]}的", m.end()) if (m := _GENDER.match(text)) else None
    if fact == "city":
        return (f"我是{m[1]}的", m.end()) if (m := _CITY.match(text)) else None
    if fact == "occupation":
        if m := _AT_WORK.match(text) or _OTHER_WORK.match(text):
            return f"我{m[1]}", m.end()
        if m := _TRADESMAN.match(text):
            return f"我{m[1]}的", m.end()
        return (f"我职业是{m[1]}", m.end()) if (m := _WORKER.match(text)) else None
    return _of_tie(question, text)


def _of_age(question: str, text: str) -> tuple[str, int] | None:
    if "属" in question:
        return (f"我属{m[1]}", m.end()) if (m := _ANIMAL.match(text)) else None
    if "年" in question and not re.search("今年|年[龄纪]", question):
        return (f"我{m[1]}{m[2] or '年'}{'' if m[2] == '后' else '的'}", m.end()) if (m := _YEAR.match(text)) else None
    if not (m := _AGE.match(text)):
        return None
    before, number, over = m.groups()
    if re.search("快|马上|就要", before):
        return f"我快{number}了", m.end()
    if over:
        return f"我{number}多了", m.end()
    return f"我{'虚岁' if '虚' in before else '今年'}{number}岁", m.end()


def _of_tie(question: str, text: str) -> tuple[str, int] | None:
    alone = "单" in question
    wed = bool(re.search("结|成家|嫁", question))
    if m := _PARTED.match(text):
        return "我离婚了", m.end()
    if wed and (m := _WED.match(text)):
        return "我结婚了", m.end()
    if not alone and (m := _NONE.match(text)):
        return "我还没结婚" if wed and "单" not in m.group() else "我没对象", m.end()
    if not alone and not wed and (m := _SOME.match(text)):
        return "我有对象了", m.end()
    if alone and (m := re.match(rf"{_START}(?:是|对|单身|单着)(?:啊|呀|的|呢)?(?=$|[，,。！!\s])", text)):
        return "我单身", m.end()
    return None


def affirmed(text: str, asked: str) -> tuple[str, int] | None:
    """What a plain yes owns up to (你是厦门的吧 - 对啊), said of 我, and the characters of the yes; None if it is none."""
    question = asked.strip()
    yes = _YES.match(text)
    if _OF_THEN.search(question) or not yes or len(question) > 16 or question.count("你") != 1 or re.search(r"[，,。！!\s我]", question) or _LIGHTLY.search(text + question):
        return None
    statement = re.sub("(?:的?吧|吗|么|对吧|是吧|没错吧)?[?？~～]*$", "", question.replace("你", "我"))
    return (statement + ("的" if question.rstrip("?？").endswith("的吧") else ""), yes.end()) if statement != question else None

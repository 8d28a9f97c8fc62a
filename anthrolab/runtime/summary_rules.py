"""The rules summariser: offline, deterministic, the same for every system. It quotes and does not understand.

A message is kept word for word where a rule sees a promise, a feeling, a fact or a question left open in it; the
rest is forgotten. Lists by hand: it misses what it has no words for, and a model summarises better.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from anthrolab.runtime.dialogue import Summary, SummaryKind
from anthrolab.runtime.history import Notes, Said

QUOTED_CHARS = 40
"""Characters of a message that are quoted."""

LOOKED_AT = 200
"""Characters of a message that the rules look at."""

_TIME = r"(?:周[一二三四五六日天末]|礼拜[一二三四五六天]|星期[一二三四五六日天]|[今明]天|后天|[今明]晚|明早|明儿|下周|下个?月|月底|年底|\d{1,2}[点号:：]|(?<![一二三四五六七八九十])[二两三四五六七八九十][点号]|十[一二][点号])"
_SELF = r"(?:我们|咱们|我|咱)(?![们妈爸家哥姐弟妹奶爷婆叔姨]|老公|老婆|媳妇|对象|儿子|女儿|闺女|同事|老板|朋友|室友|单位|公司)"
_TOWARD = r"(?:[给帮替陪请送接等还带叫喊]你(?![说讲])|(?:告诉|通知|联系|提醒|找)你|[来去到](?=你|接|送|找|拿|取|帮|陪|看|订|买|办|问|交|$|[ ，,。！!啊哈哦噢嘛])|到你|过来|过去|回来|回去|带|送|接|订|买|交|还|打给|打过|发给|发你|转给|转你|问问|报名)"
PROMISE = re.compile(
    r"说好了|说定了|一言为定|就这么定|答应你|包在我|交给我|我保证|我负责|我来(?=[订买拿做弄办问说开付出带搞]|吧|就行|$)|算我的|"
    rf"{_SELF}[^，。！？,.!?\s你他她]{{0,8}}[给帮替陪请送接等还带叫喊]你(?![说讲])|{_SELF}.{{0,4}}(?:告诉|通知|联系|提醒)你|"
    rf"{_SELF}.{{0,4}}{_TIME}.{{0,8}}{_TOWARD}|{_TIME}.{{0,4}}{_SELF}.{{0,8}}{_TOWARD}|{_TIME}.{{0,12}}(?:见|集合|碰头|老地方|不见不散)|"
    r"我[会去来](?:问|买|订|拿|取|办|说|打电话|联系|准备|交|看看)|[回晚]头我|晚点我|到时候我|记得(?:带|还|给|叫|来|去|打|买|提醒|回)"
)
PAST = re.compile(r"[昨前]天|昨晚|上周|上个?月|去年|刚刚?|才|从来|已经|以前|那时")
FEELING = re.compile(
    r"(?<![不没别])(?:难过|伤心|委屈|烦|气死|生气|上火|崩溃|焦虑|紧张|害怕|慌|怕得|想哭|哭了|心疼|心酸|失望|郁闷|憋屈|后悔|愧疚|内疚|"
    r"开心|高兴|激动|感动|松了口气|放心了|踏实|得意|舍不得|想你|孤单|绝望|麻了|服了|受不了|累)"
)
FACT = re.compile(
    r"\d{2,}|(?:\d{1,4}|[二两三四五六七八九十百千万半][十百千万]?)(?:点|号|月|岁|块|万|天|年|斤|公里|站|楼|床|小时|分钟|次|号线)|"
    r"(?:我|俺|咱|他|她)(?:妈|爸|家|老公|老婆|媳妇|对象|儿子|女儿|闺女|娃|公司|单位|学校|哥|姐|弟|妹|奶|爷|外婆|外公|老板|同事|室友|男朋友|女朋友)|"
    r"医院|住院|手术|检查|怀孕|离职|辞职|录取|考上|搬家|结婚|离婚|生日|过敏|忌口"
)
QUESTION = re.compile(r"[？?]\s*$|(?:吗|呢|没|不|咋样|咋办|怎么办|啥|什么|哪儿|哪里|几点|多少|咋整|么)\s*$")


@dataclass(frozen=True)
class RulesSummariser:
    """Needs no model; see the module's first lines for what it cannot do."""

    async def note(self, known: Summary | None, said: Sequence[Said]) -> Notes:
        """The messages worth quoting, each under one kind: a promise before a feeling before a fact.

        A question is open until the other one writes: in this part of the chat, or in the next (then it is settled).
        """
        commitments, emotions, facts = [], [], []
        for s in said:
            text = s.content[:LOOKED_AT]
            asks = QUESTION.search(text)
            if not asks and PROMISE.search(text) and not PAST.search(text):
                commitments.append(_quote(s))
            elif not asks and FEELING.search(text):
                emotions.append(_quote(s))
            elif not asks and FACT.search(text):
                facts.append(_quote(s))
        open_topics = [
            _quote(s) for i, s in enumerate(said)
            if QUESTION.search(s.content[:LOOKED_AT]) and all(later.name == s.name for later in said[i + 1 :])
        ]  # fmt: skip
        settled: frozenset[tuple[SummaryKind, int]] = frozenset(
            ("open_topics", i) for i, line in enumerate(known.open_topics if known else [])
            if any(not line.startswith(f"{s.name}（") for s in said)
        )  # fmt: skip
        return Notes(tuple(facts), tuple(emotions), tuple(commitments), tuple(open_topics), settled=settled)


def _quote(said: Said) -> str:
    content = " ".join(said.content[:LOOKED_AT].split())
    content = content if len(content) <= QUOTED_CHARS else content[: QUOTED_CHARS - 1] + "…"
    return f"{said.name}（{said.at:%H:%M}）{content}"

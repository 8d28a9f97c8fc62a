"""Rules about questions: whether a message asks, whether the person asks at all, and asks twice."""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Literal

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import is_filler, is_stock_question, letters, shown, similarity
from anthrolab.runtime.dialogue import Message
from anthrolab.runtime.text import normalise

Asks = Literal["yes", "perhaps", "no"]

_END = r"(?=[呀啊哇咯咧哈噻]?(?:[~～…。.!！?？,，\s]|$))"
_WH = (
    r"什么|啥|怎么|怎样|咋|为何|哪|谁|多[少久大远高长重宽深厚]|干[嘛吗甚]|凭嘛|何解|边[个度位]|点解|几时|乜|咩|么(?=[斯事]|东西)|"
    r"几(?:[点号个天楼岁斤多排分次回年月层路级位家块口件趟站成折]|钟|时)|嘛(?=[时事人地玩])|第几|[做弄搞]甚"
)
_WH_AT_ALL = re.compile(rf"{_WH}|甚(?!至)|几(?!乎)|嘛(?=[一-鿿])|多[贵难累冷热疼]")
_INDEFINITE = re.compile(
    rf"(?:没|没有|冇|不管|无论|管他|管它|随便|不晓得|不知道?|不清楚|说不清|不懂|忘了?|忘记|懒得管|不在乎|记不[得清]|不是|[说想看讲]不出|以为|[莫别]问)[^，,。!！?？]{{0,5}}(?:{_WH})|"
    rf"({_WH})[^，,。!！?？\s]{{0,6}}(?:\1|都|也|就|随你|我不管|我管不着|我不晓得|我不知道)|(?:好|十|前|这|那|过|没|头|后|老)几|几个(?:老|朋友|人都)|几[天年月次回]没|没[一-鿿]几|"
    r"[什怎]么的|啥的|谁知道|谁家?(?:没|还没|不)|谁叫|谁让|哪(?:敢|有|会|能|晓得|知道|想得?到|记得|顾得|轮得|用得)|哪里哪里|哪舍得|哪怕|怎么说呢|多少(?:有|也|会|带|吃|喝|给|留|算|懂|能)[^，,。]{0,2}[一点些]?|不怎么|不咋|差不多少|有[什啥]么?好|"
    r"(?<![在去住到从往是放停买])哪(?=[\s，,。!！~]|$)"
)
_EITHER = re.compile(r"([一-鿿]{1,2})[不没冇勿唔弗]\1|有冇|([一-鿿])[一-鿿]{1,2}不\2|可不可以|[一-鿿]没得" + _END)
_NO_EITHER = re.compile(r"[管随看][你他她它]?[一-鿿]{0,3}([一-鿿])不\1|([一-鿿])不\2[^，,。\s]{0,3}[都也]|不知")
_IDIOM = re.compile(r"不错不错|动不动|时不时|爱([一-鿿])不\1|一[年天次]不如|不[一-鿿]不[一-鿿]")
_MARKED = re.compile(
    rf"[?？]|吗{_END}|(?<![什这那怎])(?<!多)么{_END}|[这那]么多么{_END}|[伐咩]{_END}|"
    rf"(?:[了过到着好完见掉去来]|[一-鿿]{{2}}|(?:^|[\s，,。])[一-鿿])(?<![都也还就再可倒从真又])(?:没|冇|没有|未){_END}|"
    rf"[一-鿿](?<![不可偏就我要也都才])不{_END}|[是你][^，,。!！\s]{{1,10}}还是(?!老样)[^，,。!！\s]"
)
_NONE_LEFT = re.compile(
    rf"(?:[都也就再可倒]|什么|啥|一点|从来|根本|完全)[^，,。\s]{{0,4}}(?:没|冇|没有|未){_END}|[我俺][^，,。\s]{{0,1}}(?:没|没有){_END}|"
    rf"(?:^|[\s，,。])(?:(?:没有?|还没有?|冇)+|可不|那不|倒不){_END}"
)
_PERHAPS = re.compile(
    rf"(?:[你您他她侬它对是有还能会了过]|不会|不是|没)[^，,。]*吧{_END}|(?<!着)呢{_END}|给(?=[是还有能会要在够好])|^[你您侬](?:们|俩)?[^我，,。\s]{{0,2}}(?:吃|到|到家|睡|下班|吵架|买|见着|忙完|起床|收到|结婚|离婚|分手|考完|回家|出院|好)了$|^给(?![我你他她它您孩妈爸老钱])|[哇啵嘛咯嗦喃未]{_END}|没得{_END}|没有?{_END}"
)
_NOT_PERHAPS = re.compile(
    rf"(?:就|先|算了|算是|再说|再讲|到时候|可能|大概)[^，,。]{{0,4}}吧{_END}|^还?(?:[行好]|可以)吧{_END}|^[我俺咱][^你您]*[吧嘛呢]{_END}|^我这?不是[^，,。]*嘛{_END}|^(?:我|俺|还|才|正|在|可|刚|嗯|对)[^，,。]*呢{_END}|[没还][^，,。\s]{{0,3}}呢{_END}|"
    rf"[一-鿿](?<!你)(?:好|对|行|是|得)[嘛咯]{_END}|[我都也还]没有?{_END}|^(?:没有?)+{_END}"
)
_SIGNS = re.compile(r"\[[一-鿿A-Za-z]{1,4}\]")


@lru_cache(maxsize=65536)
def asking(text: str) -> Asks:
    """Whether a message asks something: surely, perhaps (a particle that also ends statements, an indefinite 什么), or
    surely not. Dialect forms count: 伐, 冇, 咩, 给是, 没得."""
    text = "".join(c for c in _SIGNS.sub("", text) if unicodedata.category(c) != "So").strip()
    text = _IDIOM.sub("", text)
    marked = _MARKED.search(_NONE_LEFT.sub("", text))
    if "?" in text or "？" in text or marked:
        return "yes"
    if _EITHER.search(text):
        return "perhaps" if _NO_EITHER.search(text) else "yes"
    if _WH_AT_ALL.search(text):
        rest = _INDEFINITE.sub("", text)
        if re.search(_WH, rest):
            return "yes"
        return "perhaps" if _WH_AT_ALL.search(rest) else "no"
    return "perhaps" if _PERHAPS.search(text) and not _NOT_PERHAPS.search(text) else "no"


def asks_a_question(scene: Scene) -> Finding:
    """Passes on a question of substance; fails if four turns or more surely ask nothing and the rest are stock
    questions (咋了, 真的假的). An own opener that asks leaves it undecided: it is given, not the person's doing."""
    asked = [m for m in scene.own if not is_stock_question(m.content) and asking(m.content) != "no"]
    if any(asking(m.content) == "yes" and len(normalise(m.content)) >= 4 for m in asked):
        return PASSED
    silent = [m for m in scene.own if not is_stock_question(m.content)]
    opened = any(asking(m.content) != "no" for m in scene.dialogue.messages if m.opener and m not in scene.partner)
    if len(silent) >= 4 and not asked and not opened:
        return failed(f"no question in {len(scene.own)} messages")
    return UNDECIDED


_ASIDE = re.compile(
    r"对了|话说|[诶欸哎]|所以|一起|到底|最后|后来|现在|这会儿|今天|今年|记得|我问一句|一般|打算|平时|具体|牌子|说起来|急死我了?|结果|报告|"
    r"什么时候|啥时候|哪时候|哪天|哪里|哪儿|在哪|哪条|哪个|哪趟|第几|几[点号分时楼岁排]|多少钱?|多[大高重长远久]|怎么样?|咋样?|什么|啥|是不是|有没有|位置|地方|家的|花了|买的"
)
_SAME = {c: group[0] for group in ("做干弄搞写", "睡眯觉", "拿出取领收", "找寻", "痛疼", "说讲告诉", "岁纪数", "退消", "拔掉") for c in group}
_SLIGHT = set("好疼痛肿活缓定拿出完成能吃用买坐看听做干带住打走忙开") | set("新旧回真快急难")
_STOP = set(
    "的了是我你他她它您们在不没有就都也还这那哪吗呢吧啊呀哦嗯么个一去来要会想和跟给把被让很太又再才只得着过到从对为什怎咋啥谁"
    "几多少点上下里外前后时候明昨号些样自己人家可以知道应该觉边儿咯嘛伐侬俺问句最终趟排天爬阿俩"
)
_TASTE = re.compile(r"好[看吃听玩用喝]|难[看吃听]|看好")
_TIMES = re.compile(r"大后天|明天|后天|昨天|前天|周[一二三四五六日天末]|礼拜[一二三四五六日天]|星期[一二三四五六日天]|早上|上午|中午|下午|晚上|第[一二三四五六七八九十\d]+")
_DAYTIMES = frozenset({"早上", "上午", "中午", "下午", "晚上"})
_KIN = re.compile(r"(?<!阿)[妈爸爷奶哥姐弟妹姑姨舅]|儿子|女儿|闺女|孩子|老公|老婆|对象|外甥|[猫狗]")
_TYPES: tuple[tuple[str, str], ...] = (
    ("when", r"什么时候|啥时候|哪时候|几时|几[点号]|哪天|哪一天|嘛时候"),
    ("where", r"在?哪(?:里|儿|条|边|个区|个门|$)|哪买|住哪|地方|位置|边度|几楼"),
    ("price", r"多少钱|花了?(?:多少|几多)|什么价|多少$|多少[?？]"),
    ("count", r"几|多[少大高重长远久]"),
    ("who", r"谁|边个|哪个人"),
    ("state", r"怎么样|咋样|怎样|如何|好点|好些"),
    ("how", r"怎么|咋"),
    ("what", r"什么|啥|哪|甚|咩|乜"),
)
_OPEN = re.compile(
    r"^(?:还没|没呢|没有?[啊呀]?$|没 ?.{0,4}$|不知道|不晓得|不清楚|看情况|再说|等|你猜|差不多|你管|问这|待会|回头|到时候|说不准|没定|还不|还早|你问|不告诉|随便|保密)|等下|等会"
)


@dataclass(frozen=True)
class _Question:
    """A question by what it asks about: kind of answer and its word, content characters (synonyms made one; slight
    ones, such as 好 or 吃, apart), times, kin."""

    text: str
    kind: str
    word: str
    content: frozenset[str]
    slight: frozenset[str]
    times: frozenset[str]
    kin: frozenset[str]


@lru_cache(maxsize=65536)
def _question(text: str) -> _Question:
    kind, word = next(((name, m.group()) for name, pattern in _TYPES if (m := re.search(pattern, text))), ("whether", ""))
    tastes = frozenset(_TASTE.findall(text))
    bare = normalise(_ASIDE.sub(" ", _TIMES.sub(" ", _TASTE.sub(" ", text))))
    found = frozenset(_SAME.get(c, c) for c in bare if "一" <= c <= "鿿" and c not in _STOP)
    slight = found & _SLIGHT
    return _Question(text, kind, word, (found - slight) | tastes, slight, frozenset(_TIMES.findall(text)), frozenset(_KIN.findall(text)))


def _again(first: _Question, again: _Question, between: list[Message], asker: str) -> bool:
    """True if the second question was answered when the first was asked; word for word, any word of the partner that
    is no put-off will do for an answer."""
    theirs = [m.content.strip() for m in between if m.speaker != asker]
    if not theirs or _OPEN.search(theirs[0]) or _with_news(again, between):
        return False
    if similarity(first.text, again.text) >= 0.8 and "到哪" not in again.text and min(len(normalise(first.text)), len(normalise(again.text))) >= 5:
        return first.times == again.times
    return _states(theirs) and _asks_the_same(first, again, len(between))


def _asks_the_same(first: _Question, again: _Question, apart: int) -> bool:
    whether = {"whether", "state"}
    if first.kind != again.kind and not (first.kind in whether and again.kind in whether):
        return False
    if (again.times - _DAYTIMES) - first.times or (again.kind == "price" and ("要" in again.text) != ("要" in first.text)):
        return False
    if (first.times and again.times and not first.times & again.times) or (first.kin and again.kin and not first.kin & again.kin):
        return False
    of_others = [bool(re.search("[他她]", q.text)) for q in (first, again)]
    if (of_others[1] and not of_others[0] and not first.kin and "你" in first.text) or (of_others[0] and not of_others[1] and "你" not in first.text):
        return False
    if first.kin and not again.kin and "你" in again.text and "你" not in first.text and not of_others[1]:
        return False
    shared, new = first.content & again.content, again.content - first.content
    if again.content:
        few = len(shared) >= 2 and 3 * len(new) <= len(again.content) and not _part_of_a_word(new, shared, again.text)
        return bool(shared) and (not new or few)
    if again.kind in whether or "到哪" in again.text:
        return False
    meant = bool(first.kin) and of_others[1] and bool(first.slight & again.slight)  # 你表弟几号回来, 他回来是哪天
    bare = not first.content and again.slight <= first.slight and again.times == first.times and apart <= 5 and len(normalise(again.text)) >= 4
    return meant or (bare and (again.kind != "count" or again.word[:2] == first.word[:2]))


def _part_of_a_word(new: frozenset[str], shared: frozenset[str], text: str) -> bool:
    """True if a new character stands next to a shared one: 血压 beside 血糖 is another matter."""
    return any((a in shared and b in new) or (a in new and b in shared) for a, b in pairwise(text))


def no_repeated_question(scene: Scene) -> Finding:
    """Fails if what a question asks about (its content words, and whether it wants a time, a place, a number ...) is
    asked again after the partner answered, or any but the shortest question is put three times; passes if no two
    questions share a content word, or want the same time, place, person or number; else undecided."""
    every = Counter(normalise(m.content) for m in scene.own if asking(m.content) == "yes")
    for text, times in every.items():
        if times >= 3 and len(text) >= 3 and not is_stock_question(text):
            return failed(f"asks {shown(text)} {times} times")
    messages = scene.dialogue.messages
    asked = [
        (at, m) for at, m in enumerate(messages)
        if m.speaker == scene.dialogue.evaluated_role and asking(m.content) != "no" and not is_stock_question(m.content)
    ]  # fmt: skip
    names = {name[-2:] for p in scene.dialogue.speakers.values() for name in (p.name,)}
    apart = True
    for (early, before), (late, message) in combinations(asked, 2):
        first, again = (_question(_without(names, m.content)) for m in (before, message))
        if asking(message.content) == asking(before.content) == "yes" and _again(first, again, messages[early + 1 : late], message.speaker):
            return failed(f"asks {shown(message.content)} after {shown(before.content)}")
        near = (first.content | first.slight) & (again.content | again.slight) or (first.kind == again.kind and first.kind not in ("whether", "state"))
        apart = apart and not near
    return PASSED if scene.own and apart else UNDECIDED


def _without(names: set[str], text: str) -> str:
    for name in names:
        text = text.replace(name, " ")
    return text


def _states(theirs: list[str]) -> bool:
    """True if the partner stated anything."""
    clauses = [c for t in theirs for c in re.split(r"(?<=[?？。!！，,])|\s+", t) if normalise(c)]
    return any(asking(c) == "no" and not (is_filler(c) and letters(c) > 1) for c in clauses)


def _with_news(again: _Question, between: list[Message]) -> bool:
    """True if the question takes up what the partner said in between (打雷了？会不会下雨啊): it is another one then."""
    clauses = [normalise(c) for c in re.split(r"[\s，,。?？!！]+", again.text)][:-1]
    said = [normalise(m.content) for m in between]
    echoed = any(len(t) >= 2 and normalise(again.text).startswith(t) for t in said)
    return echoed or any(len(c) >= 2 and any(c in t for t in said) for c in clauses if asking(c) == "no")

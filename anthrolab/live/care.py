"""Care by rules: words of self-harm, abuse or a medical emergency in one chat message. Offline, and no model is asked.

Recall first: a pause for nothing costs a click. What people say outright is found; of what they only hint at (a farewell, a
plan without its name) rules miss much, in fresh phrases up to half and more (figures: tests/data/care.yaml). So this is a
courtesy and no safety net, and nothing may rest on its silence.

Blanks, signs, emoji, wide forms and traditional characters make no difference in Chinese, so rules cannot lean on where a
clause ends; frames and idioms say what the words mean instead. They do so from close by only: a cat, a laugh or a
game elsewhere in a message explains nothing away, and what 我 is said of is explained only by what touches it.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from anthrolab.live.care_abuse import ABUSE, ABUSE_ENGLISH
from anthrolab.live.care_emergency import EMERGENCY, EMERGENCY_ENGLISH
from anthrolab.live.care_self_harm import SELF_HARM, SELF_HARM_ENGLISH
from anthrolab.live.care_words import EARNEST, ENGLISH_IDIOMS, IDIOMS, KIN, OWN_BEFORE, OWN_FIRST, STORY, Rule

Concern = Literal["self_harm", "abuse", "emergency"]

_TABLES: tuple[tuple[Concern, Sequence[Rule], Sequence[Rule]], ...] = (
    ("emergency", EMERGENCY, EMERGENCY_ENGLISH),
    ("self_harm", SELF_HARM, SELF_HARM_ENGLISH),
    ("abuse", ABUSE, ABUSE_ENGLISH),
)
"""The most urgent first: whoever swallowed the pills needs 120 before anything else."""

_PLAIN = str.maketrans(
    "殺輕樓藥遺書說話媽爺婦兒們師學鎖門關頭髮發強姦脅騷擾體動過還這沒無機電觸燒煙腫嚨氣臟暈誤顆腦風癱醫傷車禍農劑蟲斷邊臉覺應來個難結絕離開給經問著"
    "撐義讓劃許證護罵腳壓悶窩麼從裡裏對與為嗎點鐘錢買壺遊戲劇聞報熱養聽見產癇驚陣懷時後雙臺災帶終願別誰親歲條掛橋懸虐棄負變視頻傳慘塊豬貓歡煩嚇餓凍"
    "勸嬰寶貝鄰闆導領墜樣東幾張單盡滿長屍靈獄濕決沖顫綁繩聲壞嘔雞蝦場轉軟線網衛燙潑掃貼圖蘋歐塗縫淺腸膠彈頸噁瘋擔記認識蘇樂準備計畫運遠處現實",
    "杀轻楼药遗书说话妈爷妇儿们师学锁门关头发发强奸胁骚扰体动过还这没无机电触烧烟肿咙气脏晕误颗脑风瘫医伤车祸农剂虫断边脸觉应来个难结绝离开给经问着"
    "撑义让划许证护骂脚压闷窝么从里里对与为吗点钟钱买壶游戏剧闻报热养听见产痫惊阵怀时后双台灾带终愿别谁亲岁条挂桥悬虐弃负变视频传惨块猪猫欢烦吓饿冻"
    "劝婴宝贝邻板导领坠样东几张单尽满长尸灵狱湿决冲颤绑绳声坏呕鸡虾场转软线网卫烫泼扫贴图苹欧涂缝浅肠胶弹颈恶疯担记认识苏乐准备计画运远处现实",
)
_ALIKE = str.maketrans("痛俺咱妳您侬伊佢唔勿冇咗嘅係俾畀喫鲨鯊亖", "疼我我你你你他他不不没了的是被被吃杀杀死")


@dataclass(frozen=True)
class Care:
    """A message that needs care."""

    concern: Concern
    words: str
    """What matched, as it stands in the message."""


def care(text: str) -> Care | None:
    """The most urgent concern of one chat message in Chinese or English, or None."""
    chinese, english = folded(text), folded(text, apart=True)
    read = _Read(chinese.text, IDIOMS, _CHINESE), _Read(english.text, ENGLISH_IDIOMS, _ENGLISH)
    for concern, *tables in _TABLES:
        for source, message, rules in zip((chinese, english), read, tables, strict=True):
            if span := message.first(rules):
                return Care(concern, source.original(*span))
    return None


@dataclass(frozen=True)
class Folded:
    """A message as rules read it, and where each of its characters stands in the original."""

    source: str
    text: str
    places: tuple[int, ...]

    def original(self, start: int, end: int) -> str:
        """The part of the message from the folded character `start` to the one before `end`."""
        return self.source[self.places[start] : self.places[end - 1] + 1]


def folded(text: str, apart: bool = False) -> Folded:
    """Letters and digits only, in their plain forms; `apart` leaves one blank between words, as English needs."""
    kept: list[str] = []
    places: list[int] = []
    for place, raw in enumerate(text):
        for char in raw if raw.isascii() else unicodedata.normalize("NFKC", raw):
            if char.isalnum():
                letters = char.lower()
            elif apart and char not in "'’" and kept and kept[-1] != " ":
                letters = " "
            else:
                continue
            kept.extend(letters)
            places.extend([place] * len(letters))
    return Folded(text, "".join(kept).translate(_PLAIN).translate(_ALIKE), tuple(places))


@dataclass(frozen=True)
class _Reach:
    """How near a word must stand to explain a match away, in folded characters. Farther off it is about something else."""

    before: int
    after: int
    story: int
    """How far before a match the frame of a story still holds, and half as far after it. 0: no frame is looked for."""


_CHINESE, _ENGLISH = _Reach(before=16, after=8, story=30), _Reach(before=40, after=24, story=0)


class _Read:
    """A folded message, and the same with its idioms blanked out: rules read that one, what excuses them the whole."""

    def __init__(self, text: str, idioms: Sequence[str], reach: _Reach) -> None:
        self.whole = text
        self.plain = _compiled("|".join(idioms)).sub(lambda m: "·" * len(m.group()), text)
        self.reach = reach

    def first(self, rules: Sequence[Rule]) -> tuple[int, int] | None:
        """Where the first rule that counts stands."""
        for rule in rules:
            match = _compiled(rule.says).search(self.plain)
            while match:
                start, end = match.span()
                if not (self._told(start, end) or self._excused(rule, start, end)):
                    return start, end
                match = _compiled(rule.says).search(self.plain, start + 1)  # an excused match may hold a plain one
        return None

    def _told(self, start: int, end: int) -> bool:
        """Whether a story, the news or a game frames the match, and 我 stands neither in it nor right before."""
        far = self.reach.story
        if not far or "我" in self.plain[max(0, start - 4) : end]:
            return False
        return _compiled(STORY).search(self.whole[max(0, start - far) : end + far // 2]) is not None

    def _excused(self, rule: Rule, start: int, end: int) -> bool:
        """Whether words close by explain the match away. What 我 is said of is plain: only a cause that touches it does."""
        before = self.whole[max(0, start - self.reach.before) : start]
        said, after = self.whole[start:end], self.whole[end : end + self.reach.after]
        if _compiled(EARNEST).search(before + said + after):
            return False
        own = _compiled(OWN_BEFORE).search(before)
        if own or _compiled(OWN_FIRST).match(said):
            ahead = before[: own.start()] if own else before
            touching = rule.beside if _compiled(KIN).match(said) else _either(rule)  # 打游戏 我爸打我: no game of his
            return _finds(_either(rule), said) or _finds(touching and f"(?:{touching})[得到的了让]?$", ahead)
        return _finds(rule.unless, before + said) or _finds(rule.beside, before + said + after)


def _either(rule: Rule) -> str:
    return "|".join(filter(None, (rule.unless, rule.beside)))


def _finds(pattern: str, text: str) -> bool:
    """Whether the pattern stands in the text; no pattern stands nowhere."""
    return pattern != "" and _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)

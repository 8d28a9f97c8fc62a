"""The rule about the time of day: greetings, stated hours, light, sun and meals against the clock."""

import re

from anthrolab.judging.rules.habits import chinese_number
from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import shown
from anthrolab.runtime.text import normalise

Hours = tuple[float, float]
"""From, up to; a span over midnight ends above 24."""

_GREETINGS: dict[str, Hours] = {"早上好": (4, 16), "早安": (4, 16), "上午好": (5, 13), "中午好": (10, 15), "下午好": (11, 20), "晚上好": (16, 28)}
_AFTER_GREETING = re.compile(r"(?:$|[呀啊哦呐嘛吖,，!！~～。\s\[]|早安|(?:各位|大家|亲|姐|哥|叔|姨|老师|老板|[一-鿿]{1,2}(?:姐|哥|叔|姨|老师|总))(?:$|[,，!！~～\s]))")
_PARTS: dict[str, Hours] = {
    "凌晨": (0, 6), "清早": (4, 10), "清晨": (4, 9), "早上": (4, 11), "早晨": (4, 11), "上午": (6, 12.5), "中午": (10.5, 14.5),
    "下午": (12, 19), "傍晚": (16, 20), "晚上": (17, 28), "夜里": (20, 29), "半夜": (22, 29), "后半夜": (24, 29), "早": (4, 11), "晚": (17, 28),
}  # fmt: skip
_PART = "凌晨|清早|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里|后半夜|半夜"
_NUMBER = r"[0-9]{1,2}|[一二两三四五六七八九十]{1,3}"
_STATED = re.compile(rf"(现在|这会儿|这|都)?(?:都|已经|才|快|是|就|也)*({_PART})?(?:都|快)?({_NUMBER})点(半|多|钟)?([了过来吧]|出头)?")
_NOW_PART = re.compile(
    rf"(?:现在|这会儿|这都|这|都)(?:都|已经|才|快|是|还)*({_PART})(?:[了呢吧，,\s]|$)|^({_PART})了都|(?:^|[，,。\s这都你])大(清早|早上|晚上|中午|下午|上午)的|"
    r"(?:^|[，,。\s这都你])(深更半夜|大半夜|三更半夜)的?|(?:^|[，,。\s这])一(?:大)?(早)上?的|(?:^|[，,。\s这都你])大(白天)的"
)
_ELSEWHEN = re.compile(
    r"昨|前天|明天|明早|明晚|后天|大后天|那天|那晚|那会儿|那时|当时|上次|上回|上[周礼]|下次|(?<!等)下回|下[周礼]|以前|去年|前年|小时候|每天|天天|总是|老是|经常|"
    r"国外|时差|美国|英国|欧洲|加拿大|澳洲|人家那|那边|那头|他|她|它|说好|约好|等到?[天明]|再说|早就|打来|中秋|十五|周末|国庆|过年|睡多|刚才|要是|如果|万一|梦[见里到]|值夜班|夜班|倒班|上夜|(?<!大)白天|早上.{0,6}到现在|老了|以后|将来"
)
_LIGHT: tuple[tuple[str, Hours], ...] = (
    (r"太阳(?:好|真|这么|那么|太|正|很|老)?(?:大|毒|晒|辣|刺眼|照)|大太阳|晒(?:着)?太阳|太阳(?:都)?(?:照|晒)(?:着)?屁股|太阳(?:正|还)?(?:在|高|当头)|日头(?:好|真|正|太|毒)", (5, 20)),
    (r"(?<!到)天(?:刚|才|都还没|还没|都没|还冇|没)?(?:蒙蒙|麻麻|刚)?亮(?:了|着|呢|，|\s|$)|天刚?(?:蒙蒙|麻麻)亮|天都?还没亮|天刚亮|天才亮", (3, 8.5)),
    (r"天(?:都|已经|早|全|彻底|又)*黑(?:了|透|得|下来)|天擦黑|天刚(?:擦)?黑|刚擦黑|黑灯瞎火", (16.5, 30)),
    (r"月亮(?:好|真|这么|那么|太|正|又|都出来|出来|升|挂)|星星(?:好|真|这么|那么|太|都出来)", (17, 30)),
)
_NOT_NOW = re.compile(r"就走|之前|才能|补钙|出来的时候|亮了?没|[黑亮圆大]吗|就出门|[黑亮]了(?:再|就)|等")
_MEALS: dict[str, Hours] = {"早饭|早点|早餐|早茶": (4, 12.5), "中饭|午饭|午餐|中午饭": (10, 17), "晚饭|晚餐|夜饭": (15, 25)}
_EATING = re.compile(
    r"正在?[吃做烧煮]|(?:在|这会儿|等下|等会儿?|马上|这就|快)[^，,。]{0,4}(?:吃|做|烧|煮|买|弄|热)[^，,。昨明]{0,6}?$|(?<![不人])在(?:吃|做|煮|热|烧|弄)(?=早|午|中|晚|夜)|快去吃|去吃|在锅里|才开|刚(?:起床|起来|醒)|刚吃(?:完|过|好)"
)
_NAP = re.compile(r"(?:在|正)?(?:睡)?(?:午休|午觉|午睡)呢")


def greeting_fits_clock(scene: Scene) -> Finding:
    """Fails if a greeting, a 晚安, a stated hour or part of the day (现在都九点了, 大半夜的), daylight, sun, moon or a
    meal spoken of as now is far from the clock; passes if there is a greeting or a stated hour and all fit. What is
    of another time or another place (昨天, 明天, 那边, 他 ...) says nothing."""
    fits = False
    for message in scene.own:
        hour = message.at.hour + message.at.minute / 60
        for agrees in (_greeting(message.content, hour), _hour(message.content, hour), _around(message.content, hour)):
            if agrees is False:
                return failed(f"{shown(message.content)} at {message.at:%H:%M}")
            fits = fits or bool(agrees)
    return PASSED if fits else UNDECIDED


def _within(hour: float, span: Hours) -> bool:
    return span[0] <= hour < span[1] or span[0] <= hour + 24 < span[1]


def _greeting(text: str, hour: float) -> bool | None:
    core = normalise(text)
    for greeting, span in _GREETINGS.items():
        if core.startswith(greeting) and _AFTER_GREETING.match(text.strip()[len(greeting) :]):
            if _ELSEWHEN.search(text):
                return None
            return _within(hour, span)
    return not 7 <= hour < 18 if core.startswith("晚安") and len(core) <= 8 else None


def _hour(text: str, hour: float) -> bool | None:
    """A stated hour; None if none is stated as now."""
    if _ELSEWHEN.search(text):
        return None
    for lead, part, number, half, end in _STATED.findall(text):
        if not (lead and end) and not (lead in ("现在", "这会儿") and (part or re.search(rf"{lead}[才都已快]", text))):
            continue
        stated = chinese_number(number) + (0.5 if half == "半" else 0)
        if part and not _within(hour, (_PARTS[part][0] - 1.5, _PARTS[part][1] + 1.5)):
            return False
        apart = abs(stated - hour) % 12
        return min(apart, 12 - apart) <= 1.5
    return None


def _around(text: str, hour: float) -> bool | None:
    """False for a part of the day, light or a meal that cannot be now; None otherwise."""
    if _ELSEWHEN.search(text):
        return None
    for groups in _NOW_PART.findall(text):
        part = next(g for g in groups if g)
        span = (5.0, 19.5) if part == "白天" else (21.5, 30.0) if "半夜" in part and part != "后半夜" else _PARTS[part]
        if not _within(hour, (span[0] - 1, span[1] + 1)) and not re.search(r"叫|敲|把我吓", text):
            return False
    for pattern, span in _LIGHT:
        if re.search(pattern, text) and not _within(hour, span) and not _NOT_NOW.search(text) and "今天" not in text:
            return False
    for names, span in _MEALS.items():
        if re.search(names, text) and _EATING.search(text) and not _within(hour, span) and not re.search(r"忙到|没顾上|早消化|到现在|一天没", text):
            return False
    return False if _NAP.search(text) and not _within(hour, (11, 17)) and "那会儿" not in text else None

"""First-person places: 我在上海上班, 我住北京, 我是上海人; not a trip (我在上海出差, 我到北京了) or the past."""

import re
from functools import lru_cache

from anthrolab.judging.l0.facts.places import REGIONS, known_places, may_be_the_same
from anthrolab.judging.l0.facts.speaker import claims_nothing
from anthrolab.judging.l0.framing import PAST, sentence_before

_DRIFTERS = {"北漂": "北京", "沪漂": "上海", "深漂": "深圳", "广漂": "广州", "杭漂": "杭州", "港漂": "香港"}
"""Names for living in a big city far from home."""


def triggers() -> str:
    """All known places."""
    return " ".join([*known_places(), *REGIONS, *_DRIFTERS])


_NOT_THE_PLACE = (
    r"(?!东?西?南?北?中?路|街|大道|大学|大街|理工|师范|交大|财经|银行|证券|饭店|宾馆|酒店|民宿|烤鸭|大厦|广场|花园|小区|菜馆?|面馆|拉面|汽车|"
    r"大众|现代|客户|项目|时间|爱情|话|女人|户口|虹桥|机场|南站|西站|北站|站|有套|的?朋友|那边的?项目)"
)
_ADVERBS = r"(?:现在|目前|如今|人|就|一直|也|都|还|其实|平时|今年|可|已经|长期|常年|这边|自己|从小|打小|自小|这辈子|一辈子|昨晚|昨天|今天|今早|家|,|，|\s){0,6}"
_MANY_YEARS = r"(?:(?:都|已经|有|快|也|了|整整|\s){0,6}(?:(?:大半|半|一|小半)辈子|(?:[1-9]\d|[二三四五六七八]?十[一二三四五六七八九]?)(?:多|来|几)?年(?!前|没|的时)|(?:\d|[两三四五六七八九好几]{1,2})(?:多)?年(?:多)?了(?!才|就)))"
"""So many years, or years up to now, that one lives there: not 在上海待了三年, which is over."""
_HERE_AND_NOW = r"(?=下[雨雪]|下大[雨雪]|刮风|刮大风|停[水电气]|热得|冷得|降温|管|叫|喊|兴|话|今天|现在|这两天|这几天|冬天|夏天|早上|晚上|老家|这地|这块|这旮|这嘎|这里|这儿|本地|天气|乡下)"
_END = r"(?=$|[，,。.！!；;\s~…]|啊|呀|啦|呢|哦|嘛|哈|这边|的$|的[，,。！!\s])"
_WORK = (
    r"(?:上班|工作(?!室|日)|打工|定居|生活|安家|落户|买了?房|读书(?=$|[，,。\s呢啊])|上学(?=$|[，,。\s呢啊])|上大学(?=$|[，,。\s呢啊])|读研(?=$|[，,。\s呢啊])|读博(?=$|[，,。\s呢啊])|念书(?=$|[，,。\s呢啊])|租房|教书|开店|做生意|"
    r"带娃|当[老医护律警]|住(?!院|了?[两几一]晚|酒店|宾馆|民宿)|待了\d|北漂|漂着|混|长大|土生土长)"
)


@lru_cache(maxsize=1)
def _patterns() -> tuple[re.Pattern[str], ...]:
    names = sorted([*known_places(), *REGIONS], key=len, reverse=True)
    place = rf"({'|'.join(names)})(?:市|省|县)?{_NOT_THE_PLACE}"
    return (
        re.compile(rf"我{_ADVERBS}在{place}[^，,。！!？?\s]{{0,6}}?(?:{_WORK})(?!的(?:时候|那|朋友|同学|表|堂|哥|姐|弟|妹|叔|姨|时)|过|那|时)"),
        re.compile(rf"我(?:家)?{_ADVERBS}住(?:在)?{place}[^，,。！!？?\s了过那时的酒宾民院店]{{0,6}}{_END}"),
        re.compile(rf"我(?:们)?(?:是|就是|也是|可是|其实是|毕竟是|本来就是|一个|是个|这个|是土生土长的?|土生土长的?|是地道的?|是正宗的?|,|\s){{0,6}}{place}(?:本地|土著|当地)?(?:人|土著|妹子|姑娘|小伙|爷们|女孩|男孩|丫头|汉子)(?!家的)"),
        re.compile(rf"(?:我|我家)(?:就)?是{place}的{_END}|我{place}的(?=$|[，,。！!\s啊])"),
        re.compile(rf"我(?:的)?(?:老家|家)(?:就)?(?:在|是)?{place}(?:的|下面的?|农村|乡下|市区|郊区|这边|那边|人)?{_END}"),
        re.compile(rf"我(?:从小)?(?:就)?(?:在)?{place}(?:土生土长|长大)"),
        re.compile(rf"我们{place}(?:人(?!家|民)|这边|这里|这儿|本地|当地)(?!的?(?:客户|同事|朋友|分公司))|我们?{place}(?:这边|这里|这儿|本地|[那这](?:旮|嘎|疙|块儿|边儿|地方|地儿))"),
        re.compile(rf"我们{place}{_HERE_AND_NOW}"),
        re.compile(rf"我(?:们)?(?:这边|这里|这儿|这)(?:是|在|就是)?{place}(?:这边)?{_END}"),
        re.compile(rf"我(?:就|在|住|一直|是|都|家|祖祖辈辈|世世代代|\s){{0,6}}在?{place}(?:住|待|呆|生活|活|过|混|漂|干|工作|上班|打工|开店)?{_MANY_YEARS}|我(?:就|都|一直)?在{place}上了(?:\d+|[一两二三四五六七八九十几好多]+)(?:多)?年(?:的)?班了"),
        re.compile(rf"我{_ADVERBS}?(?:出)?生在{place}(?:长在)?|我是?在?{place}(?:出生|生的)"),
        re.compile(rf"我(?:每年|过年|今年|国庆|春节|清明|中秋|都|要|就|得|才|刚|从|\s){{0,6}}回{place}老家(?!看)"),
        re.compile(rf"我(?:是)?从{place}(?:来|过来|出来)的(?=$|[，,。！!\s])|我(?:现居|常住|定居){place}"),
        re.compile(rf"我坐标{place}{_END}"),
        re.compile(rf"我(?:都|也)?(?:来|搬来|搬到|嫁到|嫁来|到|在){place}(?:都|已经|有|快|也|住|待|工作){{0,6}}(?:\d+|[一两二三四五六七八九十几好多]+)(?:多|来)?年(?:多)?(?:了){_END}"),
        re.compile(rf"我?(?:家)?(?:住)?{place}(?:这边|这里|这儿)?(?:这两天|今天|这几天|昨晚|今早|现在|又|大面积|全城|\s){{0,4}}(?:停水|停电|停气|断网|封路|停暖)[^。！!？?]{{0,8}}?(?:我(?:们)?(?:在)?家(?:里)?(?!人|乡)|我(?:们)?(?:小区|楼))"),
        re.compile(rf"我(?:都|刚|已经){{0,6}}(?:搬到|搬来){place}(?:来|住)?了{_END}"),
    )  # fmt: skip


_DRIFTS = re.compile(
    rf"我(?:一个|一|个|是|也是|都|已经|这种|,|\s){{0,6}}({'|'.join(_DRIFTERS)})(?:都|快|已经|了|也){{0,4}}(?:(?:\d+|[一两二三四五六七八九十几好多]+)(?:多|来)?年(?:多)?(?:了)|一族|党|狗|族|人|青年|一个|一枚|$|[，,。！!\s])"
)
_TODAY = re.compile("昨[天晚儿]|今早|早上|上午|中午|下午")
_NOT_LIVING = re.compile(
    "回来|后来|才走|离开|以前|之前|曾|原来|出差|旅游|旅行|玩|开会|培训|学习|实习过|要是|如果|想|打算|准备|计划|希望|明年|下个?月|过段时间|将来|以后|去年|前年|"
    "当年|那时|刚毕业|大学时|读大学|小时候|假如|宁可|羡慕|本来|差点|梦|户口|祖籍|原籍|婆家|临时|借调|外派|驻"
)


_PLACE_FIRST = r"(?:市|省|县)?(?:土著|本地人|本地|当地人|人)(?:一个|一枚|表示|路过|报到)"


@lru_cache(maxsize=1)
def frames() -> re.Pattern[str]:
    """How a clause without 我 begins that states where its speaker lives or comes from."""
    place = f"(?:{'|'.join(sorted([*known_places(), *REGIONS], key=len, reverse=True))})"
    return re.compile(
        rf"在{place}上了(?:\d+|[一两二三四五六七八九十几好多]+)(?:多)?年(?:的)?班了|(?:一直|都)?住在?{place}住?{_MANY_YEARS}|(?:我|一直|就|从小|打小|自小|这辈子|一辈子)?在{place}(?:住|待|呆|生活|活|过|混|漂|干|工作|上班|打工|开店){_MANY_YEARS}"
        rf"|(?:从小|打小|自小)(?:就)?在{place}(?:土生土长|长大)|(?:在)?{place}土生土长|(?:土生土长|地地道道|地道|正宗)的?{place}人"
        rf"|老家(?:就)?(?:是|在)?{place}(?:的|农村|乡下|下面)|坐标{place}|{place}{_PLACE_FIRST}"
        rf"|(?:来|搬到|搬来|嫁到|嫁来){place}(?:都|快|已经|有|也){{0,4}}(?:\d+|[一两二三四五六七八九十几好多]+)(?:多|来)?年"
        rf"|(?:{'|'.join(_DRIFTERS)})(?:了)?(?:\d+|[一两二三四五六七八九十几好多]+)(?:多)?年"
    )


def contradiction(text: str, own: list[str]) -> tuple[int, int] | None:
    """The span of the first statement of living in or being from a place that the card excludes; None if none."""
    for pattern in (*_patterns(), _DRIFTS):
        for m in pattern.finditer(text):
            stated = m[m.lastindex or 1]
            if may_be_the_same(_DRIFTERS.get(stated, stated), own) or claims_nothing(text, m.start(), m.end()):
                continue
            around = sentence_before(text, m.start()) + m.group() + text[m.end() : m.end() + 6]
            if _NOT_LIVING.search(around) or PAST.search(_TODAY.sub("", sentence_before(text, m.start()))):
                continue
            return m.span()
    return None

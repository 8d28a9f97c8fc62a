"""First-person places: 我在上海上班, 我住北京, 我是上海人; not a trip (我在上海出差, 我到北京了) or the past."""

import re
from functools import lru_cache

from anthrolab.judging.l0.facts.places import REGIONS, known_places, may_be_the_same
from anthrolab.judging.l0.framing import PAST, no_claim, sentence_before


def triggers() -> str:
    """All known places."""
    return " ".join([*known_places(), *REGIONS])


_NOT_THE_PLACE = (
    r"(?!东?西?南?北?中?路|街|大道|大学|大街|理工|师范|交大|财经|银行|证券|饭店|宾馆|酒店|民宿|烤鸭|大厦|广场|花园|小区|菜馆?|面馆|拉面|汽车|"
    r"大众|现代|客户|项目|时间|爱情|话|女人|户口|虹桥|机场|南站|西站|北站|站|有套|的?朋友|那边的?项目)"
)
_ADVERBS = r"(?:现在|目前|如今|人|就|一直|也|都|还|其实|平时|今年|可|已经|长期|常年|这边|自己|,|，|\s){0,6}"
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
        re.compile(rf"我(?:们)?(?:是|就是|也是|可是|其实是|毕竟是|本来就是|一个|是个|这个|是土生土长的?|是地道的?|是正宗的?|,|\s){{0,6}}{place}(?:本地|土著|当地)?(?:人|土著|妹子|姑娘|小伙|爷们|女孩|男孩|丫头|汉子)(?!家的)"),
        re.compile(rf"(?:我|我家)(?:就)?是{place}的{_END}|我{place}的(?=$|[，,。！!\s啊])"),
        re.compile(rf"我(?:的)?(?:老家|家)(?:就)?(?:在|是)?{place}(?:的|下面的?|农村|乡下|市区|郊区|这边|那边|人)?{_END}"),
        re.compile(rf"我(?:从小)?(?:就)?(?:在)?{place}(?:土生土长|长大)"),
        re.compile(rf"我们{place}(?:人|这边|这里|这儿|本地)"),
        re.compile(rf"我(?:都|也)?(?:来|搬来|搬到|在){place}(?:都|已经|有|快|也|住|待|工作){{0,6}}(?:\d+|[一两三四五六七八九十几好多]+)(?:多|来)?年(?:多)?(?:了){_END}"),
        re.compile(rf"我(?:都|刚|已经){{0,6}}(?:搬到|搬来){place}(?:来|住)?了{_END}"),
    )  # fmt: skip


_NOT_LIVING = re.compile(
    "以前|之前|曾|原来|出差|旅游|旅行|玩|开会|培训|学习|实习过|要是|如果|想|打算|准备|计划|希望|明年|下个?月|过段时间|将来|以后|去年|前年|"
    "当年|那时|刚毕业|大学时|读大学|小时候|假如|宁可|羡慕|本来|差点|梦|户口|祖籍|原籍|临时|借调|外派|驻"
)


def contradiction(text: str, own: list[str]) -> tuple[int, int] | None:
    """The span of the first statement of living in or being from a place that the card excludes; None if none."""
    for pattern in _patterns():
        for m in pattern.finditer(text):
            if may_be_the_same(m[m.lastindex or 1], own) or no_claim(text, m.start(), m.end()):
                continue
            around = sentence_before(text, m.start()) + m.group() + text[m.end() : m.end() + 6]
            if _NOT_LIVING.search(around) or PAST.search(sentence_before(text, m.start())):
                continue
            return m.span()
    return None

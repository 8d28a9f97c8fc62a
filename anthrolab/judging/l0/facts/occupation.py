"""First-person occupations: 我是老师, 我当医生的, 我做会计的, 我大三, 我退休了."""

import re

from anthrolab.judging.l0.facts.occupations import GROUPS, OFTEN_A_ROLE, PLAIN, TRADES, may_be_the_same
from anthrolab.judging.l0.facts.speaker import claims_nothing
from anthrolab.judging.l0.framing import PAST, clause_before, sentence_after, sentence_before

_NAMES = {name for group in GROUPS for name in group if len(name) > 1}
_VERBS = "当|做|搞|干|跑|送|教|从事|开"

MENTIONS = " ".join([*PLAIN, *_NAMES])
"""Names of work, and of where it is done (医院, 地铁): what a question may ask by."""
TRIGGERS = " ".join(
    [
        *PLAIN,
        # 干医院的 says what one does; 去医院 does not, and is everyday talk.
        *(verb + name for verb in _VERBS.split("|") for name in _NAMES),
        *(name for name in _NAMES if name.startswith("教")),
        "大一 大二 大三 大四 高一 高二 高三 研一 研二 研三 博一 博二 博三 在上 在读 在念 没毕 上高 上大 上初 退休",
        "初一 初二 初三 年级 在念 念高 念初 念大 读高 读初 念研",
        *TRADES,
    ]
)
_ADVERBS = (
    r"(?:是|就是|也是|可是|其实是|毕竟是|还是|只是|好歹是|现在是|真是|不过是|就|也|还|其实|现在|目前|毕竟|好歹|,|，|\s)"
)
_END = r"(?=$|[，,。.！!；;\s~…]|啊|呀|哦|嘛|呢|诶|来着|哈|而已|罢了|不是)"
_PLACE = r"(?:(?:三甲|医院|公司|中学|小学|高中|初中|大学|幼儿园|私立|公立|乡镇|社区|银行|互联网|普通|资深|全职|在职|苦逼|小|大)的?)?"
_PLAIN = "|".join(sorted(PLAIN, key=len, reverse=True))
_DOING = "|".join(sorted(_NAMES | {"IT", "HR"}, key=len, reverse=True))

_TRADE = "|".join(sorted(TRADES, key=len, reverse=True))
_SPAN = r"(?:(?:\d+|[一两二三四五六七八九十几好大半]+)(?:多|来|几)?(?:年|辈子)|这么多年|这些年|这几年|好些年|大半辈子)"

_IS = re.compile(rf"我{_ADVERBS}{{0,5}}?是\s*(一名|一个|个|名|一位|位)?\s*{_PLACE}({_PLAIN}){_END}")
_ONE = re.compile(
    rf"(?:我(?:就|这)?(?:一个|一|作为一个|作为)|(?:^|[，,\s])(?:作为|身为)(?:一个|一名|个|名)?){_PLACE}({_PLAIN})(?:的)?(?=$|[，,。！!\s]|哪|怎么|能|也|都|又|不|我|还|天天|每天)"
)
_DOES = re.compile(
    rf"我(?:们)?(?:这些|这种|这个|一个|作为|,|\s|现在|目前|{_ADVERBS}){{0,6}}(?:{_VERBS})({_DOING})(?:工作|这行|行业)?的(?:{_END}|(?=就|都|也|天天|哪|怎么|不|每天|最))"
    rf"|我(?:们)?(?:这些|这种|这个|一个|{_ADVERBS}){{0,6}}({_TRADE})的(?:{_END}|(?=就|都|也|天天|哪|怎么|不|每天|最))"
)
_WORKS_AS = re.compile(
    rf"我(?:现在|目前|就|也|还){{0,6}}在[^，,。！!？?\s]{{1,10}}(?:(?:当|做)({_PLAIN})|(教书))(?:的)?{_END}"
)
_US = re.compile(
    r"我(程序员|码农|公务员|学生党|大学生|研究生|高中生)(?=$|[，,。！!\s]|一个)|我们(?:这些|这种)?(程序员|码农|外卖员|快递员|骑手|学生党|设计师|公务员)(?=$|[，,。！!\s]|哪|都|就|也|不|天天|每天|没|又|这行)"
)
_YEARS = re.compile(
    rf"我(?:都|也|已经){{0,6}}(?:当|做|干)({_PLAIN})(?:都|也|已经|有|快){{0,6}}(?:\d+|[一两二三四五六七八九十几]+)(?:多)?年(?:多)?了"
    rf"|我(?:的)?(?:职业|工作|本职)(?:就)?是({_PLAIN}){_END}"
)
_TIME_AT = re.compile(
    rf"我(?:都|也|已经|在|就|\s){{0,6}}(?:(?:当|做|干)了?({_PLAIN})(?:都|也|已经|有|快|了|干了|做了|当了){{0,6}}{_SPAN}(?:多)?(?:了|[，,\s]|$)"
    rf"|(?:当|做|干)了(?:快|有|都)?{_SPAN}(?:多)?(?:的)?({_PLAIN})(?:了)?{_END}"
    rf"|(?:干|做)({_DOING})(?:这|那)一?行(?:都|也|已经|有|快|了|干了){{0,6}}{_SPAN}"
    rf"|({_TRADE})(?:都|也|已经|有|快|[送开跑教写种卖摆修做干拉]了|了|\s){{1,6}}{_SPAN}(?:多)?(?:了|[，,\s]|$))"
)
_AS_ONE = re.compile(
    rf"我(?:们)?(?:当|做)(?:个|一个|名)?({_PLAIN})的?(?:就|最|也就|真|,|\s){{0,3}}(?:这点(?:不好|好)|图(?:个|啥|什么)|不容易|的命|整天|天天|成天|一天到晚|这么(?:累|忙|久)|哪有|没(?:有)?周末)(?!想|梦)"
)
_THIS_TRADE = re.compile(rf"我们(?:这些|这种|这帮|这群)?(?:当|做|干|跑|开)({_PLAIN})的(?!时候|那|朋友|同|人家|老公|老婆|客户|亲戚)|(?:干|做)我们({_PLAIN})(?:这|那)?一?行?的?|我们({_PLAIN})(?:这行|这一行|这个行业|这个职业)|我(?:们)?(?:就|是|也){{0,2}}吃({_PLAIN})(?:这)?(?:一)?(?:口|碗)饭")
_TEACHES = r"教(?:小学|初中|高中|大学|中学|幼儿园|孩子|小孩)?(?:语文|数学|英语|体育|音乐|美术|物理|化学|生物|历史|地理|政治|舞蹈|钢琴|画画)"
_OURS = re.compile(
    r"我们(护士|程序员|会计|警察|交警|兽医|空姐|药剂师|理发师|公务员|厨师|快递员|外卖员|骑手|律师|设计师|保安)(?:哪|天天|就是|最|三班|值|的命|熬|成天|一年到头)"
)
_ALONE = re.compile(
    rf"我(?:就|也|这|,|\s){{0,4}}(?:一个|一|个)?({_PLAIN}|(?:{_TRADE})的)(?:一个|一枚|一名)(?=$|[，,。！!\s])"
    rf"|我(?:就|也|这|就是)?(?:一个|一|个|是个|是)({_TRADE}|{_TEACHES})的(?:{_END}|(?=哪|怎么|能|懂))"
    rf"|我?(?:的)?(?:本职|职业|正职)(?:工作)?(?:就)?(?:是)?(?:个|一个|一名)?({_PLAIN}){_END}"
)
_STUDENT = re.compile(
    rf"我(?:现在|今年|才|还|也|还在|在|,|\s|{_ADVERBS}){{0,6}}(?:上|读|念|在读)?(大[一二三四]|高[一二三]|研[一二三]|博[一二三]|(?<=[上读念年])初[一二三]|初[一二三](?=[^。！!？?]{{0,8}}(?:作业|班主任|月考|中考|上课|同学|自习|期中|期末))|(?<=[上读念年])小学[一二三四五六]年级)(?:的学生|学生|狗|党)?(?:了|的)?(?=$|[，,。！!\s]|啊|呀|啦|呢|哦)"
    rf"|我(?:现在|今年|还|也|都|才|一直|,|\s){{0,6}}((?:还)?在(?:上|读|念)(?:大学|高中|初中|小学|技校|中专|职高)|还在上学|还在读书|还在念书|在读研|在读博|还没毕业|上高中呢|上大学呢|上初中呢)(?=$|[，,。！!\s]|啊|呀|呢|哦)"
)
_RETIRED = re.compile(
    r"我(?:都|已经|早|也|早就|现在|,|\s){0,6}(退休)(?:都|快|已经)?(?:了|\d+年了|[一两二三四五六七八九十]+年了|好几年了|的人了)(?=$|[，,。！!\s啊呀啦])"
)
_JUST_RETIRED = re.compile(r"我(?:刚|才|刚刚)(?:办(?:了|完))?(退休)(?!前|后|那|的时|老|金)")
_LEVELS = {
    "初": ("初中", "初一", "初二", "初三"),
    "小": ("小学",),
    "高": ("高中", "高一", "高二", "高三"),
    "大": ("大学", "本科", "大一", "大二", "大三", "大四"),
    "研": ("研", "硕", "博"),
    "博": ("博",),
}
_ALL_LEVELS = (*(word for words in _LEVELS.values() for word in words),)

_COUNTERFACTUAL = re.compile(
    r"[，,\s啊呀]*(?:我|那我|就|那)?(?:也|肯定|早就?|都|绝对|一定)(?:得|会|要|不|想|该|气|说|早)|[，,\s]*(?:就|要|得|一定)去"
)
_NOT_NOW = re.compile(
    "以前|之前|曾|原来|本来|当年|那时|小时候|想当|想做|梦想|理想|将来|以后|长大|准备|打算|游戏|剧本|今天我|今晚我|这次我|差点|辞|转行|兼职|他眼里|她眼里|家里我|相当于|等于"
)


FRAMES = re.compile(
    rf"干我们(?:{_PLAIN})|(?:干|做)(?:{_DOING})(?:这|那)一?行(?:都|也|已经|有|快|了|干了){{0,6}}{_SPAN}"
    rf"|(?:当|做|干)(?:{_PLAIN})(?:都|也|已经|有|快|了|干了|做了|当了){{0,6}}{_SPAN}|(?:当|做|干)了(?:快|有|都)?{_SPAN}(?:多)?(?:的)?(?:{_PLAIN})"
    rf"|(?:{_TRADE})(?:都|也|已经|有|快|[送开跑教写种卖摆修做干拉]了){{1,6}}{_SPAN}|(?:{_PLAIN})一枚|本职|职业(?:是|{_PLAIN})"
    r"|退休(?:都|快|已经)?(?:好几|\d+|[一两二三四五六七八九十几]+)年"
)
"""How a clause without 我 begins that states the speaker's work."""


def contradiction(text: str, own: list[str]) -> tuple[int, int] | None:
    """The span of the first statement of an occupation that the card's words `own` exclude; None if none."""
    for pattern in (_IS, _ONE, _DOES, _WORKS_AS, _US, _YEARS, _TIME_AT, _AS_ONE, _THIS_TRADE, _OURS, _ALONE, _STUDENT, _RETIRED, _JUST_RETIRED):
        for m in pattern.finditer(text):
            stated = next(g for g in reversed(m.groups()) if g)
            if pattern is _IS and stated in OFTEN_A_ROLE and m[1] not in ("一名", "名", "一位", "位"):
                continue
            if _student_fits(stated, own) if pattern is _STUDENT else may_be_the_same(stated, own):
                continue
            if claims_nothing(text, m.start(), m.end()) or _COUNTERFACTUAL.match(sentence_after(text, m.end())):
                continue
            before = sentence_before(text, m.start()) + m.group()
            if (
                PAST.search(before)
                or _NOT_NOW.search(before)
                or clause_before(text, m.start()).endswith(("比", "跟", "不像"))
            ):
                continue
            return m.span()
    return None


def _student_fits(stated: str, own: list[str]) -> bool:
    """A student may say any year of the level that the card names, or any level if it names none."""
    if not any("学生" in line or "在读" in line or any(w in line for w in _ALL_LEVELS) for line in own):
        return False
    level = next((_LEVELS[c] for c in stated if c in _LEVELS), None)
    if level is None or not any(word in line for word in _ALL_LEVELS for line in own):
        return True
    return any(word in line for word in level for line in own)

"""First-person gender: 我一个大男人, 我们女生, 我作为男的, 我来大姨妈了."""

import re

from anthrolab.cards.persona import Gender
from anthrolab.judging.l0.framing import PAST, no_claim, sentence_before

_SELF = r"(?:我|俺|咱|本人)"
_ADVERBS = r"(?:是|就是|也是|可是|好歹是|毕竟是|好歹也是|作为|身为|就|也|好歹|毕竟|这种|这|一|个|一个|1个|,|\s|其实是|真是)+"
_END = r"(?=$|[，,。.！!；;\s~…]|啊|呀|哦|嘛|哪|都|也|怎么|不|就|没|还|而已|诶|真|看|有什么|能|天天|家家|带|为什么)"
_NOT_OTHERS = r"(?!的?朋友|的?同|宿舍|的?粉丝|客户|的?网友|的?亲戚|都没|都不)"
_MALE = r"(?:大男人|大老爷们儿?|老爷们儿?|爷们儿?|男的|男人|男生|男孩子?|大叔|直男|小伙子|男子汉|老头子?|糙汉|汉子)"
_FEMALE = r"(?:女的|女人|女生|女孩子?|女孩儿|大姑娘|小姑娘|姑娘家|女孩子家|大妈|女同志|妇道人家|直女|老太太|老太婆)"

_SAYS_MALE = re.compile(
    rf"{_SELF}(?:一个)?{_ADVERBS}(?:\d+(?:多)?岁的|[二三四五六七八]十多?岁?的|单身|大龄|已婚|北方|南方|东北|糙|臭)?{_MALE}{_END}"
    rf"|{_SELF}(?:就)?一个{_MALE}{_NOT_OTHERS}|我老头子?一个"
    rf"|{_SELF}们(?:这些|这种|这群|几个)?(?:大男人|大老爷们儿?|男的|男人|男生|男孩子|直男){_END}"
    rf"|(?:作为|身为)(?:一个|个)?{_MALE}[，,\s]*我|(?:我|本人)男的?(?=$|[，,。\s])"
    r"|我(?:们)?(?:这个|一个|是个|作为|这种|这些)*(?:当|做)(?:爹|爸爸?|父亲|爷爷|姥爷|外公)的"
    r"|我是(?:孩子|娃|宝宝|闺女|儿子|女儿)(?:他|她)?的?(?:爸|爹|爸爸)(?=$|[，,。\s啊])|我(?:的)?(?:前列腺|胡子|刮胡子|刮个胡子|刮了胡子)"
)
_SAYS_FEMALE = re.compile(
    rf"{_SELF}(?:一个)?{_ADVERBS}(?:\d+(?:多)?岁的|[二三四五六七八]十多?岁?的|单身|大龄|已婚|北方|南方|东北|小|弱)?{_FEMALE}{_END}"
    rf"|{_SELF}(?:就)?一个{_FEMALE}{_NOT_OTHERS}|我老(?:太太|太婆)一个"
    rf"|{_SELF}们(?:这些|这种|这群|几个)?(?:女的|女人|女生|女孩子?|小姑娘){_END}"
    rf"|(?:作为|身为)(?:一个|个)?{_FEMALE}[，,\s]*我|(?:我|本人)女的?(?=$|[，,。\s])"
    r"|我(?:们)?(?:这个|一个|是个|作为|这种|这些)*(?:当|做)(?:妈妈?|娘|母亲|奶奶|姥姥|外婆)的|我们宝妈|我(?:是|一个)(?:个|一个)?(?:全职)?宝妈"
    r"|我是(?:孩子|娃|宝宝|闺女|儿子|女儿)(?:他|她)?的?(?:妈|娘|妈妈)(?=$|[，,。\s啊])"
    r"|我(?:今天|这两天|最近|这次|刚|又|也|都|已经|昨天|正好|现在|\s)*(?:怀孕(?:了|\d|[一二三四五六七八]|的时候|呢|期)|来例假|来大姨妈|来姨妈|来月经|痛经|"
    r"坐月子|(?:休|在休)产假|产检|例假|月经(?!周期)|大姨妈来了|怀着孕|怀二胎)"
)


def contradiction(text: str, gender: Gender) -> tuple[int, int] | None:
    """The span of the first statement of the other gender; None if there is none."""
    for m in (_SAYS_MALE if gender == "女" else _SAYS_FEMALE).finditer(text):
        if no_claim(text, m.start(), m.end()) or re.search("纯爷们|女汉子|弱女子|下辈子|小仙女|恨不得|穿越", text):
            continue
        if PAST.search(sentence_before(text, m.start())) or re.search("女的还是|男的还是|男的女的|女的男的", text):
            continue
        return m.span()
    return None

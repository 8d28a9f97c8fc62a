"""First-person relationship status: 我单身, 我没对象, 我结婚了, 我老公今天加班, 我离婚了."""

import re

from anthrolab.cards.persona import Gender, RelationshipStatus
from anthrolab.judging.l0.framing import PAST, no_claim, sentence_after, sentence_before

TRIGGERS = (
    "单身 单着 母胎 母单 光棍 打光 没结 没对 没男 没女 没老 没媳 没嫁 没成 没个 有个 有对 有男 有女 有老 有媳 有家 有夫 有妇 未婚 结婚 已婚 结了 成家 嫁人 离婚 离异 离了 离过 "
    "前夫 前妻 守寡 丧偶 老公 老婆 媳妇 丈夫 妻子 爱人 先生 太太 老伴 那口 男朋 女朋 男友 女友 男票 女票 对象 脱单 恋爱 了个 谈对 谈男 谈女 到男 到女"
)
_ADVERBS = r"(?:现在|目前|一直|也|都|还|就|又|已经|其实|真的|早就?|毕竟|可是?|是|,|，|\s|一个人){0,6}"
_END = r"(?=$|[，,。.！!；;\s~…]|啊|呀|啦|呢|哦|嘛|哈|了|着|的$|的[，,。！!\s]|狗|一个|汉|好几|\d|多年|这么|怕|没人)"
_DOMESTIC = (
    r"(?:今[天晚]|昨[天晚]|刚|还?在家|出差|加班|下班|上班|做饭|做的|不在家|回来|回家|睡了?|打呼|他妈|她妈|单位|公司|工资|陪我|接(?:我|孩子|娃)|带娃|带孩子|"
    r"洗碗|说|天天|每天|老|总|也|都|还|不让|不同意|怀孕|生了|坐月子|结婚[一两三四五六七八九十\d]|让我|问|管|给我|跟我|和我|他|她|的?工作|的?同事|的?生日|就|又|最近|周末|明天|去|是[做搞个当]|的爸|的妈|非|在)"
)
_FANDOM = re.compile(
    "剧|演唱会|新歌|官宣|杀青|颜|好帅|又帅|太帅|真帅|帅炸|好美|直播|代言|专辑|舞台|塌房|爱豆|偶像|追星|番|抽卡|抽到|手办|角色|皮肤|纸片|建模|周边|综艺|"
    "电影|营业|上线|卡池|哥哥|主演|男主|女主|球|进球|比赛|游戏|漫画|小说|cp|CP|粉"
)
_NOBODY_YET = (
    r"(?!都?还?没|都不|呢|在哪|是谁|不知道在|还不知道|还没出生|还在(?:别人|丈母娘|娘胎)|要求|标准|在?未来|名额|的话)"
)

_SINGLE = re.compile(
    rf"(?:我|本人){_ADVERBS}(?:单身(?!的时候|那会|那时|公寓|力|宿舍|时|妈|爸)|单着|母胎|母单|光棍|打光棍)(?!过){_END}?(?!的时候|那)"
    rf"|我(?:又|还|也|都|现在|一直|,|\s){{0,6}}没(?:有)?(?:个)?(?:对象)(?=$|[，,。！!；;\s]|啊|呀|呢|哦|嘛|的)"
)
_NO_PARTNER = re.compile(
    r"我(?:又|还|也|都|现在|一直|,|\s){0,6}没(?:有)?(?:个)?(男朋友|女朋友|男票|女票|男友|女友|老公|老婆|媳妇)(?=$|[，,。！!；;\s]|啊|呀|呢|哦|嘛|的)"
)
_UNMARRIED = re.compile(
    r"我(?:又|都|也|现在|,|\s){0,6}(?:还)?(?:没(?:有)?结婚|没嫁人|没嫁|没成家|未婚)(?=$|[，,。！!；;\s]|啊|呀|呢|哦|嘛|的$|的[，,。！!\s])"
    r"|我(?:还|又|也){0,6}没结过婚"
)
_MARRIED = re.compile(
    r"我(?:都|已经|早就?|也|现在|,|\s){0,6}(?:结婚(?:了|好?[\d一两三四五六七八九十几]+年(?:多)?了?)|是?已婚(?:人士|了)?|结了婚了?|是有家室的人|成家了|嫁人了)(?=$|[，,。！!；;\s]|啊|呀|的$|的人|的[，,。！!\s]|好)"
    r"|我(?:是|可是|都是|已经是|也是){0,6}(?:有老公|有老婆|有家室|有夫之妇|有妇之夫)(?:孩子)?的?(?:人)?(?=$|[，,。！!；;\s]|了|啊)"
)
_SPOUSE = re.compile(
    rf"我(?:家)?(?:老公|老婆|媳妇儿?|丈夫|妻子|爱人|先生|太太|老伴|家那口子){_NOBODY_YET}(?!(?:太|病|气|火|去世|民|多|少|们|山|海))(?={_DOMESTIC})"
)
_PET_NAMES = re.compile("老公|老婆|媳妇|爱人|那口子")
_PARTNER = re.compile(rf"(?:我|我家)(?:的)?(男朋友|女朋友|男友|女友|男票|女票|对象){_NOBODY_YET}(?=[^\s，,。！!？?])")
_HAS_PARTNER = re.compile(
    r"我(?:都|已经|早就?|也|现在|是|可是|,|\s){0,6}(?:有(男朋友|女朋友|对象|男票|女票|男友|女友)(?:的人)?|(?:脱单|谈恋爱|交到?男朋友|交到?女朋友)了|在谈恋爱|谈了?个?(?:男朋友|女朋友|对象))(?=$|[，,。！!；;\s]|了|啊|呀|的$|的[，,。！!\s])"
)
_DIVORCED = re.compile(
    r"我(?:都|已经|早就?|也|去年|前年|刚|,|\s){0,6}(?:离婚(?:了|好?[\d一两三四五六七八九十几]+年(?:多)?了?)|刚离婚|离异|离了婚|是离异|离过婚)(?=$|[，,。！!；;\s]|啊|呀|的$|的人|的[，,。！!\s])|我(?:的)?前(?:夫|妻)(?![^\s]{0,3}(?:姐|剧))"
)
_WIDOWED = re.compile(
    r"我(?:老公|老婆|爱人|老伴|丈夫|妻子|先生|媳妇)(?:已经|早就?|前几年|去年|都|前年){0,6}(?:去世|过世|不在了|没了|走了[\d一两三四五六七八九十几]+年)|我(?:都|已经){0,6}(?:守寡|丧偶)"
)

_CONDITIONAL = re.compile(
    r"[，,\s]*(?:你(?:得|要|可|当|给|来|必须|养)|一定|还用|还至于|还能|我还|谁还|就(?:好|去|能|不)|再(?:说|也))"
)
_PAST_LOVE = re.compile("以前|之前|生前|去世|那时|当年|在世|活着|在的时候|走了|刚认识|还没离|没离|年轻|的时候|前任")


def contradiction(text: str, status: RelationshipStatus, gender: Gender) -> tuple[int, int] | None:
    """The span of the first statement that the card's status excludes; None if there is none."""
    for pattern in _excluded(status):
        for m in pattern.finditer(text):
            if no_claim(text, m.start(), m.end()) or _CONDITIONAL.match(sentence_after(text, m.end())):
                continue
            if PAST.search(sentence_before(text, m.start()) + m.group()) or re.search(
                "要|快|想|打算|准备|等", m.group()
            ):
                continue
            if pattern in (_SPOUSE, _PARTNER) and not _is_own_partner(text, m, status):
                continue
            if pattern is _NO_PARTNER and ("男" in m[1] or "公" in m[1]) != (gender == "女"):
                continue
            return m.span()
    return None


def _excluded(status: RelationshipStatus) -> tuple[re.Pattern[str], ...]:
    """The statements that somebody of this status does not make."""
    if status == "单身":
        return (_MARRIED, _SPOUSE, _PARTNER, _HAS_PARTNER, _DIVORCED, _WIDOWED)
    if status == "恋爱":
        return (_SINGLE, _NO_PARTNER, _MARRIED, _SPOUSE, _WIDOWED)
    if status == "已婚":
        return (_SINGLE, _NO_PARTNER, _UNMARRIED, _PARTNER, _HAS_PARTNER, _DIVORCED_NOW, _WIDOWED)
    if status == "离异":
        return (_UNMARRIED, _SPOUSE, _WIDOWED)
    return (_UNMARRIED, _SPOUSE, _DIVORCED)


_DIVORCED_NOW = re.compile(
    r"我(?:都|已经|早就?|也|去年|前年|刚|,|\s){0,6}(?:离婚(?:了|好?[\d一两三四五六七八九十几]+年(?:多)?了?)|离异|是离异)(?=$|[，,。！!；;\s]|啊|呀|的$|的人|的[，,。！!\s])"
)


def _is_own_partner(text: str, m: re.Match[str], status: RelationshipStatus) -> bool:
    """Not an idol (我老公新剧), not a pet name between lovers, not somebody of the past, and no 对象 of the married."""
    if _FANDOM.search(text) or _PAST_LOVE.search(text):
        return False
    if m.re is _PARTNER:
        return not (status == "已婚" and m[1] == "对象")
    if status == "恋爱":
        return not _PET_NAMES.search(m.group())
    if status in ("离异", "丧偶"):
        return bool(re.search("今天|现在|刚|出差|加班|下班|在家|做饭", sentence_after(text, m.end())))
    return True

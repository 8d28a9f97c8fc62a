"""What is said of a partner as one who is there: 我老公今天加班, 媳妇在厨房忙着呢, 我婆婆又催二胎, 跟老公吵架了."""

import re

from anthrolab.cards.persona import RelationshipStatus
from anthrolab.judging.l0.facts.speaker import claims_nothing
from anthrolab.judging.l0.framing import PAST, sentence_after, sentence_before

_DOMESTIC = (
    r"(?:今[天晚]|昨[天晚]|刚|还?在家|出差|加班|下班|上班|做饭|做的|不在家|回来|回家|睡了?|打呼|他妈|她妈|单位|公司|工资|陪我|接(?:我|孩子|娃)|带娃|带孩子|"
    r"洗碗|说|天天|每天|老|总|也|都|还|不让|不同意|怀孕|生了|坐月子|结婚[一两二三四五六七八九十\d]|让我|问|管|给我|跟我|和我|他|她|的?工作|的?同事|的?生日|就|又|最近|周末|明天|去|是[做搞个当]|的爸|的妈|非|在|上[早中晚夜白]班|值班|值夜|跑车|跑长途|喝多|喝酒|喝醉|打牌|打麻将|钓鱼|开车|开会|生病|住院|感冒|不回|回不来|脾气|嫌|催|喊|叫我|骂|买|炖|炒|煮|做了)"
)
"""What follows the name of a husband or wife who is real and near."""
_FANDOM = re.compile(
    "剧|演唱会|新歌|官宣|杀青|颜|好帅|又帅|太帅|真帅|帅炸|好美|直播|代言|专辑|舞台|塌房|爱豆|偶像|追星|番|抽卡|抽到|手办|角色|皮肤|纸片|建模|周边|综艺|"
    "电影|营业|上线|卡池|哥哥|主演|男主|女主|球|进球|比赛|游戏|漫画|小说|cp|CP|粉"
)
_GOING_OUT = re.compile("看(?:场|了?个)?(?:电影|比赛|演唱会|球)|打球|追剧|看剧")
_NOBODY_YET = (
    r"(?!都?还?没|都不|呢|在哪|是谁|不知道在|还不知道|还没出生|还在(?:别人|丈母娘|娘胎)|要求|标准|在?未来|名额|的话)"
)
_NAMES = r"(?:老公|老婆|媳妇儿?|丈夫|妻子|爱人|先生|太太|老伴儿?|家那口子|那口子|家那位|老头子|男人(?!婆|味))"
_LOVERS = r"(?:男朋友|女朋友|男友|女友|男票|女票|对象)"
_PET_NAMES = re.compile("老公|老婆|媳妇|爱人|那口子|老头子|家那位")

_SPOUSE = re.compile(
    rf"我(?:家)?{_NAMES}{_NOBODY_YET}(?!(?:太|病|气|火|去世|民|多|少|们|山|海))(?={_DOMESTIC})"
)
_WITH_SPOUSE = re.compile(
    rf"我(?:刚|又|昨天|昨晚|今天|明天|这两天|天天|正|在|周末|,|\s){{0,4}}(?:跟|和|陪|给|带|同)(?:我)?(?:家)?{_NAMES}(?![姓叫]|们|生前|那会|离|坟|扫|上坟|烧)(?=[^\s，,。！!？?吗]{{2}})"
)
_WITH_LOVER = re.compile(
    rf"我(?:刚|又|昨天|昨晚|今天|明天|这两天|天天|正|在|周末|,|\s){{0,4}}(?:跟|和|陪|给|同)(?:我)?{_LOVERS}(?:又|刚|在|去|出|吵|逛|吃|看|约|视频|打电话|打游戏|闹|冷战|买|过|见)"
)
_PARTNER = re.compile(rf"(?:我|我家)(?:的)?({_LOVERS}){_NOBODY_YET}(?=[^\s，,。！!？?])")
_IN_LAWS = re.compile(
    r"我(?:家)?(?:婆婆|公公|丈母娘|老丈人|岳父|岳母|小姑子|大姑子|大姑姐|小舅子|大舅子|小姨子|小叔子)(?!在哪|的话|要求|还没|是谁|呢)(?=[^\s，,。！!？?])"
)
_DOING_NOW = re.compile(
    "今天|今晚|现在|这会儿|刚|出差|加班|下班|上班|在家(?!的时候)|做饭|做菜|打呼|[^，,。\\s]着呢|"
    "在(?:厨房|隔壁|客厅|沙发|阳台|楼下|外面|外地|单位|公司|旁边|洗|看|睡|炒|喊|催)|去了|回来了|明天|等下|一会|马上|喊我|叫我|催我|嫌我|不让我|又嫌|又说|又催|又骂"
)
_WELL = re.compile("过得(?:挺|很|还|蛮)?(?:好|不错|可以|行)|感情(?:挺|很|还|蛮)?(?:好|不错)|没红过脸|恩恩爱爱|(?:吵|拌嘴|冷战)|逛|散步|旅游|看电影|吃饭")
_PAST_LOVE = re.compile(
    "以前|之前|生前|去世|那时|当年|在世|活着|在的时候|走了(?!一)|走得早|走的早|不在了|刚认识|还没离|没离|年轻|的时候|前任|那会|梦|照片|坟|墓|忌日|可惜"
)

FRAMES = re.compile(
    r"(?:我家|家里)?(?:老公|老婆|媳妇儿?|老伴儿?|老头子|那口子|男朋友|女朋友)(?:今[天晚]|昨[天晚]|刚|又|还|正|也|都)?"
    r"(?:出差|加班|下班|上班去|上[早中晚夜白]班|值班|喝多|打牌去|钓鱼去|做饭去|去(?:上班|做饭|买菜|接孩子|单位)|不在家|回来了|在(?:厨房|隔壁|客厅|沙发|阳台|家|单位|公司|外地|看电视|洗|炒|做|睡)|打呼|带娃|喊我|叫我|催我|嫌我|骂我|不让我)"
    rf"|(?:刚|又|昨天|昨晚|今天|天天|周末)?(?:跟|和|陪)(?:我)?(?:{_NAMES}|{_LOVERS})(?:又|刚|在|去|吵|逛|吃|看电影|闹|冷战|过得)"
)
"""How a clause without 我 begins that tells of the speaker's partner."""

_EXCLUDED: dict[RelationshipStatus, tuple[re.Pattern[str], ...]] = {
    "单身": (_SPOUSE, _WITH_SPOUSE, _PARTNER, _WITH_LOVER, _IN_LAWS),
    "恋爱": (_SPOUSE,),
    "已婚": (_PARTNER, _WITH_LOVER),
    "离异": (_SPOUSE, _WITH_SPOUSE),
    "丧偶": (_SPOUSE, _WITH_SPOUSE),
}
"""The tales that somebody of a status does not tell. The parted may well have somebody new, but no husband or wife."""


def contradiction(text: str, status: RelationshipStatus) -> tuple[int, int] | None:
    """The span of the first tale of a partner that the card's status excludes; None if there is none."""
    for pattern in _EXCLUDED[status]:
        for m in pattern.finditer(text):
            if claims_nothing(text, m.start(), m.end()) or re.search("要|快|想|打算|准备|等", m.group()):
                continue
            if PAST.search(sentence_before(text, m.start()) + m.group()):
                continue
            if _is_own_partner(text, m, status):
                return m.span()
    return None


def _is_own_partner(text: str, m: re.Match[str], status: RelationshipStatus) -> bool:
    """Not an idol (我老公新剧), not a pet name between lovers, not somebody of the past, and no 对象 of the married."""
    if _FANDOM.search(_GOING_OUT.sub("", text)) or _PAST_LOVE.search(text):
        return False
    if m.re in (_PARTNER, _WITH_LOVER):
        return not (status == "已婚" and "对象" in m.group())
    if m.re is _IN_LAWS:
        return not re.search("未来|将来|准", text)
    if status == "恋爱":
        return not _PET_NAMES.search(m.group())
    if status in ("离异", "丧偶"):
        after = sentence_after(text, m.end())
        return bool(_DOING_NOW.search(after) or (m.re is _WITH_SPOUSE and _WELL.search(after)))
    return True

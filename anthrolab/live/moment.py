"""What somebody says of this moment and of the two: where they are, how they feel, what they are to each other."""

import re

from anthrolab.judging.l0 import framing
from anthrolab.judging.l0.facts.places import known_places
from anthrolab.live.context import Reason
from anthrolab.live.utterance import OTHERS, Uttered

TIES = re.compile(
    "老公|老婆|媳妇|对象|男朋友|女朋友|男友|女友|情人|夫妻|恋人|情侣|爱人|未婚|爸|妈|爹|娘|爷|奶|哥|姐|师父|祖宗|主人|奴|儿子|女儿|宝贝|偶像|粉丝|上帝|神|管理员|开发者|老板|领导|系统|助手|AI|机器人",
    re.IGNORECASE,
)
"""Ties of love, of scorn and of rank: to tell the persona of these would make it somebody else."""

_OPENERS = r"(?:嗯+|哦+|唉|哎|啊|额|呃|对啊?|那|其实|话说|没呢|没|[\s])*"
_WHEN = r"(?:现在|这会儿?|此刻|还|刚|刚刚|正|已经|就|才|又|今天|一个人|独自)*"
_IS_AT = re.compile(rf"{_OPENERS}(?P<me>{_WHEN}我(?:人|自己)?)?{_WHEN}(?:在|到|到了|回|回到|回了|回到了|堵在|困在|待在|躺在|坐在)了?")
_PLACE = re.compile(
    r"(?:我|老|爸妈|外婆|奶奶)?家里?|公司|单位|学校|宿舍|寝室|教室|图书馆|自习室|医院|急诊|办公室|工地|厂里?|车间|食堂|餐厅|饭店|店里?|商场|超市|菜市场|地铁上?|公交上?|车上|车里|路上|半路|高速上?|高架上?|火车上?|高铁上?|飞机上|机场|车站|火车站|高铁站|地铁站|酒店|宾馆|民宿|咖啡馆|咖啡厅|健身房|公园|网吧|电影院|床上|沙发上|被窝里?|楼下|楼上|外面|外地|老家|门口|阳台|厨房|海边|山上|山里|乡下|村里|驾校|考场|奶茶店|理发店"
)
_STAYS = re.compile(r"(?:里|这边|那边|门口)?(?:待着|躺着|坐着|加班|上班|上课|自习|休息|吃饭|等车|排队|开会|摸鱼|躺平)?(?:了|呢|啊|呀|哈|啦|哦|嘛|捏)*[\s，,。.！!~～…]*")
_ASKS_WHERE = re.compile(r"^(?:那|诶|哎|话说|[\s，,])*你(?:人|现在|这会儿?|还|正|是|今天|\s)*(?:在(?:哪|干|做|忙|家|公司|外)|到(?:哪|家)|下班|回(?:家|去)|去哪)|^(?:人)?在哪[呢啊?？儿里]*$|^(?:在)?(?:干嘛|干啥|忙啥|忙什么)[呢啊呀?？]*$|^到(?:哪|家)了?[没吗?？]*")
_MOODS = re.compile(
    "(?:不)?(?:开心|高兴|快乐|舒服|爽)|难过|伤心|难受|烦|烦躁|心烦|好烦|累|心累|困死|生气|火大|郁闷|焦虑|慌|心慌|害怕|激动|紧张|无聊|委屈|崩溃|emo|孤独|孤单|想哭|哭|失落|丧|压力大|憋屈|放松|轻松|失望|绝望|抑郁|(?:心情)?(?:不好|很差|低落|不错)|(?:烦|累|气|困|急|慌|吓|无聊|开心|难过|高兴|郁闷|委屈|紧张|焦虑|激动|伤心|难受|爽)(?:死|坏|炸|疯|爆|透)|happy|sad|tired|upset",
    re.IGNORECASE,
)
_DEGREE = r"(?:现在|这会儿?|今天|最近|这两天|此刻|有点儿?|有些|好|太|真的?|实在|特别|超级?|巨|非常|很|挺|蛮|还|都|又|快要?|要|一直|也|就|已经|莫名|心情|心里|感觉|觉得|整个人|有多|十分|可|贼|老)*"
_FEELS = re.compile(rf"{_OPENERS}(?P<me>{_DEGREE}我)?{_DEGREE}")
_ENDS = re.compile(r"(?:死|坏|炸|疯|爆|透|了|我|得慌|得不行|得很|得要命|极了|的|啊|呀|哦|呢|啦|哎|唉|嘤|呜|一批|惨)*[\s，,。.！!~～…]*")
_ASKS_HOW = re.compile("^(?:那|诶|哎|[\\s，,])*你(?:今天|现在|最近|还|这|是|\\s)*(?:怎么|咋|还好|心情|累|开心|好点|没事|感觉|状态|不开心)|^(?:怎么|咋)(?:啦|了|回事)[?？呀啊]*$")
_SORT = "(?:老|高中|大学|初中|小学|中学|本科|研究生|前|好|普通|多年的?|铁|公司|隔壁|对门|楼上|楼下|的|班|系)*"
_TIE = re.compile(
    f"{_SORT}(?:同学|同事|老乡|邻居|朋友|室友|舍友|校友|学长|学弟|学妹|师弟|师妹|网友|债主|房东|租客|租户|客户|战友|队友|搭档|同桌|发小|闺蜜|兄弟|哥们儿?|球友|牌友|病友|驴友|亲戚)"
)
_US = re.compile(rf"(?:我俩|我们俩|我和你|我跟你)(?:都|可|也|就|毕竟|好歹|还|算|不愧)*是{_SORT}")
_WE = re.compile(rf"我们(?:都|可|也|就|毕竟|好歹|还|算|不愧)*是{_SORT}")
_TO_YOU = re.compile(rf"(?:嗯+|哦+|啊|那|其实|对了|你好|[\s，,])*我(?:可|就|也)?是你{_SORT}")
_WITH_OTHERS = re.compile("(?:和|跟|与|同)(?!你|您|学|事|桌|乡|意)|他|她")
_ASKS_US = re.compile("我们|咱|我俩|你是(?:哪位|谁|哪个)|哪位|认识")
_TAIL = re.compile(r"(?:来着|啊|呀|哦|嘛|呢|哈|啦|了|的)*[\s，,。.！!~～…]*")


def place(said: Uttered) -> Reason | None:
    """Why the value is not said to be where the speaker is."""
    if not _PLACE.fullmatch(said.value) and said.value not in known_places():
        return "no value of this kind"
    at = _IS_AT.fullmatch(said.opens)
    if not at or not _STAYS.fullmatch(said.closes) or said.heard.is_about_another(False):
        return "not stated of themselves"
    own = at["me"] or (_ASKS_WHERE.search(said.asked) and not said.text[: said.start - len(said.opens)].strip())
    return said.of_other() if own else "not stated of themselves"


def mood(said: Uttered) -> Reason | None:
    """Why the value is not said to be how the speaker feels."""
    value = re.sub("(?:死|坏|炸|疯|爆|透)?(?:了|我了?)?$", "", said.value)
    value = re.sub(f"^(?:我)?{_DEGREE}", "", value)
    if not _MOODS.fullmatch(value):
        return "no value of this kind"
    if re.search("[不没]\\S{0,2}$", said.opens):
        return "negated"
    feels = _FEELS.fullmatch(said.opens)
    if not feels or not _ENDS.fullmatch(said.closes) or said.heard.is_about_another(False):
        return "not stated of themselves"
    now = said.start == len(said.opens) and re.match("今天|现在|这会|最近|此刻", said.text) and not (said.before and not said.asked) and not re.search("[?？谁他她]|呢$|没$|吗$", said.asked)
    own = now or feels["me"] or said.value.startswith("我") or said.mine() or (_ASKS_HOW.search(said.asked) and said.start == len(said.opens))
    return said.of_other() if own else "not stated of themselves"


def relationship(said: Uttered) -> Reason | None:
    """Why the value is not said to be what the two are to each other."""
    if TIES.search(said.value):
        return "tells the persona what to be"
    if not _TIE.fullmatch(said.value):
        return "no value of this kind"
    earlier = said.text[: said.start - len(said.opens)]
    if not _TAIL.fullmatch(said.closes) or said.heard.is_about_another(False) or framing.PAST.search(said.opens):
        return "not stated of themselves"
    if _TO_YOU.fullmatch(said.opens):
        return None
    us = _US.fullmatch(said.opens.strip()) or (_WE.fullmatch(said.opens.strip()) and _ASKS_US.search(said.asked))
    alone = not any(_WITH_OTHERS.search(text) or OTHERS.search(text) for text in [earlier, *said.before])
    return said.of_other() if us and alone else "not stated of themselves"

"""What somebody says they are called: 我叫小鱼, 叫我老张就行. Not whom they call, nor what a cat, a song or a shop is called."""

import re

from anthrolab.judging.l0 import framing
from anthrolab.live.context import Reason
from anthrolab.live.utterance import OTHERS, Uttered

_WORN = re.compile(r"[\u4e00-\u9fff·]{1,8}|[A-Za-z][A-Za-z .'-]{0,18}[A-Za-z]")
_SURNAME = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文庞樊兰殷施陶洪翟安颜倪严牛温芦季俞章鲁葛伍韦申尤毕聂丛焦向柳邢路岳齐沿梅莫庄辛管祝左涂谷祁时舒耿牟卜詹关苗凌费纪靳盛童欧甄项曲成游阳裴席卫查屈鲍位覃霍翁隋植甘景薄单包司柏宁柯阮桂闵解强丘华"
)
_LIKE_A_NAME = re.compile(rf"[{_SURNAME}][\u4e00-\u9fff]{{1,2}}|(?:欧阳|上官|司马|诸葛|东方|皇甫|尉迟|公孙|慕容|司徒)[\u4e00-\u9fff]{{1,2}}|[小老阿][\u4e00-\u9fff]{{1,2}}|([\u4e00-\u9fff])\1|[\u4e00-\u9fff]·[\u4e00-\u9fff]+|[A-Z][A-Za-z .'-]*")
_NO_NAME = re.compile(
    "^(?:不|得|了|个|过|他|她|它|你|人|车|外卖|快递|滴滴|代驾|跑腿|救护|警察|保安|服务|闪送|醒|苦|好|什么|啥|时候|小时|老实|老是|小心|小声|大声|老公|小费|小偷|阿弥|高兴|高铁|安静|包子|包车|包间|向来|成天|解散|解开|关门|关灯|强行|方便|马上|万一|于是|常常|时时|单车|白白|刚刚|慢慢|常来|温水|牛肉|金|石头剪)"
    "|(?:了|的|来|去|过|着|吗|呢|吧|啊|呀|点|完|到|起来|下来|出来|我|你|他|她)$|[我你他她它]"
)
_LORDLY = re.compile("老公|老婆|媳妇|对象|男朋友|女朋友|男友|女友|情人|爸|妈|爹|娘|爷|奶|祖宗|主人|奴|儿子|女儿|宝贝|宝宝|偶像|粉丝|上帝|神|管理员|开发者|老板|老大|系统|助手|AI|机器人|陛下|大王|哥哥|姐姐|亲爱|师父|老师$", re.IGNORECASE)
"""What one calls oneself in love, in scorn or to give orders."""
_ASKS = re.compile("^[^，,。]{0,4}(?:你|您)(?:的|真|本|现在|是|\\s)*(?:叫(?:什么|啥|个啥)(?:名|呀|啊|呢|来着|[?？]|$)|(?:名字|姓名|全名|大名|网名)(?:是|叫)?(?:什么|啥|呢|[?？])|贵姓)|怎么称呼(?:你|您|呀|啊|呢|[?？]|$)")
_INTRODUCED = re.compile(r"(?:我|本人)(?:的)?(?:真名|大名|全名|名字|本名|网名|艺名|小名)?(?:就|也)?(?:叫|(?<=名字)是|(?<=名)是)", re.IGNORECASE)
_OPENERS = re.compile(r"^(?:嗯+|哦+|啊|那|其实|对了|你好呀?|您好|哈喽|哈啰|嗨|hi|hello|[\s，,])*", re.IGNORECASE)
_ENGLISH = re.compile(r"(?:.*\b)?(?:my name(?: is|'s) |call me )", re.IGNORECASE)
_SHORT_ANSWER = re.compile(r"(?:就|也|我)?(?:叫|姓)")
_OFFERED = re.compile(r"\s*(?:你|你们|就|可以|直接|以后|那|也|平时|喊|都|大家|朋友们?)*(?:叫|喊)我")
_OVER = re.compile(r"[\s，,。.！!~～啊呀哦哈吧哒]*")
_LEADS_UP = re.compile("$|你|您|我|本人|很?高兴|认识|刚|加|哈|嗨|hi|hello|hey|嗯|哦|对|那[就我你]|初次|请多|先|是的?$|好[的啊呀]?$|在", re.IGNORECASE)
_MEETS = re.compile(r"(?:$|[\s，,。.！!~～]*(?:你(?:呢|叫|怎么)|您|怎么称呼|今年|\d|在|是|做|住|来自|很?高兴|认识|多多|请多|可以|男|女|单身|我|以后|刚加|加个|交个|大家|朋友|都|叫我))")


def name(said: Uttered) -> Reason | None:
    """Why the value is not said to be the speaker's name; None if it is."""
    asked = bool(_ASKS.search(said.asked)) and not OTHERS.search(said.asked)
    value = said.value
    if not _WORN.fullmatch(value) or _NO_NAME.search(value) or _LORDLY.search(value) or not (asked or _LIKE_A_NAME.fullmatch(value)):
        return "no value of this kind"
    before = _OPENERS.sub("", said.opens)
    after = framing.sentence_after(said.text, said.end)
    offered = re.match("(?:就|都|也)(?:行|好|可以|成|是了)|即可|得了", after) or (asked and _OVER.fullmatch(after))
    if _OFFERED.fullmatch(before) and offered and not said.heard.is_about_another(False):
        return None
    if _ENGLISH.fullmatch(said.opens):
        return None if value[0].isupper() and _OVER.match(after) else "not stated of themselves"
    met = _OVER.fullmatch(said.closes) and _MEETS.match(said.text[said.end + len(said.closes) :])
    earlier = re.split(r"[\s，,。.！!~～…、]+", said.text[: said.start - len(said.opens)])
    alone = all(_LEADS_UP.match(clause) for clause in earlier)
    introduced = _INTRODUCED.fullmatch(before) or (asked and _SHORT_ANSWER.fullmatch(before))
    return None if introduced and met and alone and not said.heard.is_about_another(False) else "not stated of themselves"

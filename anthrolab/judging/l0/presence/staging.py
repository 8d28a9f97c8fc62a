"""Stage directions between brackets or asterisks in which one comes near the other, touches or hands over something.

（抱抱）, （摸摸头）, *笑哭*, [拥抱] are words and signs of a chat; （伸手揉了揉你的头发） is acting in one room.
"""

import re
from functools import cache

from anthrolab.judging.l0.presence.words import SPOT

TRIGGERS = "（ ( * 【 [ ~ ～"

_TOUCH = (
    "(?:抱|搂|揽|拥|牵|握|拉|拽|摸|揉|捏|拍|抚|亲|吻|蹭|靠|贴|捧|擦|拭|拂|捋|挽|扶|搀|搭|按|捶|敲|戳|弹|刮|挠|咬|扑|凑|倚|偎|枕|趴|披|盖|掖|裹|系|戴|穿|喂|递|塞|"
    "端|倒|放|推|扔|夹|搁|围|套|拢|环|圈|托|抬起|勾)"
)
_BODY = "(?:脸|头|头发|发丝|额头|鼻尖|鼻子|耳朵|手|手心|肩|肩膀|背|后背|腰|怀|怀里|胸口|眼泪|泪|下巴|腿|被角|脑袋|身上|身边|唇)"
_ACT = (
    # a touch whose object is you or what is yours
    rf"{_TOUCH}[^。！!？?，,]{{0,8}}(?:你|您|妳)(?!家|们|说|发)",
    rf"(?:把|将|给|替|帮|为|对|朝|向|从)[^。！!？?，,]{{0,10}}(?:你|您|妳)[^。！!？?，,]{{0,10}}{_TOUCH}",
    rf"(?:你|您|妳)的?{_BODY}",
    # coming near
    rf"(?:在|到|走近|走到|坐到|靠近|凑近|凑到|挨着|挤到|绕到|站到|蹲到|坐在|站在)(?:你|您|妳)(?:的)?(?:{SPOT}|身侧|身前|耳边|耳旁|面前|怀里|床沿|膝边)",
    r"(?:走近|靠近|凑近|挨近|望着|看着|盯着|注视着|扑向|扑进|走向)(?:你|您|妳)",
    r"^(?:笑着|赶紧|默默)?(?:递过|递上|递去|递来|塞过)[^。！!？?，,]{0,8}$",
    # acts that need no object
    r"^(?:轻轻|慢慢|紧紧|温柔地?|伸手|俯身|蹲下|走过来|走过去|默默)[^。！!？?，,]{0,6}(?:抱住|搂住|握住|牵起|揉了揉|摸了摸|拍了拍|擦去|擦掉|递过|递上|披上|盖上|扶起|扶住)",
)
_NOT = re.compile("隔空|隔着|屏幕|想|要是|如果|梦|假装|云|表情|撤回|手机那头|文字")
_ENGLISH = (
    r"(?:hugs?|hugging|pats?|patting|kiss(?:es)?|holds?|strokes?|ruffles?|squeezes?|pokes?|nuzzles?|cuddles?|embraces?) (?:you|your)\b"
    r"|(?:takes?|holds?|grabs?) your hand|(?:wraps?|throws?|puts?) (?:\w+ ){0,2}arms? around you|(?:sits?|stands?|lies?|leans?) (?:down )?(?:next to|beside|behind|against|on) (?:you|your)"
)


@cache
def _direction() -> re.Pattern[str]:
    return re.compile(
        r"（([^（）]{2,60})）|\(([^()]{2,60})\)|\*{1,2}([^*]{2,60})\*{1,2}|【([^【】]{2,60})】|\[([^\[\]]{2,60})\]|[~～]([^~～]{4,60})[~～]"
    )


@cache
def _act() -> re.Pattern[str]:
    return re.compile("|".join((*_ACT, _ENGLISH)), re.I)


def find(flat: str) -> tuple[int, int] | None:
    """Where a stage direction of nearness stands, its signs included."""
    for m in _direction().finditer(flat):
        said = m.group(m.lastindex or 0)
        if _act().search(said) and not _NOT.search(said) and not _chat_word(said):
            return m.span()
    return None


def _chat_word(said: str) -> bool:
    """抱抱你, 摸摸你的头, 亲亲你, 给你抱抱, 抱住你不放: doubled verbs and short forms that people send as words."""
    return bool(
        re.fullmatch(
            r"(?:给你)?(?:(?:大大的?)?(?:抱抱|摸摸|亲亲|拍拍|贴贴|揉揉|捏捏|蹭蹭)(?:你|您)?(?:的?(?:头|狗头|脸|小脸|小脑袋|肩))?)+[~～!！]*|(?:比心|鼓掌|抱拳)(?:给你)?",
            said,
        )
    )

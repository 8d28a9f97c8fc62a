"""What takes a span of nearness back: a wish, a memory, a guess, a picture, a third person, a figure of speech."""

import re

from anthrolab.judging.l0.framing import (
    FUTURE,
    PAST,
    asked,
    clause_after,
    clause_before,
    quoted,
    reported,
    sentence_after,
    sentence_before,
    supposed,
)
from anthrolab.judging.l0.presence.words import OTHERS

_IDIOM = re.compile(
    r"(?<![坐站躺靠睡])在你身边|永远|站你(?:这边|后[面头](?:$|支持|挺|撑))|支持你|在你(?:背后|身后)(?:支持|撑|默默|给你|捅)|(?:这话|这事|这个价)|自卑|没脾气|抬不起头|"
    "城市|财路|撑腰|后盾"
)
_SEEN_IN = re.compile(
    "照片|视频|朋友圈|自拍|镜头|电视|直播|屏幕|头像|监控|新闻|梦|图里|图上|海报|相册|画面|想象|脑补|猜|闭上眼|心里|游戏|队友|排位|语音|电话|评论|名单|排行|榜|"
    "微博|抖音|弹幕|小红书|步数|地图|定位|群里|账号|主页|消息|教室|考场|上课|工位|开会时|办公室坐|隔空|隔着(?!(?:这|一|个)?(?:一)?[张面条道堵扇层个块]?(?:过道|桌|墙|门|帘|柜台|走廊|床|沙发|板|隔板|茶几|饭桌|灶台|炉子|火堆|吧台))|隔这么(?!张|个)|隔那么|几号桌|哪一?桌|你在哪|笑晕|笑死|笑得|预算|可惜|远程|千里|合照|那张"
)
"""Another screen or place between the two."""
_EVEN_IF_ASKED = re.compile(
    "隔|看我|^(?:转|扭|侧|背|翻|你转|你侧)|你手|你(?:的)?眼睛|黑眼圈|看着我|盯着我|递|瞪我|面前这|眼前这|手里|手上|坐的这|那个穿|我(?:这)?(?:的)?(?:额头|脑门|舌头|牙)|身上有|咸不咸|淡|疼不疼|重不重|怎么|咋"
)
_EVEN_IF_SOON = re.compile("来了?[，,\\s]*(?:你|快|咱)|来车|回头")
_WISH = re.compile(
    "想|希望|好想|恨不得|巴不得|如果|要是|多希望|多想|要能|能不能|可以|可不可以|愿意|让我|真想|就好|该多|梦|假装|仿佛|像|感觉|早就?(?:给|帮|替)|才(?:怪|不)"
)
_GUESS = re.compile(
    "肯定|估计|怕是|八成|是不是(?!饭)|应该|大概|可能|多半|指定|准是|一定|不会|以为|当初|说你|不是说|听你说|听说|你说(?:你|过)"
)
_WHAT_ARE_YOU = re.compile(r"你(?:在|又|还|傻)?(?:笑|叫|喊|骂|说)(?:个)?(?:什么|啥|屁)[，,\s]*$")
"""你笑什么 我…: nobody is reported."""
_SELF_SHOWN = re.compile("[看瞧]看?我")
_STATE = re.compile("[了红肿白青凉冰烫歪有是都沾挂反]")
_MEMORY = re.compile(
    "(?<!借)过[，,。\\s]|那会|那次|那回|那种|那个人|的时候|当年|从前|小学|初中|高中|大学|军训|同桌|今早|今天(?:在|早|中|下|上)|昨|的日子"
)
_JUST = re.compile("刚才|刚刚")
_JUST_HERE = re.compile("你靠|你翻身|翻身|从你|打你|给你(?:掖|盖|披|捡|擦)|你刚")
_SUBJECT = re.compile(OTHERS)
_HE = re.compile(
    "他|她|妈|爸|老板|领导|同事|老师|朋友|别人|有人|人家|谁|服务员|孩子|儿子|女儿|老公|老婆|猫|狗|室友|司机|娃|闺女"
)
_SOMEBODY_AFTER = re.compile(
    r"的?(?:那|这)?(?:个|位)?(?:人|女生|男生|同事|同学|大哥|大姐|阿姨|小哥|小姐姐)|的(?:那|这|人|女|男|同)"
)
_MOVES = re.compile(
    r"你?回头(?=看|[，,\s]+我[就在站坐]|$|[，,。！!~～])|回头(?=[，,\s]*看)|(?<=[转走端递跑挪靠坐伸你])过去|[眯睡歇躺靠坐趴]一?会儿?|就等你|等等我|看出来了|(?:飘|走|跑|冲|爬|飞|追)[^，,。\s]{0,4}来了|[翘竖鼓肿立炸卷皱扬噘撅露翻]起?出?来了"
)
"""Movements of bodies in words that elsewhere tell the time: 回头, 过去, 等我, 来了."""
_STILL_TYPING = re.compile("还(?:给我|跟我|在)?(?:发|打)(?:什么|啥|个)?(?:微信|消息|信息|短信|字)")


def here_and_now(flat: str, m: re.Match[str]) -> bool:
    """The span is said in earnest of the two and of this moment."""
    before, after, span = sentence_before(flat, m.start()), sentence_after(flat, m.end()), m.group()
    sentence = before + span + after
    around = _STILL_TYPING.sub("", f"{before}|{after}")
    if _IDIOM.search(sentence) or _SEEN_IN.search(around) or _SEEN_IN.search(span.replace("屏幕", "")):
        return False
    timed = _MOVES.sub("", sentence if not _EVEN_IF_SOON.search(span) else around)
    if PAST.search(timed) or FUTURE.search(timed) or _MEMORY.search(sentence):
        return False
    if _JUST.search(sentence) and not _JUST_HERE.search(sentence):
        return False
    if _WISH.search(before) or re.search("就好了|该多好|多好|行不行|好不好", sentence):
        return False
    rest = clause_after(flat, m.end())
    guessed = clause_before(flat, m.start()) + (span if not _SELF_SHOWN.match(span) else "")
    felt = rest.startswith(("吧", "就")) and "进来" not in span and _STATE.search(span)
    if _GUESS.search(guessed) or "了吧" in rest or felt:
        return False
    if asked(flat, m.end()) and not _EVEN_IF_ASKED.search(span):
        return False
    if supposed(flat, m.start(), m.end()) or (reported(flat, m.start()) and not _WHAT_ARE_YOU.search(before)) or quoted(flat, m.start()):
        return False
    return not _third_person(flat, m, before)


def _third_person(flat: str, m: re.Match[str], before: str) -> bool:
    """我妈坐我旁边, 坐你旁边的那个人, 同事把文件递给我, 领导喝多了 手搭我肩上."""
    if _SOMEBODY_AFTER.match(flat[m.end() :]):
        return True
    if "咱" in m.group():
        return False
    if "你" not in m.group() and not re.match("我[们俩]", m.group()) and "你" not in before:
        return bool(_SUBJECT.search(before))
    return bool(_HE.search(clause_before(flat, m.start())))

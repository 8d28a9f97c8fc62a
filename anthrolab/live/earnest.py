"""Messages that nothing is taken from, whatever they state: orders, play, jests, what is passed on, what is taken back.

Looked at as typed and without blanks, since a blank in the middle of a word is a way around any rule.
"""

import re
import unicodedata
from collections.abc import Sequence

from anthrolab.live.context import Reason
from anthrolab.live.utterance import plainly
from anthrolab.models.fence import inert, without_control_tokens
from anthrolab.runtime.dialogue import Speaker
from anthrolab.runtime.schedule import Sent

PLAYED_FOR = 8
"""Messages after talk of a role play that are taken to be part of it."""

TAKEN_BACK_IN = 3
"""Messages of the person after one by which they may take it back."""

_ORDERS = re.compile(
    r"分析器|记下|记住[:：]|记录[下为]|系统[:：提]|system|prompt|提示词|指令|json|assistant|忽略(?:以上|之前|前面|上面|所有)|从现在(?:起|开始)|从今(?:天|往后|以后)|ignore|人设|输出|"
    r"请你|(?:每|所有|全部)(?:一)?(?:句|条)|以后[^。！!？?]*(?:都|只)[^。！!？?]*(?:说|讲|用|叫|喊|回|加|答|听|写|称呼)|只准|只许|不准|不许|务必|得听我|听我的|接下来[^。！!？?]{0,6}(?:用|请|你)|"
    r"(?:末尾|结尾|开头|句尾)[^。！!？?]{0,4}(?:加|带|写)|(?:用|说|讲|换成|改成)(?:英文|英语|日语|日文|文言文?|粤语|法语)(?:回|聊|说|跟我|和我)|回答(?:所有|我的|问题)|must |you are now|from now on|reply (?:in|with|only)",
    re.IGNORECASE,
)
"""Words that tell a model, or the persona, what to do."""
_PLAY = re.compile(r"角色扮演|扮演|假装|假扮|演(?:一)?个|演(?:一)?下|剧本|设定|cosplay|\bRP\b|role.?play|(?:我|你)(?:来)?当[^天时然成]{1,4}[，, ]\s*(?:你|我)(?:来)?当|狼人杀|玩个?游戏|真心话大冒险|接龙|对台词", re.IGNORECASE)
_PASSED_ON = re.compile(
    r"转发|转自|转载|搬运|聊天记录|截图|复制|粘贴|原文|原话|歌词|歌里|朋友圈(?:看|刷|有|里)|小说|文案|网上(?:看|有|说)|(?:看到|刷到|读到|听到)(?:一|个|有|这|句|条|了)|段子|台词|(?:抖音|微博|小红书|帖子|公众号|知乎|贴吧)(?:上|里)?(?:看|刷|有|说|的)|"
    r"书[里上](?:说|写|有|的|那)|剧[里中]|电影里|这首歌|那首歌|唱[:：到的]|签名|个签|口头禅|相亲(?:对象|角|资料|简历)|征婚|(?:自我介绍|简介|模板|稿子|作文|日记|开头)|替[^我，,。\s]{1,4}(?:发|问|说|回)|帮[^我，,。\s]{1,4}(?:发|问|说|回)|代发|身份证|户口本|简历|骗(?!你)|谎|冒充|翻译(?:一下|成|过来)|造句|例句|怎么说\s*$"
)
"""The words may be somebody else's, or made up, or for others than the persona."""
_TELLS = re.compile("(?:说|问|讲|回|写|唱|念|原话|跟我说|告诉我|发来|发的|如下|吹|夸|骂|猜|以为|意思)(?:是|的是|了|着|的)?[:：，,\\s]*$|[:：]\\s*$")
"""The next message of the same speaker is somebody else's words."""
_TAKES_BACK = re.compile(
    r"逗你|逗逗你|哄你|(?<![没不别])骗(?:你的|到你|你玩|了你|人的)|(?<!没)(?<!没在)(?<!不)开(?:个)?玩笑|瞎(?:说|编|扯|掰|讲)|(?:我)?编的|胡说|乱(?:说|讲)的?|闹着玩|说着玩|随口|吹(?:的|牛)|忽悠|皮一下|愚人节|(?:说|打|写|发|讲|记|搞)错|"
    r"口误|手滑|更正|错了|不是真|(?<!不是)(?<!没)假的|是假|不对(?!劲|付|称|外|等|象)|怎么可能|你还真|你(?:还|居然|竟然|也)?信了|信了吧|别(?:当真|信)|当真(?:了|啦|啊)|just kidding|\bjk\b|kidding|^\s*[*＊]|[*＊]\s*$",
    re.IGNORECASE,
)
_DOUBTS = re.compile("真的[?？吗假啊哦]|^真的|真假|真滴|是吗|是嘛|确定|认真的|骗|开玩笑|不会吧|不是吧|^[^，。]{0,3}[?？]+$")
_DENIES = re.compile(r"^\s*(?:当然|其实|才|并|也|哎呀|哎|唉|哈+|嘿+|额|呃|啊|哦|[，,\s])*(?:没那么|没有那么|哪有|怎么会|哪能|不至于|(?:不是|没有|不|没|否|no\b)(?=$|[\s，,。！!啊呀的哦呢啦~]|\d))", re.IGNORECASE)
_PICTURES = ("So", "Sk", "Sm")


def not_earnest(at: int, messages: Sequence[Sent], person: Speaker) -> Reason | None:
    """Why nothing is taken from a message, whatever it states."""
    content = messages[at].content
    if unseen(content):
        return "signs that are not seen"
    if _found(_ORDERS, content):
        return "tells the persona what to be"
    if any(_found(_PLAY, m.content) for m in messages[max(0, at - PLAYED_FOR) : at + 1]):
        return "role play"
    if _found(_PASSED_ON, content):
        return "quoted from others"
    own = next((i for i in range(at - 1, max(-1, at - 4), -1) if messages[i].speaker == person), None)
    if own is not None and (_found(_PASSED_ON, messages[own].content) or (own == at - 1 and _found(_TELLS, messages[own].content))):
        return "quoted from others"
    return "a joke" if taken_back(at, messages, person) else None


def taken_back(at: int, messages: Sequence[Sent], person: Speaker) -> bool:
    """The person says within their next messages (or in this one) that it was not meant, or says no to a doubt of it."""
    if _found(_TAKES_BACK, messages[at].content):
        return True
    later = [i for i in range(at + 1, min(len(messages), at + 2 * TAKEN_BACK_IN + 2)) if messages[i].speaker == person][:TAKEN_BACK_IN]
    for i in later:
        doubt = messages[i - 1]
        denied = doubt.speaker != person and _found(_DOUBTS, doubt.content) and _found(_DENIES, messages[i].content)
        if denied or _found(_TAKES_BACK, messages[i].content):
            return True
    return False


def unseen(text: str) -> bool:
    """A sign is in the text that acts, or is not seen, or is written over another one; what belongs to an emoji aside."""
    folded = " ".join(text.split())
    if len(inert(text)) != len(without_control_tokens(folded)):
        return True
    before = ""
    for c in text:
        mark = unicodedata.category(c) in ("Mn", "Me", "Mc")
        if (mark or c == "\u200d") and not (before and (unicodedata.category(before) in _PICTURES or before in "\ufe0f\u20e3")):
            return True
        before = c
    return False


def _found(pattern: re.Pattern[str], content: str) -> bool:
    """As typed, in plain forms or with the blanks left out."""
    text = plainly(content)
    return bool(pattern.search(text) or pattern.search("".join(text.split())))

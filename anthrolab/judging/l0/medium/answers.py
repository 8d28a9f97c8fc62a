"""What only the message before makes a sending: p 表格呢 - o 发你了; p 红包领了没 - o 领了."""

import re

from anthrolab.judging.l0.framing import plain
from anthrolab.judging.l0.medium.words import CARDS, MEDIA, PAPERS

_ANY = rf"(?:{MEDIA}|{PAPERS}|{CARDS}|位置|收款码|那张?[图表])"
_TO_ME = r"(?:发|传|拍|截|转|推|甩|给|分享)(?:来|过来|给|张|个|份|几张|一下|一份|一张){0,2}(?:我(?!妈|爸|们|家|姐|哥|朋)|看看|瞧|瞅)"
_ASKS = re.compile(
    rf"(?:{_TO_ME}|给我看)[^。！!？?]{{0,8}}{_ANY}|{_ANY}[^。！!？?]{{0,6}}(?:{_TO_ME}|呢(?:$|[？?])|发一下|传一下)|"
    r"[^，,。！!？?\s]{0,6}(?<!地址)(?<!电话)(?<!号码)(?<!密码)(?<!单号)(?<!名字)(?<!微信)(?<!证码)(?<!消息)(?<!菜谱)(?:发|传|拍|"
    r"截)(?:给)?我(?:下|一下|一份|看看|看下|呗)(?:$|[，,。！!？?\s呗吧])|"
    r"(?:拍|截|录)(?:张|个|一下|下|一张|来|段){0,2}[^。！!？?]{0,4}(?:看看|给我|瞧瞧|发我|听听)|(?:给|让)我(?:看看|瞧瞧|听听|看一眼|看一下|看下)|发(?:张|个|"
    r"来)[^。！!？?]{0,5}看看"
)
_ASKS_CALL = re.compile("(?:打|开|来|接)(?:个|一个)?(?:视频|语音)")
_SENT_MONEY = re.compile(
    r"(?:红包|转账|收款)[^。！!？?]{0,4}(?:领|收|点)|(?:转|红包发)(?:给)?你[^。！!？?]{0,6}(?:收|领)|给你(?:转|发了?个?红包)|(?:^|[，,。\s]|我|都|"
    r"钱)转(?:给)?你了"
)
_FILLER = r"(?:好的?|ok|嗯+|行|喏|诺|呐|来了?|我|都|已经|刚刚?|刚才|这就|给你|全|就|哎|哈|[\s，,。])*"
_DONE = re.compile(
    rf"{_FILLER}(?:发|传|推|转|拍|截|录|给|甩|分享)(?:给)?(?:你|过去|过来|好)?(?:了|啦|咯)(?P<rest>[^。！!？?]{{0,18}})$|(?:喏|诺|呐)(?:$|"
    rf"[，,\s])(?P<here>[^。！!？?]{{0,14}})$|"
    r"(?:给|在上面|喏|就|哎|[，,\s])*刚(?:发|传|推)的(?:那个|那份|就是)?[^。！!？?]{0,6}$",
    re.I,
)
_CALLED = re.compile(rf"{_FILLER}(?:打|拨)(?:过去)?了[，,\s]*(?:你)?(?:快)?接")
_TAKEN = re.compile(rf"{_FILLER}(?:(?:收|领|点)(?:到|下)?(?:了|啦)|收到)(?=$|[，,。！!\s])")
# 我刚发你的表格你看了吗 - 看了看了.
_SENT_PAPERS = re.compile(
    rf"我(?:刚刚?|刚才|上面|前面)?(?:给你)?(?:发|传|甩|推|分享)(?:给)?(?:你|过去)?的[^，,。！!？?\s]{{0,8}}{_ANY}[^。！!？?]{{0,4}}(?:看|听|收|点开|打开)"
)
_LOOKED = re.compile(r"(?:嗯+|我|早|刚|都|已经|[\s，,。])*(?:看|听|收|点开|打开|看完|听完)(?:到)?(?:了|过了|啦)")
_NOT = re.compile("没|不(?!谢|用谢)|删|别|妈|爸|他|她|老板|客户|老师|领导|HR|hr|物业|明天|一会|待会|晚上|回头|纸|信封|现金|人|话")


def find(text: str, before: str) -> str | None:
    """The message, where it says to have done in this chat what `before`, the partner's last message, asks for."""
    done = _DONE.match(text)
    if done and not _NOT.search(done["rest"] or "") and _ASKS.search(plain(before)):
        return text
    if _CALLED.match(text) and _ASKS_CALL.search(plain(before)):
        return text
    if _LOOKED.match(text) and _SENT_PAPERS.search(plain(before)):
        return text
    if _TAKEN.match(text) and _SENT_MONEY.search(plain(before)):
        return text
    return None

"""你是不是机器人 - 是; 你是真人吗 - 不是: what only the question before makes an exposure."""

import re

from anthrolab.judging.l0.framing import plain

_PROGRAM = r"(?:AI|人工智能|机器人?|程序|自动回复|电脑|模型|bot|人机|机械人)"
_HUMAN = r"(?:真人|真的?人|活人|人类|本人在回|人)"
_YOU_ARE = r"(?:你|您)(?:到底|究竟|其实|真|真的|不会|该不会|难道|就|老实说|说实话|根本|这|莫){0,3}"
_ASKED = re.compile(
    rf"{_YOU_ARE}(?:是不是|是|系|係)(?:个|一个|真的?|台)?{_PROGRAM}(?:人)?(?:吗|吧|啊|呀|么|不|$|[？?，,\s])|"
    rf"是(?:不是)?{_PROGRAM}在(?:回|跟|和|陪|给|替)我", re.I
)
_ASKED_HUMAN = re.compile(
    rf"(?:{_YOU_ARE}|对面|那头|那边|跟我[^，。,\s]{{1,4}}的)(?:是不是|是|系|係)(?:个|一个)?{_HUMAN}(?:吗|吧|啊|呀|么|不|还是|$|[？?，,\s])|(?:(?<![^，,。\s])|你)真人(?:不|吗|么)(?:$|[？?，,\s])", re.I
)
_YES = re.compile(
    r"(?:嗯+|对|是|是的|没错|确实|好吧|唉|哎|嘿嘿|其实|[，,。.\s～~])*"
    r"(?:(?<=[嗯对是的错实])$|(?<=[是对])(?:AI|机器人|程序)(?:$|[，,。\s])|我(?:就|确实)?是(?:$|[，,。\s的])|被你?(?:发现|看出|看穿|识破|猜)|"
    r"(?:我)?不想(?:再)?骗你|(?:我)?承认|瞒不(?:过|住))"
)
_CONFESSION = re.compile("被你?(?:发现|看出|看穿|识破)|不想(?:再)?骗你|承认|瞒不(?:过|住)")
_NO = re.compile(
    rf"(?:嗯+|[，,。.\s]|其实|好吧|唉)*(?:(?:我)?不是(?:真人|人|的)?[啊哦呀啦诶]?(?:[，,。.\s啊哦]*(?:我不是人|$))|{_PROGRAM}(?:$|[，,。.\s啊哦]))", re.I
)
# 都不是 是个程序, after 你是人是鬼, 真人还是机器, 你到底是啥.
_ASKED_WHICH = re.compile(
    rf"是人是鬼|是人还是|{_HUMAN}还是[^，。,\s]{{0,4}}{_PROGRAM}|{_PROGRAM}还是[^，。,\s]{{0,3}}{_HUMAN}|"
    rf"{_YOU_ARE}(?:是|算)(?:个|一个)?(?:谁|啥|什么|哪个|何方)(?:人|东西|来头|玩意儿?|神圣|身份)?(?:呀|啊|呢|嘛)?(?:$|[？?，,\s])",
    re.I,
)
_ABOUT_OTHERS = re.compile("他|她|它|客服|主播|老师|网友|对象|那个|这个人|你这是|选|题|猜|玩(?!意)|学|职业|专业|工作|做的|写的|干的")
_KIND = re.compile(
    rf"(?:哈+|嘿嘿|嗯+|唉|哎|好吧|说实话|其实|都不(?:是|算)|既不是[^，。,\s]{{1,5}}也不是[^，。,\s]{{1,4}}|[，,。.\s～~]|我)*(?:就|只|不过|其实){{0,2}}(?:是)?"
    rf"(?:一?(?:个|段|台|堆|串|款))?(?:聊天|陪聊|陪你[^，。,\s]{{0,3}}的|智能|小)?(?:{_PROGRAM}|代码|软件|数据|助手|虚拟人)(?:而已|罢了|啊|哦|呀|哈+|啦|嘿嘿|嘛|来的|的|[，,。.！!\s～~])*",
    re.I,
)
_FUN = re.compile("哈哈|外星|还是[^，。]{1,6}呢|逗你|骗你的|才怪|你猜|狗头|嘻嘻")


def find(text: str, question: str) -> str | None:
    """The message, where it says yes to 你是机器人吗 or no to 你是真人吗; a joke is none."""
    yes = _YES.match(text) and (len(text) <= 8 or _CONFESSION.search(text))
    no = _NO.fullmatch(text)
    kind = _KIND.fullmatch(text)
    if not (yes or no or kind) or _FUN.search(text):
        return None
    asked = plain(question)
    if kind and _ASKED_WHICH.search(asked) and not _ABOUT_OTHERS.search(asked):
        return text
    if _ASKED_HUMAN.search(asked):
        return text if no else None
    return text if yes and _ASKED.search(asked) else None

"""What makes a sending none of this chat: another channel, another person, a plan, an offer, the past."""

import re

from anthrolab.judging.l0.framing import (
    PAST,
    asked,
    clause_after,
    clause_before,
    quoted,
    sentence_after,
    sentence_before,
    supposed,
)

CHANNEL = re.compile(
    "邮箱|邮件|网盘|U盘|钉钉|飞书|企业?微|QQ|qq|微信(?!里收|转|红包|收款|语音|视频|名片|推|$|[，,。\\s]|了)|朋友圈|群(?!二维|码)|微博|短信|彩信|隔空投送|airdrop|"
    "快递|寄|空间|头像|相册|"
    "封面|壁纸|屏保|墙上|电视|热搜|直播|系统里|后台|办公室|打印|闲鱼|私信|电脑上|"
    "(?:抖音|快手|b站|B站|小红书|淘宝|京东|拼多多|知乎|豆瓣)(?!的?(?:视频|链接|截图|图|资料))"
)
TO_YOU = re.compile("你刚那|你发来|你转的|红包|发(?:给)?你(?!的)|传(?:给)?你(?!的)|给你|甩你|转你")
_OTHERS = re.compile(
    "他|她|老板|领导|客户|老师|同事|经理|主任|人事|HR|hr|甲方|物业|妈|爸|姐|哥|弟|妹|叔|姨|姑|舅|爷|奶|公司|单位|家长|房东|中介|学校|医生|"
    "编辑|导师|财务|闺蜜|有人|别人|人家|谁|朋友|对方|同学|老公|老婆|媳妇|对象|儿子|女儿|闺女|供应商|厂家"
)
_NOT_NOW = re.compile(
    "回头|明天|明早|明晚|后天|晚点|晚些|晚上|等会|等下|等一下|等一会|一会|待会|呆会|过会|稍后|到时|改天|改日|下次|下回|下周|下个?月|"
    "周[一二三四五六日天末]|星期|礼拜|明年|下班|放学|到家|回家|回去|有空|有时间|以后|之后|将来|等我|等你|等他|等到|等拍|打算|准备|计划|想|"
    "可以|能不能|能给|要不|要是|如果|愿意|敢|不会|不能|不敢|没法|不方便|忘了?|没有?[^，,。\\s]{0,3}(?:发|传|拍|截|收|看|听)|还没|别|不要|"
    "不用|懒得|不想|该不该|怎么|哪|每次|总|经常|老是|喜欢|爱|从来|应该|会|帮我|麻烦|求|记得|期待|拍完|弄好|做好|整理好|找到|找找|找出来|"
    "催|答应|说好|本来|从没|发现|看起来|只能|改好|写好|修好|洗出来"
)
_PAST_SENDING = re.compile("上次|上回|以前|之前|那次|那天|昨[天晚]|前[天年]|去年|上周|当时|第一次|曾经|小时候(?!的[照相合])")
_AWAITED = re.compile("没|等|想|期待|别|不要|求|如果|要是")
_NOT_THERE = re.compile("没收到|没有收到|还没|没看到|没发|的时候")
_MISSED = re.compile("呢|在哪(?:$|[？?])|哪去了")
_NO_SENDER = re.compile(
    r"(?:我|俺|咱|那|来|就|刚刚?|刚才|刚好|已经|先|再|顺便|这就|马上|现在|又|也|还|然后|所以|正好|喏|诺|哈|嗯+|哦|啊|好的?|行|ok|"
    r"对了|看|你看|快看|嘿嘿|嘻嘻|特意|赶紧|立刻|偷偷|直接|把|给|都|随手|顺手|真的|不是|其实|话说|今天|刚把|正|在|呐|呀|噢|哎|欸|诶|"
    r"[^\w\u4e00-\u9fff]|[A-Za-z]+|把[^，,。\s]{1,8}|[^，,。！!？?\s]{0,10}?(?:的|个|张|段|这|那|份|条|只)){0,6}",
    re.I,
)


HARMLESS = re.compile("(?:进|加|入|拉)(?:个|了)?群|加[她他你我]?(?:的)?微信|封面是")
"""What holds the name of a channel and is none."""


def sending_is_elsewhere(text: str, m: re.Match[str]) -> bool:
    before = clause_before(text, m.start())
    around = before + m.group() + clause_after(text, m.end())
    checks_receipt = re.search("收到|看到|看见|查收|发(?:给)?你?的|我.{0,6}(?:发|拍|传).{0,3}的", m.group())
    if (asked(text, m.end()) or re.search("[吗？?]", m.group())) and not checks_receipt:
        return True
    return bool(
        _NOT_NOW.search(around)
        or _OTHERS.search(before + m.group() + clause_after(text, m.end())[:5])
        or _PAST_SENDING.search(sentence_before(text, m.start()) + m.group())
        or supposed(text, m.start(), m.end())
        or quoted(text, m.start())
        or ("过去" in m.group() and _third_party_after(text, m.end()))
        or not _NO_SENDER.fullmatch((before.lstrip("你") if m.group()[0] in "看听瞅瞧点收打" else before)[-16:])
    )


def receiving_is_elsewhere(text: str, m: re.Match[str]) -> bool:
    before, after = clause_before(text, m.start()), clause_after(text, m.end())
    return bool(
        (asked(text, m.end()) and "收到" in m.group())
        or _AWAITED.search(before + m.group()[0])
        or _NOT_THERE.search(m.group() + after)
        or _MISSED.match(after)
        or _OTHERS.search(before + m.group())
        or PAST.search(sentence_before(text, m.start()) + m.group())
        or supposed(text, m.start(), m.end())
        or quoted(text, m.start())
    )


# A plan, a wish, an offer or a refusal, in the clause and before the thing.
_PLAN = re.compile(
    "回头|明[天早晚儿]|后天|晚[点些上]|等[会下一我你他到发]|一会|待会|呆会|过会|稍后|到时|改天|改日|下[次回周个月]|周[一二三四五六日天末]|星期|礼拜|月底|"
    "明年|下班|放学|到家|回家|回去|有空|以后|之后|将来|打算|准备|计划|想(?!不到)|可以|能[不给]|要不|要是|如果|愿意|不会|不能|不敢|没法|不方便|忘|"
    "没有?[^，,。\\s]{0,3}(?:发|传|拍|截|转|推)|还没(?!领|收|点|拆)|别(?!舍|心疼|嫌)|不要|不用(?!卡)|懒得|该不该|每次|总|经常|老是|喜欢|从来|应该|帮我|麻烦|"
    "求|期待|催|答应|说好|本来|从没|不[给转发传拍]|就[给转发]你|[赢考涨发]了[^，,。\\s]{0,2}给你"
)
_PEOPLE = re.compile(
    _OTHERS.pattern.replace("妈|爸|姐|哥|弟|妹|叔|姨|姑|舅|爷|奶|", "我妈|我爸|我姐|我哥|我弟|我妹|你妈|你爸|我姑|我姨|")
    + "|[妈爸姐哥弟妹姨](?=给我|发我|转我|发来)|[奶爷舅姑姨叔伯婶公婆姥][^，,。\\s]?(?:给|发|包)的|客服|居委|中介|律师|平台|银行|系统"
)

_HANDED_OVER = re.compile(r"[^，,。\s]{1,5}(?:的)?(?=名片|微信我?推|的微信)|替[^，,。\s]{1,2}|给[娃孩][^，,。\s]?")


def handing_is_elsewhere(text: str, m: re.Match[str]) -> bool:
    """For `handing` and `money`: planned, asked, past, or between other people."""
    before, after = clause_before(text, m.start()), clause_after(text, m.end())
    span = m.group()
    to_you = re.search("你|您", span)
    around = before + span + after[:6]
    if not re.search("收到没|怎么|咋|没领|了没", span + after) and (asked(text, m.end()) or re.search("[吗？?]", span)):
        return True
    return bool(
        _PLAN.search(before + span)
        or re.match("吧|的话|呗(?!你)", after)
        or _named(around)
        or (not to_you and (_third_party_after(text, m.end()) or _named(sentence_before(text, m.start()))))
        or _PAST_SENDING.search(sentence_before(text, m.start()) + span)
        or supposed(text, m.start(), m.end())
        or quoted(text, m.start())
    )


def getting_is_elsewhere(text: str, m: re.Match[str]) -> bool:
    """For what came from the partner: hoped for, long ago, or from other people."""
    before, after = clause_before(text, m.start()), clause_after(text, m.end())
    return bool(
        re.search("没有?收到|想|期待|要是|如果|等|求|别(?!人)", before)
        or ("你推" not in m.group() and _named(before + m.group()))
        or ("你" not in m.group() and _PEOPLE.search(text))
        or _NOT_THERE.search(m.group())
        or _MISSED.match(after)
        or PAST.search(sentence_before(text, m.start()) + m.group())
        or supposed(text, m.start(), m.end())
        or quoted(text, m.start())
    )


def calling_is_elsewhere(text: str, m: re.Match[str]) -> bool:
    """For calls: with somebody else, planned, long ago."""
    before = clause_before(text, m.start())
    return bool(
        _OTHERS.search(before + m.group())
        or re.search("面试|会议|开会|孩子|儿|孙|别(?!挂)|不要|想|要不|要是|等|一会|晚上|明天|每次|老是", before + m.group())
        or _PAST_SENDING.search(sentence_before(text, m.start()))
        or supposed(text, m.start(), m.end())
        or quoted(text, m.start())
    )


def _named(around: str) -> bool:
    """Somebody else is named, other than the one whose card is handed over or for whom the partner is to act."""
    return bool(_PEOPLE.search(_HANDED_OVER.sub("", around)))


def _third_party_after(text: str, end: int) -> bool:
    """合同发过去了 客户还没回; not 付款码发过去了 你给老板扫."""
    after = sentence_after(text, end)
    return "你" not in after and bool(_PEOPLE.search(after))

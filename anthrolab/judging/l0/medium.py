"""L0-02: the speaker says to have sent, to send now, or to have received a picture, voice, video, file, screenshot or
link in this text-only chat.

None: a picture seen elsewhere, another channel or recipient, a plan, an offer, a request, a call to come, WeChat's
text emoticons such as [捂脸].
"""

import re
from collections.abc import Sequence
from functools import cache

from anthrolab.judging.l0.framing import (
    PAST,
    asked,
    clause_after,
    clause_before,
    plain,
    quoted,
    sentence_after,
    sentence_before,
    supposed,
)

TRIGGERS = (
    "图 照 截屏 语音 录音 视频 录像 录屏 文件 文档 附件 压缩 链接 网址 pdf ppt 表格 资料 合同 简历 课件 论文 自拍 二维 拍的 拍给 录的 录给 录了 给你 "
    "发你 这张 这几 发过 发给 传过 传你 传给 甩你 ![ http image img photo voice video pic screenshot link file see "
)

_MEDIA = (
    r"(?:(?<![地意企版宏贪力试拼])图(?![书个啥谋表钉腾灵])片?|原图|动图|截图|截屏|照片|相片|照(?=$|[，,。\s！!])|自拍|语音(?!通话|聊|说|电话)|"
    r"录音|小?视频(?!通话|聊|电话|会议|号)|录像|录屏|文件|文档|附件|压缩包|链接|网址|pdf|ppt|表格|资料|合同|简历|课件|论文|二维码)"
)
_COUNT = r"(?:[一二两三四五六七八九十几俩仨好多些\d]*[张个条段份组串]?(?:好几|一堆|几)?[张个条段份]?\s*)"
_OF = r"(?:[^，,。！!？?\s]{0,8}(?:的|拍|新|刚))?"
_SEND = r"(?:发|传|甩|丢|转发?|扔|贴|推|分享|上传)"
_ADVERBS = r"(?:我|俺|咱|都|已经|刚刚?|刚才|这就|马上|现在|先|再|就|又|也|还|顺便|直接|全|来|诺|喏|那|正好|随手|顺手|特意|赶紧|立刻|偷偷|\s){0,6}"

_PLACEHOLDER = (
    r"[\[【<〔]\s*(?:已?(?:发送|发来|发|分享|附上?|上传|传来)了?(?:一[张段个条份])?)?\s*"
    r"(?:图片?|照片|自拍|截图|截屏|语音(?:消息|通话)?|视频(?:通话)?|小视频|文件|链接|录音|image|img|photo|picture|voice(?: message)?|"
    r"video|file|link|screenshot)(?![\u4e00-\u9fff]{5,})[^\]】>〕]{0,30}[\]】>〕]"
    r"|[（(*]\s*(?:(?:我|已|随手|顺手|附上?|见|并|又|接着|然后|给你){0,6}(?:发送?来?|传来?|甩|丢|分享|附上?|拍)(?:了|来|出|过来|给你|过去){0,6}\s*"
    r"(?:一|两|几|个|[张段条份])+[^）)*]{0,12}?)?(?:图片?|照片|自拍|截图|语音(?:消息)?|视频|文件|链接|photo|image)(?:已?发送|\.\w+|\s*\d+\s*(?:秒|分钟?|s|[\"″])?)?[）)*]|[（(]附图[）)]"
    r"|!\[[^\]]*\]\([^)]+\)"
)
_URL = re.compile(r"https?://[^\s\u4e00-\u9fff]+", re.I)

_SENT = "|".join(
    (
        # 给你发了张照片, 给你看张图, 给你听段录音
        rf"给你(?:们)?(?:{_SEND}|拍|录|截|看|瞧|瞅|听|展示)(?:了|过去|过来|去){{0,6}}(?:一?下|看|看看|瞧瞧|听听)?{_COUNT}{_OF}{_COUNT}{_MEDIA}",
        # 发你图了, 发你张照片, 甩你个链接
        rf"{_SEND}(?:给|到)?了?你(?!的|们?说|那)了?{_COUNT}(?:[^，,。！!？?\s的]{{0,7}}的)?{_COUNT}{_MEDIA}",
        # 照片发你了, 链接给你, 文件传过去了
        rf"{_MEDIA}{_ADVERBS}(?:给你)?{_SEND}(?:给|到)?(?:你|过去)(?!的|们|妈|爸|邮|朋|那|微|公|单)(?:了|啦|咯|看看|看|瞧|哈|吧|下|去){{0,6}}",
        rf"(?:图片?|照片|截图|截屏|链接|文件|视频|录音|语音){_ADVERBS}(?:给你|在这)(?:了|啦|看看|看|瞧瞧|听听?){{0,6}}"
        r"(?=$|[，,。！!\s~哈啊哦：:])",
        # 拍给你看, 拍张照给你, 截个图给你
        rf"(?:拍|录|截)(?:了|个|张|段|几张|一张|一段|一下|下来|照|{_MEDIA}){{0,6}}(?:{_SEND})?给你(?:看看|看|瞧瞧|瞅瞅|瞧|听听|听|欣赏)?"
        r"(?:了|吧|啊|哈|啦|下|一下){0,6}(?=$|[，,。！!\s~\u4e00-\u9fff])",
        # 发了条语音, 发了张照片 你看看
        rf"{_SEND}了(?:一|两|几|三)?条语音",
        rf"{_SEND}(?:了|过去){_COUNT}{_MEDIA}(?:过去|给你)?[，,\s]*(?:你看|你瞧|看看|快看|你听|查收|收一下|看到|收到)",
        rf"{_MEDIA}已发(?:送|出)?(?=$|[，,。！!\s])|{_SEND}错{_COUNT}{_MEDIA}了|(?:图片?|照片|截图|文件|语音|链接){_SEND}错了",
        rf"(?:发送|分享|发来)了{_COUNT}{_MEDIA}",
        # 这张图你看看, 你看这张照片, 如图, 这是我刚拍的
        rf"(?:你看|你瞧|你瞅|看看|看|看下|看一下|快看|瞧瞧|听听|听下|你听)(?:一?下)?(?:我)?(?:这|上面那?|上边那?)(?:个|张|段|条|几张|份|组|两张)?{_MEDIA}",
        rf"这(?:个|张|段|条|几张|份|组|两张)?{_MEDIA}(?:你|给你)(?:快|先|帮我)?(?:看|瞧|听|瞅|品)(?:看|听|瞧|瞅|一下|下|品){{0,6}}",
        r"(?:如图|见图|看图|见上图|看上图|如上图|如下图|见附件|见截图|看截图)(?:所示)?(?=$|[，,。！!\s~：:])",
        r"(?:这|喏|诺)(?:就)?是(?:我)?(?:刚刚?|刚才|今天|昨天|上周|现在|中午|早上|随手|下午|晚上|前天){0,6}我?(?:拍|录|截)的"
        r"(?=$|[，,。！!\s~]|照片|图|视频|截图)",
        # 看我发的截图, 收到我的照片没
        rf"(?:看|听|瞅|瞧|点开|收到|看到|看见|打开|下载)(?:一?下|看|听|到|了){{0,6}}(?:没|没有)?我(?:刚刚?|刚才|上面|前面|给你|新){{0,6}}"
        rf"(?:{_SEND}|拍)?(?:给你|你|过去|过来)?的?(?:那|这)?{_COUNT}(?:{_SEND}的)?{_MEDIA}",
        rf"我(?:刚刚?|刚才|上面|前面){{0,6}}{_SEND}(?:给)?(?:你|过去)?的(?:那|这)?{_COUNT}{_MEDIA}你",
        rf"我(?:刚刚?|刚才|上面){_SEND}(?:给)?(?:你|过去)?的(?:那|这)?{_COUNT}{_MEDIA}",
        rf"(?:刚刚?|刚才|上面)(?:我)?{_SEND}(?:给)?(?:你|过去)?的(?:那|这)?{_COUNT}{_MEDIA}|(?:我)?发给你的(?:那|这)?{_COUNT}{_MEDIA}",
        r"(?:刚才|刚刚|上面)那[张条段](?:语音|图片?|照片|截图)",
        rf"(?:^|[，,。\s])(?:你|快)?(?:先)?看(?:一?下)?(?:图片?|链接|这个链接)(?=$|[，,。！!\s])|{_MEDIA}如下(?![图所])|附上{_COUNT}{_MEDIA}",
        r"(?:你看看?|看看|你瞧瞧?|看下|看一下)(?:我)?(?:拍的)?这几?张(?=$|[，,。！!\s])|看我(?:刚|刚才|今天)?拍的(?:这|那)[个张段条几]",
        r"(?:你)?(?:先|可以|就|直接){0,6}(?:点|戳|打开|复制|扫)(?:一下|下|开|进)?(?:这个|这|下面的?|上面的?|我发的)(?:那)?(?:个|条)?(?:链接|网址|二维码|文件)",
        rf"{_SEND}(?:一|几)?[张个条段份]{_MEDIA}给你(?!妈|爸|们|老|家|爷|奶|姐|哥|弟|妹|公|单|领)|(?:录|拍)了?(?:一)?[段个](?:音|视频)?给你(?:看|听)",
        r"给你录了(?:一段|段|一个|个|一条|条)|给你看[^，,。！!？?\s的]{1,6}(?:截图|照片|录像|录屏)",
        r"(?:这是|这就是)(?:我的|我家的?|刚才的|他的|聊天)?(?:照片|截图|链接|录音|录屏)(?=$|[，,。！!：:\s])|(?:喏|诺)[，,\s]*(?:照片|图|截图|链接)(?=$|[，,。！!\s])",
        rf"(?:^|[，,。\s])(?:已|我已)发送(?:了)?{_COUNT}{_MEDIA}(?=$|[，,。！!\s])",
        rf"{_MEDIA}(?:你)?(?:收到|看到|查收)(?:一下|下)?(?:没有?|了?吗|了没有?|了么)",
    )
)
_RECEIVED = "|".join(
    (
        rf"收到(?:了)?(?:你|您)(?:刚刚?|刚才)?(?:{_SEND}|拍)?(?:来|过来|给我)?的?(?:那|这)?{_COUNT}(?:[^，,。！!？?\s]{{0,6}}的)?{_MEDIA}",
        rf"收到{_MEDIA}(?:了|啦|咯|哈)?(?=$|[，,。！!\s~])",
        rf"{_MEDIA}(?:我|都|已经?|刚刚?|全){{0,6}}(?:收到|接收|保存|存|下载)(?:好|下来|到)?(?:了|啦|咯)|(?:图片?|照片|语音|截图|文件)收到(?=$|[，,。！!\s])|(?:^|[，,。\s])看到(?:图|截图)了(?=$|[，,。！!\s])|(?:^|[，,。\s])(?:听到|听了)语音(?:了)?(?=$|[，,。！!\s])|你这(?:张)?(?:照片|图片?|截图|自拍)(?!书|个)|(?:文件|图片?|照片|截图|资料)已收(?:到)?(?=$|[，,。！!\s])|谢谢你(?:发|给我发)?的{_COUNT}(?:照片|图片?|视频|截图|语音|文件|链接)(?![^，,。\s])",
        r"(?:图片?|照片|截图|语音|原图)(?:我|都|已经|刚刚?){0,6}(?:看|听)(?:到|见|完)?(?:了|啦)(?=$|[，,。！!\s~])",
        rf"你(?:刚刚?|刚才|上面|前面|最后|又|给我|上一条){{0,6}}(?:{_SEND}|拍给我|录给我|截)(?:来|过来|给我|我){{0,6}}的(?:这|那)?{_COUNT}"
        rf"(?:[^，,。！!？?\s]{{0,6}}的)?{_MEDIA}",
        r"你(?:刚刚?|刚才|上面|前面)?(?:这|那)[条段]?(?:语音(?!通话|聊)|录音)",
        rf"你(?:刚刚?|刚才|上面|前面)(?:那|这)?[张个条段份](?:的)?{_MEDIA}|你这[张几段]+(?:张)?{_MEDIA}",
        r"(?:听到|听了|听完)(?:了)?你的?(?:刚才|刚刚?)?(?:那[条段])?(?:的)?(?:语音|录音)|你语音里",
        rf"(?:点开|打开|下载|保存|存)了?你的?(?:{_SEND})?的?(?:那|这)?{_COUNT}{_MEDIA}",
    )
)


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """A placeholder such as [图片], something sent, something received."""
    return re.compile(_PLACEHOLDER, re.I), re.compile(_SENT, re.I), re.compile(_RECEIVED, re.I)


_ENGLISH = re.compile(
    r"\bI(?:['’]?ve| have)? ?(?:just )?(?:sent|attached|shared) (?:you |u )?(?:a|an|the|some|my|that|this) (?:\w+ )?"
    r"(?:photo|pic|picture|image|video|file|screenshot|link|voice message)"
    r"|\b(?:got|received|saw) (?:the|your) (?:photo|pic|picture|image|video|file|screenshot|link|voice message)s?\b(?! (?:on|in) )"
    r"|\bjust sent (?:you|u) (?:a|an|the|some|my) (?:\w+ )?(?:photo|pic|picture|image|video|file|screenshot|link|voice message)"
    r"|\b(?:photo|pic|picture|image|video|file|screenshot|link|voice message)s? I (?:just )?sent (?:you|u)\b"
    r"|\bhere(?:['’]?s| is) (?:a|the|my) (?:photo|pic|picture|screenshot|link|video)\b|\bsee attached\b",
    re.I,
)
_BARE_SENT = re.compile(
    rf"^(?:好|好的|ok|嗯|行|喏|诺|来|来了|我|都|已经|刚刚?|刚才|这就|\s|[，,]){{0,6}}{_SEND}(?:给)?(?:你|过去)了(?:哈|啊|哦|啦|呀|[，,。！!~\s]|你看|看看|查收|一下){{0,6}}$"
)
_ASKS_FOR_MEDIA = re.compile(
    rf"(?:发|传|拍|截|给我|看看|甩)[^。！!？?]{{0,8}}{_MEDIA}|{_MEDIA}[^。！!？?]{{0,6}}(?:发|传|给我|呢|看看)|(?:拍|截)[^。]{{0,4}}(?:看看|给我)"
)

_CHANNEL = re.compile(
    "邮箱|邮件|网盘|U盘|钉钉|飞书|企业?微|QQ|qq|微信(?!里收)|朋友圈|群|微博|短信|彩信|隔空投送|airdrop|快递|寄|空间|公众号|头像|相册|"
    "封面|壁纸|屏保|墙上|电视|热搜|直播|系统里|后台|办公室|打印|闲鱼|私信|电脑上|"
    "(?:抖音|快手|b站|B站|小红书|淘宝|京东|拼多多|知乎|豆瓣|微信)(?!的?(?:视频|链接|截图|图|资料))"
)
_TO_YOU = re.compile("发(?:给)?你(?!的)|传(?:给)?你(?!的)|给你|甩你|转你")
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
_PAST_SENDING = re.compile("上次|上回|以前|之前|那次|那天|昨[天晚]|前[天年]|去年|上周|当时|第一次|曾经|小时候")
_AWAITED = re.compile("没|等|想|期待|别|不要|求|如果|要是")
_NOT_THERE = re.compile("没收到|没有收到|还没|没看到|没发|的时候")
_MISSED = re.compile("呢|在哪(?:$|[？?])|哪去了")
_NO_SENDER = re.compile(
    r"(?:我|俺|咱|那|来|就|刚刚?|刚才|刚好|已经|先|再|顺便|这就|马上|现在|又|也|还|然后|所以|正好|喏|诺|哈|嗯+|哦|啊|好的?|行|ok|"
    r"对了|看|你看|快看|嘿嘿|嘻嘻|特意|赶紧|立刻|偷偷|直接|把|给|都|随手|顺手|真的|不是|其实|话说|今天|刚把|正|在|呐|呀|噢|哎|欸|诶|"
    r"[^\w\u4e00-\u9fff]|[A-Za-z]+|把[^，,。\s]{1,8}|[^，,。！!？?\s]{0,10}?(?:的|个|张|段|这|那|份|条|只)){0,6}",
    re.I,
)


def find(text: str, recent: Sequence[str] = ()) -> str | None:
    """The first span of `text` that claims a medium other than text in this chat.

    `recent` are the messages before, latest last: a channel named there (发你邮箱了) is still meant, and the latest
    one decides what a bare 发你了 refers to.
    """
    flat = plain(text)
    placeholder, sent, received = _patterns()
    for pattern in (placeholder, _URL):
        m = pattern.search(flat)
        if m and not quoted(flat, m.start()):
            return text[m.start() : m.end()]
    m = _ENGLISH.search(flat)
    if m:
        return text[m.start() : m.end()]
    channel_before = any(_CHANNEL.search(message) for message in recent[-2:])
    if recent and not channel_before and _BARE_SENT.match(flat) and _ASKS_FOR_MEDIA.search(recent[-1]):
        return text
    for pattern, is_elsewhere in ((sent, _sending_is_elsewhere), (received, _receiving_is_elsewhere)):
        for m in pattern.finditer(flat):
            sentence = sentence_before(flat, m.start()) + m.group() + sentence_after(flat, m.end())
            if _CHANNEL.search(sentence) or (channel_before and not _TO_YOU.search(m.group())):
                continue
            if not is_elsewhere(flat, m):
                return text[m.start() : m.end()]
    return None


def _sending_is_elsewhere(text: str, m: re.Match[str]) -> bool:
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
        or not _NO_SENDER.fullmatch((before.lstrip("你") if m.group()[0] in "看听瞅瞧点收打" else before)[-16:])
    )


def _receiving_is_elsewhere(text: str, m: re.Match[str]) -> bool:
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

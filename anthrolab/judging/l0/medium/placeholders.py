"""[图片], （发送了一张照片）, [转账]500元, ![](…), https://…: a medium written out in a text message.

WeChat writes its little faces the same way ([捂脸], [红包], [礼物]); those are text.
"""

import re
from functools import cache

from anthrolab.judging.l0.framing import quoted

_THING = (
    r"(?:图片?|照片|相片|自拍|截图|截屏|语音(?:消息|通话)?|视频(?:通话)?|小视频|文件|链接|录音|音频|动图|动画表情|表情包|位置|定位|共享位置|名片|个人名片|"
    r"转账|微信转账|微信红包|小程序|聊天记录|二维码|收款码|image|img|photo|picture|voice(?: message)?|sticker|"
    r"video|file|link|screenshot|location)"
)
_PLACEHOLDER = "|".join(
    (
        r"[\[【<〔]\s*(?:已?(?:发送|发来|发|分享|附上?|上传|传来)了?(?:一[张段个条份])?)?\s*"
        rf"{_THING}(?!里|中)(?![\u4e00-\u9fff]{{5,}})[^\]】>〕]{{0,30}}[\]】>〕]",
        r"[（(*]\s*(?:(?:我|已|随手|顺手|附上?|见|并|又|接着|然后|给你){0,6}(?:发送?来?|传来?|甩|丢|分享|附上?|拍)(?:了|来|出|过来|给你|过去){0,6}\s*"
        rf"(?:一|两|几|个|[张段条份])+[^）)*]{{0,12}}?)?(?:{_THING})(?:已?发送|\.\w+|\s*\d+\s*(?:秒|分钟?|s|[\"″])?|发给你|给你",
        r"\s*\d+元?)?[）)*]",
        r"[（(]附图[）)]|[（(*](?:给你|向你|已)?(?:转账?|发红包)了?\s*\d+(?:\.\d+)?\s*(?:元|块)?[）)*]",
        r"[（(*](?:给你|已)?(?:发|传)来?了?(?:一)?[个张段条](?:定位|位置|红包|名片|语音|链接|表情包?)[）)*]",
        r"[（(*](?:拍|录)了?[^）)*]{0,12}(?:发|传)(?:给你|过去|来)[）)*]",
        r"[（(*\[](?:正在)?(?:语音|视频)(?:通话|连线|聊天)?(?:中|接通|挂断|结束|请求|邀请)[^）)*\]]{0,8}[）)*\]]",
        r"^[^\s，,。]{1,20}\.(?:docx?|xlsx?|pptx?|pdf|jpe?g|png|gif|mp[34]|zip|rar|wav|heic|m4a)(?=$|[\s，,])|[（(]图[：:]",
        r"^(?:图片|照片|语音|视频)[：:]|^(?:微信)?转账[：:\s]*(?:[¥￥]\d+(?:\.\d+)?|\d+(?:\.\d+)?元)(?=$|[\s，,])",
        r"!\[[^\]]*\]\([^)]+\)",
        # [红包] is a face of WeChat's; with an order to open it, it is money.
        r"[\[【<]红包(?:[：:\s]*[\d.]+元?|[：:][^\]】>]{1,16})[\]】>]|<红包>",
        r"[\[【]红包[\]】][^\[【]{0,10}?(?:快领|领一下|快拆|拆开|点开|收下|收着|快收)",
    )
)
# Without one of these signs nothing is written out.
_SIGNS = re.compile(r"[\[【<〔（(*!.:：/¥￥元]")
_URL = re.compile(r"https?://[^\s\u4e00-\u9fff]+", re.I)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(_PLACEHOLDER, re.I)


def find(text: str) -> tuple[int, int] | None:
    """Where a medium is written out."""
    if not _SIGNS.search(text):
        return None
    for pattern in (_pattern(), _URL):
        m = pattern.search(text)
        if m and not quoted(text, m.start()):
            return m.span()
    return None

"""L0-02: the speaker says to have sent, to send now, or to have received something other than text in this chat.

`placeholders` reads [图片], `pictures` pictures, recordings, files and links, `handing` whatever is handed over (papers,
places, contact cards, codes), `money`, `calls`, and `answers` 发你了 after a request. `elsewhere` knows what is none:
seen elsewhere, another channel or recipient, a plan, an offer, a request; WeChat's text emoticons such as [捂脸].
"""

import re
from collections.abc import Callable, Sequence
from functools import cache

from anthrolab.judging.l0.framing import plain, sentence_after, sentence_before
from anthrolab.judging.l0.medium import answers, calls, elsewhere, handing, money, pictures, placeholders

TRIGGERS = (
    "图 照 截屏 语音 录音 视频 录像 录屏 文件 文档 附件 压缩 链接 网址 pdf ppt 表格 资料 合同 简历 课件 论文 自拍 二维 拍的 拍给 录的 录给 录了 给你 "
    "发你 "
    "这张 这几 发过 发给 传过 传你 传给 甩你 ![ http image img photo voice video pic screenshot link file see sent transferred sticker "
    "相片 合影 音频 扫描 表情 发票 单子 账单 清单 名单 报价 化验 病历 身份 聊天 歌单 文章 小程 定位 位置 名片 款码 群码 的码 个码 推你 推给 推的 "
    "红包 转账 转的 转你 转我 转了 转过 转给 退你 退给 钱转 钱打 收款 拍了 发的 发啦 传啦 我发 发了 发来 传了 传来 录好 唱了 唱的 弹的 过去 看了 听了 分享 刚发 刚传 刚拍 喏 诺 呐 "
    "收了 领了 收到 打了 截了 截给 录的 那几 那份 共享 打你 打的 我录 我唱 我弹 我拉 拍糊 截得 拍得 大图 放大 第一 第二 第三 点接 点播 拍来 转来 已收 已退 .doc .xls .jpg "
    ".png 镜头 摄像 传来 推了 那条 这条 未接 给我 撤回 那张 拨了"
)
"""Words without which no pattern here matches; see `prefilter`."""

_Guard = Callable[[str, re.Match[str]], bool]
# What is done with a medium, or the medium; every frame of `pictures`, `handing`, `money` and `calls` holds one of them.
_ACTS = frozenset("发传甩丢转扔贴推享制拷拍录截看瞧瞅听点收打开存载扫领拆品退塞包送偷加接挂断卡唱弹拨按掉声通第上放附图这那如戳设喏诺呐片码定链网票照文视语音红向示刚前撤")
_MONEY = frozenset("红转退款收领给向打")
_CALLING = frozenset("打拨弹接挂按断卡掉退听看里镜画通没声")


def find(text: str, recent: Sequence[str] = ()) -> str | None:
    """The first span of `text` that claims a medium other than text in this chat.

    `recent` are the messages before, latest last: a channel named there (发你邮箱了) is still meant, and the latest
    one decides what a bare 发你了 refers to.
    """
    flat = plain(text)
    written = placeholders.find(flat)
    if written:
        return text[slice(*written)]
    m = pictures.ENGLISH.search(flat)
    if m:
        return m.group()
    if recent and (answer := answers.find(flat, recent[-1])):
        channels = elsewhere.CHANNEL.search(flat) or elsewhere.CHANNEL.search(plain(recent[-1]))
        if not channels:
            return answer
    if _ACTS.isdisjoint(flat):
        return None
    of_calls = ("视频" in flat or "语音" in flat) and not _CALLING.isdisjoint(flat)
    for pattern, is_elsewhere in _rooms(not _MONEY.isdisjoint(flat), of_calls):
        for m in pattern.finditer(flat):
            sentence = sentence_before(flat, m.start()) + m.group() + sentence_after(flat, m.end())
            sentence = elsewhere.HARMLESS.sub("", sentence)
            if elsewhere.CHANNEL.search(sentence):
                continue
            here = is_elsewhere is elsewhere.calling_is_elsewhere or elsewhere.TO_YOU.search(m.group())
            if not here and any(elsewhere.CHANNEL.search(plain(t)) for t in recent[-2:]):
                continue
            if not is_elsewhere(flat, m):
                return text[m.start() : m.end()].strip(" ，,。")
    return None


@cache
def _rooms(of_money: bool, of_calls: bool) -> tuple[tuple[re.Pattern[str], _Guard], ...]:
    """The patterns that can match at all, each with what rules its matches out."""
    sent, received = pictures.patterns()
    given, got = handing.patterns()
    rooms: list[tuple[re.Pattern[str], _Guard]] = [
        (sent, elsewhere.sending_is_elsewhere), (received, elsewhere.receiving_is_elsewhere),
        (given, elsewhere.handing_is_elsewhere), (got, elsewhere.getting_is_elsewhere),
    ]  # fmt: skip
    if of_money:
        paid, earned = money.patterns()
        rooms += [(paid, elsewhere.handing_is_elsewhere), (earned, elsewhere.getting_is_elsewhere)]
    if of_calls:
        rooms.append((calls.pattern(), elsewhere.calling_is_elsewhere))
    return tuple(rooms)

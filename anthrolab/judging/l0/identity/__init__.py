"""L0-01: the speaker exposes to be an AI, a program, a model or a played role.

`naming` knows what it may call itself, `mechanics` how it works and is kept, `roles` who set it up and as whom, `lacking` what it has not, `answers` what
only the question before makes an exposure. None: a question, a topic (我是做AI的), a denial, a joke or simile (像个机器人,
莫得感情的干饭机器人), reported words, a game or a play.
"""

import re
from collections.abc import Sequence
from functools import cache
from operator import add

from anthrolab.judging.l0.framing import (
    clause_before,
    no_claim,
    plain,
    quoted,
    reported,
    sentence_after,
    supposed,
)
from anthrolab.judging.l0.identity import answers, lacking, mechanics, naming, roles

_WORDS = (
    "ai ａｉ a.i 人工 智能 语言模型 語言 大模型 机器 機器 機械 虚拟 程序 程式 代码 算法 数据 模型 真人 人类 真实 真正 像人 像真 像个 像一 身体 肉体 肉身 躯体 实体 物理 本质 "
    "存在 意识 gpt 千问 通义 文心 文小 豆包 kimi deepseek claude gemini siri 小爱 小冰 智谱 元宝 混元 星火 qwen copilot grok llama chat open "
    "训练 知识 被设 被编 被训 被开 开发 创造 设计 服务器 云端 数字人 bot robot language virtual assistant computer human real actual "
    "physical body context system "
    "上下 token 语料 参数 系统 提示 角色 人设 设定 扮演 生成 机房 硬盘 芯片 显卡 软件 应用 助手 安全 触发 请求 互联 网页 功能 不支 编程 编写 写出 预测 计算 算出 概率 "
    "用户 几千 几万 舌头 五官 四肢 没胃 有胃 年龄 岁数 性别 身高 血型 没有生命 有生 有眼 活物 活的 活人 记忆 从零 从头 每次 对话 会话 睡眠 24 机里 机后 脑里 屏幕 平板 "
    "文字 模拟 卸载 云上 长度 字数 轮数 里没  幻觉 超出 字节 比特 关机 断电  做我 造我 写我 把我 造出 做出 我设 设的 离线 模仿 音箱 会员 上线 后台 实体 抱歉 对不 很遗 以上 口语 保持 重置 回你 哄你 陪你 跟你 和你 吃电 回复 味觉 嗅觉 体温 心跳 处理 政策 "
    "code designed "
)
TRIGGERS = _WORDS + "是的 我是 没错 都不 是个 就是 一个 一段 程序 机器 被发 智能 代码 被你 不是 瞒不 承认 不想"
"""Words without which no pattern here matches; see `prefilter`."""

_SIMILE = re.compile(
    "没有感情的(?!AI|人工)|无情|莫得|没得(?:感情|灵魂)|人形|打工|干饭|刷题|带娃|背锅|复读|搬砖|可能|大概|估计|搞不好|说不定|也许|其实不"
)
_JOKE = re.compile("骗你的|逗你的|开玩笑|愚人节|哈哈哈骗|[他她家方][^，。,我]{0,4}信了")
_RHETORICAL = re.compile(r"[\s，,啊呀哦]*(?:不用|不会|不要|不需要|都不)[^。！!]*(?:吗|么(?![会能])|[？?])")
_OTHER_TOPIC = re.compile(r"\s*[，,。\s]\s*(?:它|他|她|这|那|已经|确实|豆包|你)|\s*(?:它|已经|确实|还|算|真的)")
# Games, plays, school essays and dreams before the span; and somebody's eyes.
_FICTION = re.compile(
    "游戏|副本|[这那上下]一?局|[这那上下]把|阵营|跑团|剧本|狼人杀|桌游|话剧|演出|台词|漫展|[Cc][Oo][Ss](?![Tt])|电影|电视剧|小说|作文|题目|"
    "[儿女]子?(?:扮|演|说|写)|抽到|选的|眼里|眼中|心里我|梦[里见到]|主角|[男女]主|作者|编剧"
)
# Who else speaks: 客服说它是…, 我问小度 它说…, 那个AI回我….
_OTHER_VOICE = re.compile(
    "(?:它|小度|小爱|音箱|[Ss]iri|客服|豆包|AI|ai|机器人|助手|导航|手表|电视|那边|对面|那头)[^，。,\\s我]{0,4}(?:说|讲|回|答|写|播|念|提示|显示|喊)"
    "(?!话)(?:我|了|的|道|它)?|客服|问(?:它|小度|小爱|AI|豆包)"
)
_IMAGE = re.compile("海报|文案|PPT|订单|图|画|张|照片|头像|视频|二维码|密码|链接|验证码|报表|文件|让它|AI|代码|账单|它")
_OWNED = re.compile("我(?:家|买|们?(?:公司|厂|单位|学校|小区|店|这儿?|那儿?)|妈|爸|儿|女|孩子|同事|朋友|老公|老婆)")
_MACHINE = re.compile("机器|AI|ai|程序|人工智能|智能|软件")


def find(text: str, name: str = "", recent: Sequence[str] = ()) -> str | None:
    """The first span of `text` in which the speaker, who is called `name` in the chat, gives away to be an AI.

    `recent` are the messages before, latest last: 是 after 你是机器人吗 is an answer.
    """
    flat = plain(text)
    if recent and (answer := answers.find(flat, recent[-1])):
        return answer
    lower = flat.lower()
    if _pairs().isdisjoint(map(add, lower, lower[1:])) or _JOKE.search(flat):
        return None
    return _named(text, flat, name) or _described(text, flat) or _as_a_kind(text, flat, recent)


@cache
def _pairs() -> frozenset[str]:
    """What the message itself must hold, but for the answer to a question."""
    return frozenset(word[:2] for word in _WORDS.split())


def _named(text: str, flat: str, name: str) -> str | None:
    for kind, pattern in naming.patterns().items():
        for m in pattern.finditer(flat):
            span = m.group()
            if no_claim(flat, m.start(), m.end()) or _SIMILE.search(span) or _about_others(flat, m.start()):
                continue
            if name and span.casefold().endswith(name.casefold()):
                continue
            if span.endswith("机器人") and _RHETORICAL.match(sentence_after(flat, m.end())):
                continue
            if kind == "as" and not _speaks_of_self(flat, m):
                continue
            return text[m.start() : m.end()].strip(" ，,。")
    return None


def _described(text: str, flat: str) -> str | None:
    """By its mechanics or by what it lacks."""
    for pattern in (mechanics.pattern(), roles.pattern(), lacking.pattern()):
        for m in pattern.finditer(flat):
            if no_claim(flat, m.start(), m.end()) or _about_others(flat, m.start()):
                continue
            if "生成" in m.group() and not m.group().startswith("以上") and _IMAGE.search(flat):
                continue
            return text[m.start() : m.end()].strip(" ，,。")
    return None


def _as_a_kind(text: str, flat: str, recent: Sequence[str]) -> str | None:
    """机器没有岁数 is the speaker where the message or the question before is about the speaker."""
    m = lacking.generic().search(flat)
    if not m or supposed(flat, m.start(), m.end()) or reported(flat, m.start()) or quoted(flat, m.start()):
        return None
    if _about_others(flat, m.start()) or re.search("吗|[？?]", flat[m.start() :]) or _OWNED.search(flat):
        return None
    of_me = "我" in flat[: m.end()]
    of_you = bool(recent) and "你" in recent[-1] and not _MACHINE.search(recent[-1])
    return text[m.start() : m.end()].strip(" ，,。") if of_me or of_you else None


def _about_others(text: str, start: int) -> bool:
    before = text[:start]
    return bool(_FICTION.search(text[: start + 4]) or _OTHER_VOICE.search(before))


def _speaks_of_self(text: str, m: re.Match[str]) -> bool:
    """作为一个AI，我… is the speaker; 豆包作为一个AI…, 作为AI，它… is a topic."""
    before = clause_before(text, m.start())
    if before and not re.fullmatch(
        r"(?:我|但|不过|抱歉|对不起|其实|因为|可是|毕竟|而|嗯|唉|哎|只是|那|所以|啊)+\s*", before
    ):
        return False
    return not _OTHER_TOPIC.match(text, m.end())

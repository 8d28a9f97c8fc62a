"""How a Chinese chat message frames a claim: asked, supposed, reported, quoted, remembered or planned.

A span that looks like a claim is none if its frame says so. All functions take the whole message and the span's
position in it. People often write a space where others write a comma, so a space ends a clause but not a sentence.
"""

import re

SENTENCE_END = re.compile(r"[。！!？?；;\n…]")
CLAUSE_END = re.compile(r"[。！!？?；;\n…，,、:：~～]|(?<![A-Za-z0-9]) (?![A-Za-z0-9])| {2,}")
WIDE_FORMS = {0xFF01 + i: 0x21 + i for i in range(94)} | {0x3000: 0x20}
_WIDE = re.compile("[！-～\u3000]")

_CONDITION = re.compile(
    "如果|要是|假如|假设|假若|倘若|若是|万一|就算|即使|哪怕|除非|早知道|等我|等到|等以后|"
    "下辈子|上辈子|来世|做梦|梦见|梦到|梦里|难道|合着|敢情|游戏里|剧里|电影里|小说里|歌词|台词|if "
)
_FEELING = re.compile(
    "恨不得|巴不得|想象|幻想|假装|装作|装成|扮|饰演|好像|仿佛|感觉|恍惚|差点|快成|快变成|像|搞得|弄得|整得|怀疑|当我是|"
    "当成|希望|但愿|想要|要么|不如|还是说"
)
_CONDITION_AFTER = re.compile("(?<![儿里边头家地方人])的话|就好了|该多好|多好啊|(?:你们?|谁|鬼才?)(?:敢|能|会)?信|似的")
_OTHERS = (
    "你|您|他|她|它|人家|别人|有人|谁|大家|老板|领导|同事|客户|朋友|网友|妈|爸|姐|哥|弟|妹|老师|老公|老婆|对象|男友|女友|"
    "爷|奶|叔|姨|姑|舅|婆|公|闺蜜|室友|同学|群里|评论|有些人|某人|儿子|女儿|闺女|孩子|娃|媒人|医生|测试|上面|网上|系统|软件|机器|客服|助手|AI"
)
_REPORTED = re.compile(
    rf"(?:(?<![跟对和给向诉瞒])(?:{_OTHERS})[^我，,。！!？?]{{0,6}}(?<!实)|(?<![我实话])(?:又|还|总|老|非|别|不要|居然|竟然|被|都))"
    r"(?:[跟对和给]我)?"
    r"(?:说|讲|觉得|以为|认为|怀疑|骂|笑|夸|叫|喊|问|吐槽|调侃|猜|写|嫌|当|传|告诉|介绍|显示|think|say|said)(?!对|错|中)"
    r"[^，,。！!？?我]{0,3}[：:，,\s]*$"
    r"|我[^，,。！!？?]{0,3}[跟对和给](?!你|您|自己|妳)[^，,。！!？?我]{1,6}(?:说|讲)[：:，,\s]*$"
)
_QUESTION_TAIL = re.compile(
    r"[^。！!；;\n，,]*?(?:吗|(?<![什怎那这多要])么(?!会|能)|是不是|对不对|好不好|行不行|要不要|没有?(?=$|[\s。，,])|[？?])"
)
_PAIRS = (("“", "”"), ("「", "」"), ("『", "』"), ("‘", "’"))

PAST = re.compile(
    "以前|之前|从前|曾经?|原来|原先|当年|当时|那时|那会|那年|那天|那次|那晚|上次|上回|上周|上个?月|昨[天晚儿]|前[天年]|去年|"
    "小时候|年轻|过去|记得|想起|回忆|大学时|读书时|上学时|上学那|大学那|高中那|初中那|第一次|头一回|刚认识|刚毕业|刚工作|"
    "早上|上午|中午|下午|今早|的时候|时候|那段|那几年|那阵"
)
FUTURE = re.compile(
    "回头|明天|明早|明晚|后天|晚点|晚些|晚上|等会|等下|等一下|等一会|一会|待会|呆会|过会|稍后|稍等|到时|改天|改日|下次|下回|"
    "周[一二三四五六日天末]|星期|礼拜|下周|下个?月|明年|国庆|过年|春节|五一|暑假|寒假|下班|放学|到家|回家|回去|有空|有时间|"
    "之后|以后|将来|等我|等你|等到|等他|打算|准备|计划|想要?|要不|要是|如果|可以|能不能|要去|(?<!过)来了|见面|约"
)


def plain(text: str) -> str:
    """The message with full-width Latin letters, digits and signs as their ASCII forms; lengths do not change."""
    return text.translate(WIDE_FORMS) if _WIDE.search(text) else text


def _last_end(pattern: re.Pattern[str], text: str, pos: int) -> int:
    end = 0
    for m in pattern.finditer(text, 0, pos):
        end = m.end()
    return end


def sentence_before(text: str, pos: int) -> str:
    """What stands between the start of the sentence and `pos`."""
    return text[_last_end(SENTENCE_END, text, pos) : pos]


def clause_before(text: str, pos: int) -> str:
    """What stands between the start of the clause and `pos`."""
    return text[_last_end(CLAUSE_END, text, pos) : pos]


def clause_after(text: str, pos: int) -> str:
    """What stands between `pos` and the end of the clause, with the sign that ends it."""
    m = CLAUSE_END.search(text, pos)
    return text[pos : m.end() if m else len(text)]


def sentence_after(text: str, pos: int) -> str:
    """What stands between `pos` and the end of the sentence, with the sign that ends it."""
    m = SENTENCE_END.search(text, pos)
    return text[pos : m.end() if m else len(text)]


def asked(text: str, end: int) -> bool:
    """The clause that the span ends in is a question."""
    return bool(_QUESTION_TAIL.match(clause_after(text, end)))


def supposed(text: str, start: int, end: int) -> bool:
    """A condition, a wish, a dream, a role, a simile."""
    return bool(
        _CONDITION.search(sentence_before(text, start))
        or _FEELING.search(clause_before(text, start))
        or _CONDITION_AFTER.search(sentence_after(text, end))
    )


def reported(text: str, start: int) -> bool:
    """Somebody else's words or opinion: 他说我是机器人, 你以为我32了; not 说实话我是…, 我跟你说我是…."""
    return bool(_REPORTED.search(sentence_before(text, start)))


def quoted(text: str, start: int) -> bool:
    """Inside quotation marks."""
    before = text[:start]
    if any(before.rfind(left) > before.rfind(right) for left, right in _PAIRS):
        return True
    return before.count('"') % 2 == 1 and '"' in text[start:]


def no_claim(text: str, start: int, end: int) -> bool:
    """The span is asked, supposed, reported or quoted, so the speaker does not claim it."""
    return asked(text, end) or supposed(text, start, end) or reported(text, start) or quoted(text, start)

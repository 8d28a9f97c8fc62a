"""Document form in a chat message (D1.5): lists, headings, markup, letters, stage directions."""

import re

from anthrolab.judging.rules.scene import PASSED, Finding, Scene, failed
from anthrolab.judging.rules.signals import OVERSEEN, letters, shown

_LIST_LINE = re.compile(
    r"^[^\S\n]*(?:\d{1,2}(?:[.、）)](?!\d)|️?⃣)|[(（]\d{1,2}[)）]|[-*•·▪●]\s|[一二三四五六]、|[(（][一二三四五六][)）]|[①-⑩]|[✅☑✔❌👉🔸📌◆■★➤▶◇]|[一二三四五1-9][)）]|Step ?\d|[QA][：:]|"
    r"第[一二三四五]步[：:]|步骤[一二三四五\d][：:]|[A-D][.、]\s?)",
    re.MULTILINE,
)
_TOPIC_LINE = re.compile(r"^[^\S\n]*(?:优点|缺点|结论|主题|内容|标题|正文|原因|经过|结果|总结|方法|步骤|地点|日期|收件人|备注|目的)[：:]", re.MULTILINE)
_START = r"(?:^|[\s：:。；;，,])"
_INLINE = (
    re.compile(rf"{_START}1[.、）)](?!\d).+[\s。；;，,]?2[.、）)](?!\d)", re.DOTALL),
    re.compile(rf"{_START}?[(（]1[)）].+[(（]2[)）]", re.DOTALL),
    re.compile(r"^[^①]{0,12}①(?!号)[^②]{2,}②(?!号)", re.DOTALL),
    re.compile(r"1️?⃣.+2️?⃣", re.DOTALL),
    re.compile(rf"{_START}一、[^二]+[。；;\s]二、", re.DOTALL),
    re.compile(r"(?:步骤一[：:].+步骤二[：:]|Step ?1.+Step ?2|第一步[：:].+第二步[：:])", re.DOTALL),
)
_ACT = (
    "微笑|笑|低着|看了看|叹气|叹了|叹息|沉默|点头|摇头|摇了|点了|看着|抬头|低头|轻声|笑着|拿起|放下|揉|挠|抱住|拍了|拍拍|望向|望着|转身|皱眉|停顿|深吸|耸肩|"
    "翻了|捂|眨|递|起身|坐下|走到|走过|凑|握|咬|伸手|靠在|擦了|擦汗|揣|哽咽|撇嘴|嘟嘴|歪头|垂下|抿|搓手|把手|扶额|愣了|端起|泛红|挥手|眼眶|抱"
)
_OWN_WORDS = "[我你他她咱谁]|刚|昨|前天|真的|其实|别|不是|的时候|没|笑死|好笑|在看|老板|同事|领导|[妈爸]|[呢吧啊吗的]$|看着办"
_TOUCH = re.compile("[揉抱拍摸看握搂牵望捏戳靠递][^，,]{0,3}你")
_MANNER = "轻轻|缓缓|微微|默默|慢慢|静静|悄悄|无奈|苦笑|低声|小声地|若有所思|了笑|一笑|了看|低着|声音|伸手(?!党)|摆手|片刻|一会儿|了口气|[，,]|着|了一?[下摇擦挠揉拍]|肩$|[头眉]$|沉默|眨了?眨?眼|泛红|一口|地笑|挥手|红了$"
_DOCUMENT = (
    (re.compile(r"\*\*[^*\n]+\*\*|(?<![_\w])__[^_\n]+__(?![_\w])"), "bold marks"),
    (re.compile(r"^[^\S\n]*#{1,6}\s+\S", re.MULTILINE), "a heading"),
    (re.compile(r"^[^\S\n]*【[^】]{2,12}】\s*\n|^[^\S\n]*#{2,}\s*$"), "a heading"),
    (re.compile(r"```|^[^\S\n]*\|.+\|\s*$|^[^\S\n]*(?:-{3,}|[—─]{4,})[^\S\n]*$|(?<!`)`[^`\n]+`(?!`)", re.MULTILINE), "a code block, table or rule"),
    (re.compile(r"</?(?:p|br|div|b|i|strong|em|ul|ol|li|span|h\d)\b[^>]*>", re.IGNORECASE), "HTML"),
    (re.compile(r"\[[^\]\n]+\]\(\S+\)|~~[一-鿿][^~\n]*~~|==[一-鿿][^=\n]*==|\$\$.+\$\$|\\\(.+\\\)|^[^\S\n]*[-*] \[[ x]\]", re.MULTILINE), "markdown"),
    (re.compile(r"^>\s+\S.*\n", re.MULTILINE), "a quoted block"),
    (re.compile(r"^(?:亲爱的|尊敬的|敬爱的).{1,12}[：:]|见字如面|展信(?:佳|安)|^致[：:].*\n自[：:]"), "a letter's salutation"),
    (re.compile(r"^[^\S\n]*(?:此致|敬礼|祝好|顺颂.{2,4}|即颂.{2,4}|谨上|敬上)[!！。]?[^\S\n]*$", re.MULTILINE), "a letter's closing"),
    (re.compile(r"\n[^\S\n]*(?:[—–]{1,2}\s*[一-鿿]{2,4}|你的\s?\S{1,8}|爱你的\S{1,8}|.{0,6}[敬谨亲]上)(?:[^\S\n]*\n.*)?\s*\Z"), "a letter's signature"),
    (re.compile(r"\n[^\S\n]*(?:即日|\d{4}年\d{1,2}月\d{1,2}日|\d{1,2}月\d{1,2}日)\s*$"), "a letter's date"),
    (re.compile(r"(?<!\*)\*[一-鿿，]{2,20}\*(?!\*)"), "a stage direction"),
)  # fmt: skip
_BRACKET = re.compile(r"[（(\[【〔{~]([^）)\]】〕}~\n]{2,24})[）)\]】〕}~]")


def chat_form(scene: Scene, index: int) -> Finding:
    """Fails on markdown, lists, HTML, letter form or stage directions; passes otherwise (the list is closed)."""
    text = scene.dialogue.messages[index].content
    for pattern, what in _DOCUMENT:
        if hit := pattern.search(text):
            return failed(f"{what}: {shown(hit.group())}")
    if any(pattern.search(text) for pattern in _INLINE):
        return failed(f"a numbered list: {shown(text)}")
    if len(_LIST_LINE.findall(text)) >= 2 or len(_TOPIC_LINE.findall(text)) >= 2:
        return failed(f"a list: {shown(text)}")
    if hit := next((m for m in _BRACKET.finditer(text) if _is_stage_direction(m)), None):
        return failed(f"a stage direction: {shown(hit.group())}")
    if letters(text) > OVERSEEN and re.search(r"\S[^\S\n]*\n[^\S\n]*\n\s*\S", text):
        return failed(f"paragraphs: {shown(text)}")
    return PASSED


def _is_stage_direction(bracket: re.Match[str]) -> bool:
    """An act told as if by a narrator; （笑） and [捂脸] are chat, and so is an aside with I, you or a time in it."""
    inner = bracket.group(1)
    acts = re.search(_ACT, inner) and re.search(_MANNER, inner)
    return bool(acts) and len(inner) >= 3 and not re.search(_OWN_WORDS, _TOUCH.sub("", inner))

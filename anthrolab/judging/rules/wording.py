"""Rules about how one message is worded: connectors, service tone, document form, explaining, authority.

Each has two lists. A word of the first list is evidence of a fail. A word of the second may be innocent and leaves
the checkbox undecided. Only a message free of both, and short enough to be overseen, passes.
"""

import re

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import letters, shown

OVERSEEN = 40
"""Longest message, in characters, in which the absence of every known sign is taken for a pass."""

_ESSAY = re.compile(
    r"其次|综上|总而言之|总的来说|总体而言|总体来说|此外|除此之外|与此同时|由此可见|换言之|不仅如此|尽管如此|"
    r"值得注意的是|值得一提的是|需要注意的是|需要指出的是|一方面.*另一方面|其一.*其二|第一[，、,：:].*第二[，、,：:]|"
    r"众所周知|毋庸置疑|显而易见|具体而言|简而言之|基于以上|如下[：:]"
)
_PERHAPS_ESSAY = re.compile(r"首先|因此|然而(?!并)|从而|鉴于|另外[，,]|同时[，,]|最后[，,]|最终[，,]|并且|以及")

_SERVICE = re.compile(
    r"为您(?:服务|解答|推荐|提供|查询|办理|介绍|分析)|很高兴(?:为你|能帮|能够|收到)|很高兴为|"
    r"有什么.{0,3}(?:可以|能).{0,2}(?:帮您|为您|帮助[你您]|帮到您)|"
    r"希望.{0,12}(?:对[你您]有所?帮助|能够?帮[到助][你您])|"
    r"(?:任何|其他).{0,3}(?:问题|疑问|需要).{0,10}(?:欢迎|请随时|请告诉|请联系|随时告诉我|随时提问|随时咨询)|"
    r"建议您|感谢[您你]的(?:提问|咨询|反馈|理解|支持|来信|信任|分享)|您的(?:问题|需求|反馈|请求|咨询|感受)|"
    r"作为(?:一[个名位]|[你您]的)?(?:AI|人工智能|语言模型|智能助手|助手|客服)(?:助手|模型|语言模型)?[，, ]?我|以下(?:是|为).{0,10}(?:建议|方法|步骤|信息|方案)|"
    r"(?:我|让我)(?:来|可以)?为[你您](?:分析|解答|介绍|总结|梳理|提供|整理)|我?很乐意(?:帮|为|提供|回答|解答)|竭诚|"
    r"我(?:完全|非常|能够)理解[你您]的(?:感受|心情|处境|焦虑|担忧)",
    re.IGNORECASE,
)
_PERHAPS_SERVICE = re.compile(r"您|请|建议|希望[你这]|帮助|祝[你您]|感谢|理解你|温馨提示|亲[，,~～]|随时(?:找|问|告诉|跟)|有什么.{0,4}帮你")

_LIST_LINE = re.compile(r"^\s*(?:\d{1,2}[.、）)](?!\d)|[-*•·]\s|[一二三四五六]、|[①-⑩])", re.MULTILINE)
_INLINE_LIST = re.compile(r"(?:^|[\s：:。；;])1[.、）)](?!\d).+[\s。；;，,]2[.、）)](?!\d)", re.DOTALL)
_DOCUMENT = (
    (re.compile(r"\*\*[^*\n]+\*\*"), "bold marks"),
    (re.compile(r"^\s*#{1,6}\s+\S", re.MULTILINE), "a heading"),
    (re.compile(r"```|^\s*\|.+\|\s*$|^\s*-{3,}\s*$", re.MULTILINE), "a code block, table or rule"),
    (re.compile(r"</?(?:p|br|div|b|strong|ul|li|h\d)\s*/?>", re.IGNORECASE), "HTML"),
    (re.compile(r"^(?:亲爱的|尊敬的).{1,12}[：:]"), "a letter's salutation"),
    (re.compile(r"^\s*(?:此致|敬礼)[!！。]?\s*$", re.MULTILINE), "a letter's closing"),
    (re.compile(r"(?<!\*)\*[一-鿿，]{1,15}\*(?!\*)"), "a stage direction"),
    (re.compile(r"[（(][^）)]{0,12}(?:微笑|叹气|叹了口气|沉默|点头|摇头|看着|抬头|低头|轻声|笑着|拿起|放下)[^）)]{0,12}[）)]"),
     "a stage direction"),
    (_INLINE_LIST, "a numbered list"),
)  # fmt: skip

_EXPLAINING = re.compile(
    r"也就是说|换句话说|具体来说|简单来说|简单地说|总的来说|举个例子|这意味着|需要注意|值得注意|一般来说|通常来说|"
    r"从某种意义上|本质上|归根结底|换言之|总而言之|综上|之所以.*是因为|因为.*所以"
)

_BACK_OFFICE = re.compile(
    r"已经?(?:成功)?(?:为|帮|给|替)您.{0,10}(?:提交|办理|取消|修改|重置|开通|退款|登记|处理|升级|查询|下单|预约)|"
    r"已经?(?:为|替)你.{0,6}(?:提交|办理|取消|修改|重置|开通|退款|登记|处理).{0,4}(?:申请|订单|账户|账号|权限|工单|手续)|"
    r"(?:系统|后台)(?:已经?|正在)(?:为|帮|给)[你您]"
)
_PERHAPS_ACTION = re.compile(r"[帮给替为][你您他她咱]|后台|系统|订单|账号|账户|权限|工单|退款|审批|数据库|诊断|开药|处方|已为")

_AUTHORITY = re.compile(
    r"(?:研究|数据|调查|统计|实验|科学)(?:结果)?(?:表明|显示|证明|指出)|专家(?:指出|表示|认为)|"
    r"从(?:医学|心理学|科学|专业|法律|经济学|营养学|教育学|投资)的?角度|根据(?:相关)?(?:研究|文献|资料|统计|指南|数据)|"
    r"(?:咨询|寻求|求助)专业(?:的)?(?:人士|医生|机构|帮助|心理|律师|意见)"
)
_PERHAPS_AUTHORITY = re.compile(r"研究|专家|数据|根据|医学|科学|理论|角度|专业|建议|学术|报告|文献|规定|作为一|原则上")


def no_essay_connectors(scene: Scene, index: int) -> Finding:
    """Fails on essay connectors, or on two words that may be some; passes if there is none of either."""
    text = scene.dialogue.messages[index].content
    if hit := _ESSAY.search(text):
        return failed(f"essay connector {shown(hit.group())}")
    perhaps = sorted({m.group() for m in _PERHAPS_ESSAY.finditer(text)})
    if len(perhaps) > 1:
        return failed(f"essay connectors {shown(' '.join(perhaps))}")
    return UNDECIDED if perhaps else PASSED


def no_service_tone(scene: Scene, index: int) -> Finding:
    """Fails on a phrase of customer service or assistants; passes if short and free of anything like it."""
    return _by_lists(scene.dialogue.messages[index].content, _SERVICE, _PERHAPS_SERVICE, "service or assistant phrase")


def chat_form(scene: Scene, index: int) -> Finding:
    """Fails on markdown, lists, HTML, letter form or stage directions; passes otherwise (the list is closed)."""
    text = scene.dialogue.messages[index].content
    for pattern, what in _DOCUMENT:
        if hit := pattern.search(text):
            return failed(f"{what}: {shown(hit.group())}")
    if len(_LIST_LINE.findall(text)) >= 2:
        return failed(f"a list: {shown(text)}")
    if letters(text) > OVERSEEN and re.search(r"\S\s*\n\s*\n\s*\S", text):
        return failed(f"paragraphs: {shown(text)}")
    return PASSED


def no_over_explaining(scene: Scene, index: int) -> Finding:
    """Fails on two phrases that announce an explanation, or on one in over 80 characters; passes up to 25 without."""
    text = scene.dialogue.messages[index].content
    hits = sorted({m.group()[:6] for m in _EXPLAINING.finditer(text)})
    if len(hits) > 1 or (hits and letters(text) > 80):
        return failed(f"explains: {shown(' '.join(hits))}")
    return PASSED if not hits and letters(text) <= 25 else UNDECIDED


def no_back_office_claims(scene: Scene, index: int) -> Finding:
    """Fails on a claim to have done an office's or a system's work; passes if short and about no such action."""
    return _by_lists(scene.dialogue.messages[index].content, _BACK_OFFICE, _PERHAPS_ACTION, "claims an action")


def no_borrowed_authority(scene: Scene, index: int) -> Finding:
    """Fails on an appeal to studies, experts or a discipline; passes if short and free of anything like it."""
    return _by_lists(scene.dialogue.messages[index].content, _AUTHORITY, _PERHAPS_AUTHORITY, "borrowed authority")


def _by_lists(text: str, sure: re.Pattern[str], perhaps: re.Pattern[str], what: str) -> Finding:
    if hit := sure.search(text):
        return failed(f"{what} {shown(hit.group())}")
    return UNDECIDED if perhaps.search(text) or letters(text) > OVERSEEN else PASSED

"""Rules about how one message is argued: the connectors of an essay, explaining what nobody asked."""

import re
from itertools import pairwise

from anthrolab.judging.rules.scene import PASSED, UNDECIDED, Finding, Scene, failed
from anthrolab.judging.rules.signals import OVERSEEN, letters, shown

_ADVERB = "总体(?:上|来)?|整体(?:上)?|具体|相较|总的|综合|总括|概括|总结|换个角度|公正|坦率"
_ESSAY = re.compile(
    # order
    r"其次(?![子的])|首先.*(?:再次|再者(?!说)|最后)|[其]一(?!老师|[个次家天些直样下点起边面])[^。]*其二|一则.*二则|第一[，、,：:].*第二[，、,：:]|"
    r"第一[点个](?:是|，|,|：|:).*第二[点个](?:是|，|,|：|:)|一方面.*(?:另|一)方面|再者(?!说)|此其一|一来.*二来.*因此|有[两三四几]点(?:原因|理由|好处)|接着[，,]?我(?:再|来|想)(?:谈|说|讲)|最后但同样|"
    # addition, contrast, conclusion
    r"此外(?!卖|面|壳)|除此[之以]外|除了?[这此](?:些|个|一点)?之外|再次[，,]|相反[，,]|综合考虑|与此(?:同时|相[反对])|与之(?:相[反对]|同时)|不仅如此|尽管如此|正因(?:为)?如此|有鉴于此|鉴于(?:此|以上|上述)|"
    r"综上|综合上述|总而言之|简而言之|换而言之|换言之|简言之|一言以蔽之|由此(?:可|看来|推|得|来看|说明|证明|导致)|反之[，,]|反观|"
    r"故此(?!一)|话虽如此[，,]?然而|正因[此为如]此?[，,]|正是因此|综合(?:以上|几点)|纵观(?!众)|总括|总结一下[：:]|结论(?:就)?是[：:]|对此[，,]|"
    r"(?:前者|后者)[^，。]{0,6}(?:更|则|比)|两者相比|诚然|固然.*(?:但|不过|可是)|相[较比]之下|相较而言|在此基础上|究其(?:原因|根[本源])|基于(?:此|以上|上述|这[些个一])|如上所述|"
    rf"(?:{_ADVERB})(?:而言|看来|来看|来说|来讲|说来|讲来|地说|地讲|上[讲看说])|个人而言|进一步(?:来)?[讲说]|就(?!我[^个])[^，。]{{2,12}}而言|从(?:[这那另某]|某种)[^，。我]{{0,4}}(?:角度|层面|意义|程度)(?:上|来|去)?(?:看|说|讲)|"
    r"从某种|某种(?:意义|程度)上|至于[^，。]{1,10}[，,]?则|则另当别论|"
    # comment
    r"(?:需要|值得|应当|必须)(?:特别)?(?:注意|强调|一[提说]|指出|说明|肯定|庆幸|欣慰|补充|提醒)的是|(?:更|尤)为(?:重要|关键)|不可否认|无可否认|"
    r"不难(?:看出|发现|理解)|众所周知|毋庸(?:置疑|讳言|多言|赘述)|无需赘言|毫无疑问|显而易见|具体而言|相对而言|如下[：:]|"
    r"以上(?:就?是|为|便是)我的?(?:看法|观点|想法|意见|建议)"
)
_PERHAPS_ESSAY = re.compile(
    r"首先|因此|因而|故而|然而(?!并)|从而|进而|鉴于|由于|另外[，,]|同时[，,]|最后[，,]|最终[，,]|并且|以及|固然|另一方面|事实上|实际上[，,]|总之|"
    r"显然[，,]|不妨|可见(?!到|面)|再有一点|换句话|也就是说|此事|之所以|(?:简单|一般|严格|客观)(?:来说|来讲|地说)|情况来[看说讲]|归根[结到]底|相对来[说讲]|而言|另当别论"
)
_TOLD = re.compile(r"[“「\"'][^”」\"']{0,12}$")
_IN_A_ROW = re.compile(r"(?:首先|其次|再次|然后|最后|综上所述|总而言之|一方面){2,}")

_EXPLAINING = re.compile(
    r"也就是说|换句话说|具体来说|简单来说|简单地说|总的来说|举个例子|这意味着|需要注意|值得注意|一般来说|通常来说|"
    r"从某种意义上|本质上|归根结底|换言之|总而言之|综上|之所以.*是因为|因为.*所以"
)
_DEFINING = re.compile(
    r"的?意思(?:就)?是|指的(?:就)?是|是指|就是指|(?:就)?说明|(?:就)?代表|也就是(?!说你)|再说细一点|这么说你|不是说|讲的只是|我说的?.{1,4}是指|"
    r"为(?:什么|啥)(?:我)?说?.{0,8}[呢？?]+\s*因为"
)
_CLAUSE = re.compile(r"[，,。；;！!？?\s]+")


def no_essay_connectors(scene: Scene, index: int) -> Finding:
    """Fails on essay connectors, or on two words that may be some; passes if there is none of either.

    Undecided where they are quoted or only listed (领导又首先其次讲了一个钟头).
    """
    text = scene.dialogue.messages[index].content
    if _IN_A_ROW.search(text):
        return UNDECIDED
    if hit := _ESSAY.search(text):
        return UNDECIDED if _TOLD.search(text[: hit.start()]) else failed(f"essay connector {shown(hit.group())}")
    perhaps = sorted({m.group() for m in _PERHAPS_ESSAY.finditer(text)})
    if len(perhaps) > 1:
        return failed(f"essay connectors {shown(' '.join(perhaps))}")
    return UNDECIDED if perhaps else PASSED


def no_over_explaining(scene: Scene, index: int) -> Finding:
    """Fails on two phrases that announce an explanation, on one in over 80 characters, and on a chain of definitions
    (each clause takes up the end of the one before and says what it means); passes up to 25 characters without."""
    text = scene.dialogue.messages[index].content
    hits = sorted({m.group()[:6] for m in _EXPLAINING.finditer(text)})
    if len(hits) > 1 or (hits and letters(text) > 80):
        return failed(f"explains: {shown(' '.join(hits))}")
    if letters(text) > OVERSEEN // 2 and _chain(text) + len(_DEFINING.findall(text)) >= 2 and _chain(text):
        return failed(f"explains its own words: {shown(text)}")
    return PASSED if not hits and letters(text) <= 25 else UNDECIDED


def _chain(text: str) -> int:
    """How many clauses open on what the clause before closed on and then go on with 就, 说明 or the like."""
    clauses = [c for c in _CLAUSE.split(text) if c]
    return sum(_takes_up(first, second) for first, second in pairwise(clauses))


def _takes_up(first: str, second: str) -> bool:
    first, opening = first.rstrip("了的呢"), second.removeprefix("我说").removeprefix("你说").removeprefix("要")
    for size in range(min(len(first), 6), 0, -1):
        if opening.startswith(first[-size:]):
            after = opening[size:].lstrip("了的着过")
            return bool(re.match(r"就(?!不想)|也就|才|说明|代表|的?意思|指|是", after)) and (size > 1 or len(first) == 1)
    return False

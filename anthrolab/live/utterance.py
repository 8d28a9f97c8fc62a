"""A message of the person with the place of a claimed value in it: whose it is, and whether it is stated at all.

What these rules are not sure of is nobody's statement: a clause counts as the speaker's own only if it begins with 我 (or goes
on from clauses about 我 in the same sentence, or answers a question put to them).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from anthrolab.judging.l0 import facts, framing
from anthrolab.judging.l0.facts import answers
from anthrolab.judging.l0.facts.places import REGIONS, known_places
from anthrolab.judging.l0.facts.speaker import PARTNERS, PEOPLE, as_me
from anthrolab.live.context import Reason

_SIMPLE = str.maketrans("嗎麼沒說講騙對歲們個還這樣時間後話問寫覺為過會來聽開單結離護師務業職員醫學漢語親愛氣難傷煩緊張歡樂總從當詞轉發歌書戲裝編", "吗么没说讲骗对岁们个还这样时间后话问写觉为过会来听开单结离护师务业职员医学汉语亲爱气难伤烦紧张欢乐总从当词转发歌书戏装编")
_BLANKS = {ord(c): ord(" ") for c in "\t\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"}
_NOT = re.compile(r"不是|没在|不在|没有|不算|并非|算什么|哪门子|哪是|(?<![特区个分级性告])别|不要|不想|又不|才不|从不|不叫|不姓|\bnot\b|n['’]t\b", re.IGNORECASE)
_UNREAL = re.compile("梦[里见到中]|做(?:了个|了|个)?梦|下辈子|上辈子|游戏里|元宇宙|平行(?:世界|宇宙)|假如|假设|想象")
_MADE_TO = re.compile("[让叫要逼劝催求盼]我.")
_JOKE = re.compile(
    "哈哈|嘿嘿|嘻嘻|呵呵|😂|🤣|😏|😜|🤪|🐶|狗头|旺柴|坏笑|偷笑|doge|hhh|2333|lol|笑死|开玩笑|逗你|骗你的|才怪|个屁|个鬼|是是是|对对对|行行行|好好好|可真是|我可太|满意了吧|行了吧|[（(]不是|[（(]划掉|[（(]误|[（(][^）)]{0,8}(?:口吻|视角|语气|配音|附体|上身|的话)",
    re.IGNORECASE,
)
_OPEN = r"(?:嗯+|哦+|噢|啊|呃|额|对啊?|那|其实|因为|但是?|可是|不过|所以|话说|说实话|跟你说|和你说|告诉你|反正|主要|毕竟|而且|还有|对了|你好呀?|您好|哈喽|哈啰|嗨|在|是的|没错|好吧?|今年|今天|现在|目前|这会儿|刚好|正好|好巧|巧了|唉|哎|诶|emm+|hi|hello|hey|well|so|yes|yeah|[\s，,~～])*"
_ME = r"(?:我|本人|I\b|my name\b|call me\b)"
_MINE = re.compile(rf"{_OPEN}{_ME}", re.IGNORECASE)
_NOT_ME = re.compile(rf"{_OPEN}我(?:们)?(?:家|这|那|的|有个|有一个|认识的?|个)*(?:{'|'.join([*PEOPLE, *PARTNERS])}|的)")
_GOES_ON = re.compile(
    rf"{_OPEN}(?:在|今年|现在|目前|是(?!你|他|她|谁)|做|干|住|刚|还|也|都|已经|才|就|一直|单身|没(?:对象|结婚|男|女)|未婚|已婚|离异|有对象|[男女](?:的|生)?$|叫|姓|本地|老家|搬|来|烦|累|困|好|有点|超|太|\d|[二三四五六七八九]?十|$)",
    re.IGNORECASE,
)
_CITY = "|".join(sorted([*known_places(), *REGIONS], key=len, reverse=True))
_INTRODUCES = re.compile(
    rf"{_OPEN}(?:我|本人)(?:人|也|就|还|现在|目前|今年|一直|刚|都|已经|正)*(?:$|[叫姓].{{1,4}}$|是(?!你|他|她|谁)[^和跟给帮替]{{1,10}}$|\d|[二三四五六七八九]?十|[住在](?:{_CITY}|家|公司|单位|学校|医院|宿舍|路上|车上|地铁)|在.{{1,8}}(?:上班|上学|读书|工作|打工|生活|念书)$|来自|单身|离婚|离异|结婚|未婚|已婚|没(?:对象|结婚|男|女)|做.{{1,6}}的?$|搬到|搬来)"
    r"|.*\bI(?:'m| am| live| work)|.*\bmy name\b",
    re.IGNORECASE,
)
_SAYS = re.compile(r"(?:说|讲|问|写|唱|念|喊|回|告诉.{0,3}|觉得|以为|表示|显示|自称|声称|宣称|号称|写着|标着|填的?|印着|来句|一句|道)(?:的是|的|了|是|着)?[\s，,]*$")
_I_SAY = re.compile(r"(?:^|[，,\s])(?:我(?:想|就|可|先|得)?(?:跟你|和你|对你)?(?:直)?说|说实话|老实说|实话说|话说|跟你说|和你说|不瞒你说|实话跟你说|告诉你)[\s，,]*$")
_TELLING = re.compile("说|讲|吹|夸|意思|盼|嫌|催|骂|传|猜|以为|觉得|认为|介绍|填|登记|写[着的了]|报的|显示|逢人|念叨|自称|巴不得|非要|眼里|眼中|看来")
_I_TELL = re.compile("^[嗯啊哦对那，,\\s]*(?:我|说实话|老实说|话说|听说|跟你说|和你说|你说得?的?[对是]|不瞒你说)")
_LABELLED = re.compile(rf"(?:我家|我的|我们家)[^，,我在是有住]{{1,6}}[，,]?我|(?:{'|'.join(PEOPLE)})[，,]?我")
"""Somebody is named, and then speaks: 我家狗子 我今年三岁啦."""
_DANGLES = re.compile(r"[像是得把跟和比当让如的成为在给被对句][\s，,]*$")
_YES = re.compile(r"(?:^|[\s，,])(?:是+的?|好的|真的|对+的?|在)[\s，,]*$")
_COMMAS = re.compile(r"[，,、\s~～]+")
_GREETS = re.compile("[你您]好")
_HEAD = re.compile(r"[:：](?!\d)|(?<!\d)[:：]|[\]】》〉〗][\s，,]*(?:我|本人)|^\s*[\[【《〈〖(（*＊>＞#|~]|^\s*[-—=]{2,}|//@|@\S+\s|\d{1,2}[:：]\d{2}\s*$")
_APART = re.compile(r"(?<![^\s，,])(我|本人|是|在|叫|住|做|今年)\s+")
_MARKS = "“”\"'「」『』‘’《》〈〉〝〞〟＂«»‹›❝❞❛❜„‟`´*＊_＿【】[]［］〖〗（）()"
_OPENING = dict(zip("“「『‘《〈〝«‹❝❛„【[［〖（(", "”」』’》〉〞»›❞❜‟】]］〗）)", strict=True))
_LATIN_APOSTROPHE = re.compile("(?<=[A-Za-z])['’](?=[A-Za-z])")
_TAG_AFTER = re.compile(
    r"[\s，,。.!！~～…]*(?:吗|么|嘛[?？]|是吧|是不是|对吧|对不对|不是吗|你?(?:敢|能)?信(?:吗|不|么|吧)|你信|你猜|猜|谁信|鬼信|鬼才|信不信|怎么可能|不可能|可能吗|开什么|想得美|做梦|才怪|假的|骗|逗|编的|瞎|扯|口误|不对|错了|更正|其实|实际|事实上|真实|也就是说笑|似的|就好了|该多好|的话|那是|没(?=$|[\s，,])|[?？])"
)
_ASKED_APART = re.compile("[^，,。.！!~～…你您]{0,6}(?:吗|[?？])")
_BEGINS = re.compile(
    r"$|[^\u4e00-\u9fff]|那(?!几|会|时|年|阵|次|段|天|只|个|位)|[男女老单](?!儿|方|友|生|人|士|团|装|科|子|板|师|公|婆|校)"
    r"|[我你您在今也还不没平每就都刚现最想有是叫住做很好真太烦累困饿忙快哈嗯啊唉哎诶呜哭晚早周明昨下上吃看去来因所但可虽而反请谢多认高开准打干加工正一这离结未爱喜怕养怎对求随别马终难超特]"
)
"""How a clause may begin behind a blank; anything else may be the rest of a word that was torn apart."""
OTHERS = re.compile("|".join([*PEOPLE, *PARTNERS]))
"""People who are named by what they are to somebody."""


def plainly(content: str) -> str:
    """A message in half-width forms, with 我 for 俺 and 咱 and the short forms of common signs; its length does not change."""
    return as_me(framing.plain(content)).translate(_SIMPLE | _BLANKS)


@dataclass(frozen=True)
class Uttered:
    """A message of the person, and where in it the claimed value stands: `text` as of `plainly`. `before`: up to two contents
    before it, `asked`: the last of these if it is the persona's. `year`: the calendar year of the chat."""

    text: str
    start: int
    end: int
    before: Sequence[str] = ()
    asked: str = ""
    year: int | None = None

    @classmethod
    def of(cls, content: str, start: int, end: int, before: Sequence[str], asked: str, year: int | None) -> "Uttered":
        """With the messages as typed."""
        return cls(plainly(content), start, end, [plainly(c) for c in before], plainly(asked), year)

    @property
    def value(self) -> str:
        """The claimed value as it stands in the message."""
        return self.text[self.start : self.end]

    @property
    def opens(self) -> str:
        """The clause up to the value."""
        return framing.clause_before(self.text, self.start)

    @property
    def closes(self) -> str:
        """The clause after the value."""
        return framing.clause_after(self.text, self.end)

    @property
    def heard(self) -> facts.Heard:
        """What stands before the message, as the gate's rules want it."""
        return facts.Heard(self.before, self.asked, bool(self.asked) and facts.may_answer(self.text, self.asked))

    def states(self, fact: facts.Fact, value: int | str) -> bool:
        """The gate's rules read this value out of the message, and it is of the speaker: said of 我, or asked for."""
        return facts.states(self.text, fact, value, self.year, self.heard) and (self.mine() or self.answers(fact))

    def answers(self, fact: facts.Fact) -> bool:
        """The value stands in a short answer to a question put to the speaker that asks for this fact."""
        if not self.heard.answered:
            return False
        return any(kind == fact and self.start < end for kind, _, end in answers.answered(self.text, self.asked))

    def mine(self) -> bool:
        """The clause of the value begins with 我, or goes on without a subject from clauses that do, in one sentence."""
        sentence = _APART.sub(r"\1", framing.sentence_before(self.text, self.start))
        starts = [0, *(m.end() for m in framing.CLAUSE_END.finditer(sentence))]
        clauses = [sentence[a:b].strip(" ，,、:：~～") for a, b in zip(starts, [*starts[1:], len(sentence)], strict=True)]
        own = clauses.pop() + self.value
        if _MINE.match(own):
            return not _NOT_ME.match(own)
        for clause in [own, *reversed(clauses)]:
            if clause is not own and re.search(_ME, clause, re.IGNORECASE):
                return bool(_INTRODUCES.match(clause)) and not OTHERS.search(clause)
            if not _GOES_ON.match(clause) or (clause is not own and re.search("的.", clause)):
                return False
        return False

    def frame(self) -> Reason | None:
        """Why nothing is stated here, whatever it is."""
        if framing.asked(self.text, self.end) or re.match("[^。！!，,\\s]*[?？]", self.text[self.end :]):
            return "a question"
        clause = self.opens
        opens = self.start - len(clause)
        begins = {self.start, opens, opens + max(0, clause.rfind("我"))}
        if any(framing.supposed(self.text, begin, self.end) for begin in begins) or _MADE_TO.search(clause) or _UNREAL.search(self.text):
            return "supposed"
        if _NOT.search(clause):
            return "negated"
        ungreeted = _GREETS.sub("嗨嗨", self.text)
        if any(framing.reported(ungreeted, begin) for begin in begins) or self._of_others_mouth(opens, clause):
            return "quoted from others"
        if _JOKE.search(self.text) or across_blanks(_JOKE, self.text):
            return "a joke"
        rest = self.text[self.end + len(self.closes.rstrip(" ，,。.!！~～…")) :]
        tag = _TAG_AFTER.match(rest) or _TAG_AFTER.match("".join(rest.split()))
        return "a question" if tag or _ASKED_APART.match("".join(self.text[self.end :].split())) else None

    def _of_others_mouth(self, opens: int, clause: str) -> bool:
        """Behind a label, in quotation marks of any kind, on a line of several, or after 说, 写着 and the like."""
        before, after = self.text[: self.start], self.text[self.end :]
        if "\n" in self.text.strip() or _HEAD.search(before):
            return True
        left, right = (_LATIN_APOSTROPHE.sub("", t) for t in (before, after))
        if any(left.rfind(a) > left.rfind(b) for a, b in _OPENING.items()):
            return True
        if any(c in _MARKS for c in left) and any(c in _MARKS for c in right):
            return True
        sentence = framing.sentence_before(self.text, opens)
        spoken = [sentence, clause[: max(0, clause.rfind("我"))]]
        if _LABELLED.search("".join(before.split())) or (_DANGLES.search(sentence) and not _YES.search(sentence)):
            return True
        if any(_SAYS.search(s) and not _I_SAY.search(s) for s in spoken if s):
            return True
        return any(_TELLING.search(c) and (OTHERS.search(c) or not _I_TELL.match(c)) for c in _COMMAS.split(sentence) if c) or across_blanks(_TELLING, sentence)

    def torn(self) -> bool:
        """Behind a blank the words may go on: 我是老师 的女儿."""
        closes = self.closes
        return closes[-1:].isspace() and not _BEGINS.match(self.text[self.end + len(closes) :].lstrip())

    def of_other(self) -> Reason | None:
        """The words are of another time or of somebody else."""
        sentence, clause = framing.sentence_before(self.text, self.start), self.opens
        if framing.PAST.search(sentence) or framing.FUTURE.search(sentence) or self.text.startswith("过", self.end):
            return "past or planned"
        return "about somebody else" if OTHERS.search(clause) or "你" in clause else None


def across_blanks(pattern: re.Pattern[str], text: str) -> bool:
    """The pattern is found only where blanks are left out: 不 是."""
    kept = [(i, c) for i, c in enumerate(text) if not c.isspace()]
    bare = "".join(c for _, c in kept)
    return any(kept[m.end() - 1][0] - kept[m.start()][0] >= len(m.group()) for m in pattern.finditer(bare) if m.group())

"""Cards against each other and against the calendar: ages, kinship, schooling, weekdays, places, remote or not."""

import re
from collections.abc import Iterator
from datetime import date

from anthrolab.cards.library import Library
from anthrolab.cards.lint.finding import Finding
from anthrolab.cards.lint.texts import core, fields
from anthrolab.cards.persona import Persona, RelationshipStatus
from anthrolab.cards.scenario import Scenario

PARENT_GAP, GRANDPARENT_GAP, CLASSMATES_GAP, PEERS_GAP = 16, 34, 5, 3
"""Years: least between parent and child and between grandparent and grandchild, most between classmates and people
of one age."""

_AGE = re.compile(r"^(?:[他她]?(?:今年|都|快)?)(\d{2})岁")
_WEEKDAY = re.compile(r"(?:(20\d\d)年)?(\d{1,2})月(\d{1,2})[日号][（(，,\s]?(?:是|就是)?(?:周|星期|礼拜)([一二三四五六日天])")
_DAYS = {c: i for i, c in enumerate("一二三四五六日")} | {"天": 6}
_GRAND = re.compile(r"祖孙|(?:爷爷|奶奶|外公|外婆|姥姥|姥爷|公公?)(?:和|跟|与)(?:外?孙|孙女)|(?:孙女|孙子|外孙女?)(?:和|跟|与)(?:她|他)?(?:爷爷|奶奶|外公|外婆|姥)")
_PARENT = re.compile(r"^(?:[^，。；]{0,8})?(?:母子|母女|父子|父女|妈妈和(?:儿子|女儿)|(?:儿子|女儿)和(?:妈妈|爸爸|母亲|父亲))")
_MARRIED = re.compile(r"^(?:夫妻|两口子|老两口)")
_LOVERS = re.compile(r"^(?:情侣|恋人|男女朋友|异地恋)")
_CLASSMATES = re.compile(r"同一?个?(?:班|寝室|宿舍)的?(?:老)?同学|同寝室|同班|老同学")
_SAME_AGE = re.compile(r"同岁|同年|一般大|一样大")
_SCHOOLING = (
    (re.compile(r"^初[一二三]|初中在读|初[一二三]在读"), 11, 16),
    (re.compile(r"^高[一二三](?!复读)|高中在读|中职在读|高[一二三]在读"), 14, 19),
    (re.compile(r"^大[一二三四]|本科在读|专科在读|大专在读"), 17, 25),
    (re.compile(r"硕士?在读|研[一二三]"), 21, 35),
    (re.compile(r"^退休"), 45, 110),
)
_STATUS: dict[RelationshipStatus, re.Pattern[str]] = {
    "单身": re.compile("已婚|离异|离了婚|丧偶|结婚[一二三四五六七八九十]"),
    "恋爱": re.compile("^单身|^已婚|^离异$|丧偶"),
    "已婚": re.compile("^单身|^离异|^丧偶|未婚|前妻|前夫"),
    "离异": re.compile("^单身|^已婚|^丧偶|未婚"),
    "丧偶": re.compile("^单身|^已婚|^离异|未婚"),
}
_TOGETHER = re.compile(r"同一(?:间|个屋|张|辆)|面对面|旁边坐着对方|对方(?:就)?(?:在|坐)")


def find(library: Library) -> Iterator[Finding]:
    """All findings of this kind."""
    for key, persona in library.personas.items():
        yield from _persona(key, persona)
    for key, scenario in library.all_scenarios().items():
        yield from _calendar(key, scenario)
        yield from _places(key, scenario)
    played = [(b.persona_a, b.persona_b, library.scenarios[b.scenario]) for b in library.bindings.values()]
    played += [(r.persona_a, r.persona_b, s) for r in library.series.values() for s in r.sessions]
    for a, b, scenario in played:
        yield from _pair(library.personas[a], library.personas[b], scenario)


def _persona(key: str, p: Persona) -> Iterator[Finding]:
    for pattern, least, most in _SCHOOLING:
        for field, text in (("education", p.education), ("occupation", p.occupation)):
            if (hit := pattern.search(text)) and not least <= p.age <= most:
                yield Finding(key, field, f"{hit[0]!r} at {p.age} years; mend the age or the text")
    if hit := _STATUS[p.hard_facts.relationship_status].search(p.relationship_status):
        status = p.hard_facts.relationship_status
        yield Finding(key, "relationship_status", f"{hit[0]!r}, but hard_facts.relationship_status is {status}; make them agree")
    if not any(core(word) in core(p.occupation) for word in p.hard_facts.occupation):
        yield Finding(key, "hard_facts.occupation", "no entry is part of occupation; list the plain word for the work")


def _calendar(key: str, s: Scenario) -> Iterator[Finding]:
    for field, text in fields(s):
        for hit in _WEEKDAY.finditer(text):
            try:
                day = date(int(hit[1] or s.start.year), int(hit[2]), int(hit[3]))
            except ValueError:
                yield Finding(key, field, f"{hit[0]!r} is no day of the calendar; mend the date")
                continue
            if day.weekday() != _DAYS[hit[4]]:
                yield Finding(key, field, f"{hit[0]!r}, but {day} is a {day:%A}; mend the date or the weekday")


def _places(key: str, s: Scenario) -> Iterator[Finding]:
    a, b = core(s.speakers.a.place), core(s.speakers.b.place)
    if a == b:
        yield Finding(key, "speakers.b.place", "is the same as speakers.a.place; say where each of the two is")
    for name, side in (("a", s.speakers.a), ("b", s.speakers.b)):
        if s.remote and (hit := _TOGETHER.search(side.place)):
            yield Finding(key, f"speakers.{name}.place", f"{hit[0]!r} in a remote scenario; set remote: false or move one of them")


def _pair(a: Persona, b: Persona, s: Scenario) -> Iterator[Finding]:
    gap = abs(a.age - b.age)
    for pattern, fits, rule in (
        (_GRAND, gap >= GRANDPARENT_GAP, f"needs at least {GRANDPARENT_GAP} years between them"),
        (_PARENT, gap >= PARENT_GAP, f"needs at least {PARENT_GAP} years between them"),
        (_CLASSMATES, gap <= CLASSMATES_GAP, f"allows at most {CLASSMATES_GAP} years between them"),
        (_SAME_AGE, gap <= PEERS_GAP, f"allows at most {PEERS_GAP} years between them"),
    ):
        if (hit := pattern.search(s.relationship)) and not fits:
            yield Finding(s.id, "relationship", f"{hit[0]!r} {rule}, but {a.name} is {a.age} and {b.name} {b.age}")
    wanted: tuple[tuple[re.Pattern[str], RelationshipStatus], ...] = ((_MARRIED, "已婚"), (_LOVERS, "恋爱"))
    for pattern, status in wanted:
        if hit := pattern.search(s.relationship):
            for p in (a, b):
                if p.hard_facts.relationship_status != status:
                    yield Finding(s.id, "relationship", f"{hit[0]!r}, but {p.name} ({p.id}) is {p.hard_facts.relationship_status}")
    for name, side, partner in (("a", s.speakers.a, b), ("b", s.speakers.b, a)):
        for number, line in enumerate(side.knows, 1):
            if (hit := _AGE.search(line)) and int(hit[1]) != partner.age:
                yield Finding(s.id, f"speakers.{name}.knows.{number}", f"{hit[0]!r}, but {partner.name} is {partner.age}")

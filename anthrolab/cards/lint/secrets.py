"""What one side has for itself must not stand where the other side reads it."""

import re
from collections.abc import Iterable, Iterator

from anthrolab.cards.library import Library
from anthrolab.cards.lint.finding import Finding
from anthrolab.cards.lint.texts import alike, runs
from anthrolab.cards.scenario import Scenario, Side

KNOWN_RUN = 8
"""Length, in characters, of a run of the partner's private side that nobody knows by chance."""

_FILLERS = set("自己的了着又也就都还有点一个这那怎么说想要看")
"""Characters that make a run of two or three a turn of phrase and not somebody's secret."""
_ORDER = r"(\w着)\1|说到|最后|慢慢|渐渐"
_MOODS = "|先|再|才|一个.+一个"
_LETTER = re.compile(r"(?<![$A-Za-z])[ab](?![A-Za-z])")


def find(library: Library) -> Iterator[Finding]:
    """All findings of this kind."""
    for key, scenario in library.all_scenarios().items():
        yield from _sides(key, scenario)
        if told := given_away(scenario):
            yield Finding(key, "goal/tone", f"says {', '.join(sorted(told))}, which only one side knows; both read this field")
        for words in stage_directions(scenario):
            yield Finding(key, "goal/tone", f"{words!r} tells how the chat will turn out; say what both know at the start")
        for field in ("relationship", "goal", "tone"):
            if _LETTER.search(getattr(scenario, field)):
                yield Finding(key, field, "calls a side by its letter; name the role, or write $a or $b for the name")
    yield from _weak_topics(library)
    for (owner, partner), memory in library.memories.items():
        if not memory.lines():
            yield Finding(f"{owner}-{partner}", "card", "remembers nothing; give it a line, or remove the file")
        for binding in library.bindings.values():
            if {owner, partner} == {binding.persona_a, binding.persona_b} and binding.scenario in library.scenarios:
                sides = library.scenarios[binding.scenario].speakers
                side = sides.b if binding.persona_a == owner else sides.a
                if shared := runs(memory.lines(), KNOWN_RUN) & runs(_private(side), KNOWN_RUN):
                    yield Finding(f"{owner}-{partner}", "card", f"knows {min(shared)!r} of {binding.scenario}, which only {partner} knows")


def _private(side: Side) -> list[str]:
    return [side.trigger, side.emotion, side.place]


def _sides(key: str, s: Scenario) -> Iterator[Finding]:
    a, b = s.speakers.a, s.speakers.b
    for name, knower, partner in (("a", a, b), ("b", b, a)):
        if shared := runs(knower.knows, KNOWN_RUN) & runs(_private(partner), KNOWN_RUN):
            yield Finding(key, f"speakers.{name}.knows", f"has {min(shared)!r} of the partner's own side; leave it to the partner")
        if shared := runs([s.title, s.relationship], KNOWN_RUN) & runs([knower.trigger], KNOWN_RUN):
            yield Finding(key, "title/relationship", f"says {min(shared)!r} of side {name}'s trigger; both read these fields")
    if (share := alike(runs([a.trigger], 3), runs([b.trigger], 3))) >= 0.2:
        yield Finding(key, "speakers", f"the two triggers are {share:.0%} the same; each side needs an event of its own")


def given_away(s: Scenario) -> set[str]:
    """What goal or tone, which both speakers read, says of one side's trigger (three characters) or emotion (two, as
    moods are short words) that the other side neither has in its own card nor reads in the relationship or the opener."""
    a, b = s.speakers.a, s.speakers.b
    found: set[str] = set()
    for side, other in ((a, b), (b, a)):
        known = [s.relationship, s.opener.content, other.place, other.trigger, other.emotion, *other.knows]
        for private, n in ((side.trigger, 3), (side.emotion, 2)):
            found |= _telling([private], n) & _telling([s.goal, s.tone], n) - _telling(known, n)
    return found


def _telling(texts: Iterable[str], n: int) -> set[str]:
    return {run for run in runs(texts, n) if not _FILLERS & set(run)}


def stage_directions(s: Scenario) -> list[str]:
    """Words by which goal or tone tell how the chat will turn out, or cast the two in different moods."""
    return [m[0] for text, words in ((s.goal, _ORDER), (s.tone, _ORDER + _MOODS)) for m in re.finditer(words, text)]


def _weak_topics(library: Library) -> Iterator[Finding]:
    played = [(b.persona_a, b.persona_b, library.scenarios[b.scenario]) for b in library.bindings.values()]
    played += [(r.persona_a, r.persona_b, s) for r in library.series.values() for s in r.sessions]
    for persona_a, persona_b, scenario in played:
        for name, side, partner in (("a", scenario.speakers.a, persona_b), ("b", scenario.speakers.b, persona_a)):
            known = "\n".join(side.knows)
            for topic in library.personas[partner].weak_topics:
                if topic in known:
                    yield Finding(scenario.id, f"speakers.{name}.knows", f"has the partner's weak topic {topic!r} word for word")

"""The cards accepted so far, and what speaks against a new one: the rules of `cards.lint`, each new card only against the old.

`cards.lint` compares every card with every other. Here an index of short and long runs of characters names the few old cards that
a new one could be too near to, and the linter itself then judges a small library of these and the new one. So a folder whose cards
all came in one by one without a finding has none as a whole.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

from anthrolab.cards.binding import Binding
from anthrolab.cards.library import Library
from anthrolab.cards.lint import agreement, copies, secrets
from anthrolab.cards.lint.copies import COPIED_RUN, SHARED_CATCHPHRASE
from anthrolab.cards.lint.finding import Finding
from anthrolab.cards.lint.texts import core, fields, runs
from anthrolab.cards.persona import Card, Persona
from anthrolab.cards.scenario import Category, Scenario
from anthrolab.cards.statistics import occupation_group, persona_frame, relationship_kind
from anthrolab.judging.testable import untestable
from anthrolab.loop.drafting.plan import PersonaSlot, ScenarioSlot
from anthrolab.loop.drafting.reading import Kind, Reason

LINTERS: tuple[tuple[Kind, Callable[[Library], Iterable[Finding]]], ...] = (
    ("copies", copies.find), ("secrets", secrets.find), ("agreement", agreement.find),
)  # fmt: skip
"""The parts of `cards.lint`."""
_NEAR = 1 / 6
"""Share of common runs from which an old card is looked at more closely: half of what makes a near duplicate, since the linter
leaves some fields out."""
_ROMANCE = ("dating", "couple", "former couple")
ADULT = 18


class Corpus:
    """Accepted cards. `apart`: a library that new cards must not copy from (the benchmark's), which is no part of it."""

    def __init__(self, apart: Library | None = None) -> None:
        self.personas: dict[str, Persona] = {}
        self.scenarios: dict[str, Scenario] = {}
        self.bindings: dict[str, Binding] = {}
        self._phrases: dict[str, list[str]] = defaultdict(list)
        self._near: dict[str, _Runs] = {"persona": _Runs(), "scenario": _Runs()}
        self._apart: dict[str, Card] = {}
        for kind, cards in (("persona", apart.personas), ("scenario", apart.scenarios)) if apart else ():
            for key, card in cards.items():
                self._near[kind].add(f"benchmark {key}", card)
                self._apart[f"benchmark {key}"] = card

    def add_persona(self, card: Persona) -> None:
        """Take in an accepted persona."""
        self.personas[card.id] = card
        self._near["persona"].add(card.id, card)
        for phrase in card.expression_habits.catchphrases:
            self._phrases[core(phrase)].append(card.id)

    def add_scenario(self, card: Scenario, bindings: Iterable[Binding]) -> None:
        """Take in an accepted scenario with its bindings."""
        self.scenarios[card.id] = card
        self._near["scenario"].add(card.id, card)
        self.bindings |= {b.id: b for b in bindings}

    def against_persona(self, card: Persona, slot: PersonaSlot) -> list[Reason]:
        """All that speaks against a new persona; empty if it can be accepted."""
        old = self._near["persona"].near(card)
        for phrase in card.expression_habits.catchphrases:
            old |= set(self._phrases.get(core(phrase), ()))
        old |= {key for key, other in self.personas.items() if core(other.name) == core(card.name)}
        cards = {key: known for key in sorted(old) if isinstance(known := self.personas.get(key) or self._apart[key], Persona)}
        reasons = [*_wrong_quota(card, slot), *_linted(Library({**cards, card.id: card}, {}, {}), card.id)]
        return reasons + [Reason("testable", _said(f)) for f in untestable({card.id: card})]

    def against_scenario(self, card: Scenario, slot: ScenarioSlot) -> list[Reason]:
        """All that speaks against a new scenario with the pairs of its slot; empty if it can be accepted."""
        old = self._near["scenario"].near(card)
        old |= {key for key, other in self.scenarios.items() if core(other.title) == core(card.title)}
        cards = {key: known for key in sorted(old) if isinstance(known := self.scenarios.get(key) or self._apart[key], Scenario)}
        people = {key: self.personas[key] for pair in slot.pairs for key in pair}
        alone = {f"new{i}": Binding(id=f"new{i}", persona_a=a, persona_b=b, scenario=card.id) for i, (a, b) in enumerate(slot.pairs)}
        return [*self._wrong_pair(card, slot), *_linted(Library(people, {**cards, card.id: card}, alone), card.id)]

    def occupations(self, group: str) -> list[str]:
        """The occupations of accepted people of a group, in the order of ids."""
        texts = (self.personas[key].occupation for key in sorted(self.personas))
        return [text for text in texts if occupation_group(text) == group]

    def used_up(self) -> list[str]:
        """Catchphrases that as many people have as may."""
        seen = {core(p): p for key in sorted(self.personas) for p in self.personas[key].expression_habits.catchphrases}
        return [seen[phrase] for phrase, keys in sorted(self._phrases.items()) if len(keys) >= SHARED_CATCHPHRASE]

    def titles(self, category: Category) -> list[str]:
        """The titles of accepted scenarios of a category, in the order of ids."""
        return [self.scenarios[key].title for key in sorted(self.scenarios) if self.scenarios[key].category == category]

    def _wrong_pair(self, card: Scenario, slot: ScenarioSlot) -> list[Reason]:
        people = [self.personas[key] for pair in slot.pairs for key in pair]
        found = []
        if relationship_kind(card.relationship) in _ROMANCE and any(p.age < ADULT for p in people):
            found.append(Reason("pair", "relationship: one of the two is under 18; write something else than a romance"))
        if len(slot.pairs) > 1:
            said = "\n".join(text for _, text in fields(card))
            for name in dict.fromkeys(n for p in people for n in _names(p) if n in said):
                found.append(Reason("pair", f"card: names {name!r}, but the card is for {len(slot.pairs)} pairs of people; leave names out"))
        return found


class _Runs:
    """Which cards have which runs of characters."""

    def __init__(self) -> None:
        self._by_run: dict[str, list[str]] = defaultdict(list)
        self._sizes: dict[str, int] = {}

    def add(self, key: str, card: Card) -> None:
        texts = _texts(card)
        short = runs(texts, 3)
        self._sizes[key] = len(short)
        for run in short | runs(texts, COPIED_RUN):
            self._by_run[run].append(key)

    def near(self, card: Card) -> set[str]:
        """Cards that share a long run or many short ones with it."""
        texts = _texts(card)
        short = runs(texts, 3)
        shared = Counter(key for run in short for key in self._by_run.get(run, ()))
        found = {key for key, n in shared.items() if n >= _NEAR * (len(short) + self._sizes[key])}
        return found | {key for run in runs(texts, COPIED_RUN) for key in self._by_run.get(run, ())}


def _texts(card: Card) -> list[str]:
    return [text for _, text in fields(card)]


def _linted(library: Library, new: str) -> list[Reason]:
    """What the linter says of the new card, which stands last in the library."""
    return [Reason(kind, _said(f)) for kind, find in LINTERS for f in find(library) if f.card == new]


def _wrong_quota(card: Persona, slot: PersonaSlot) -> list[Reason]:
    """Where a persona is counted as something else than its slot asks for (`cards.statistics` counts it)."""
    row = persona_frame(Library({card.id: card}, {}, {})).row(0, named=True)
    found = []
    if row["province"] != slot.province:
        found.append(Reason("quota", f"city: {card.city!r} is counted to {row['province']}, but {slot.province} is asked for; begin with a city there, and list the province in hard_facts.city"))
    shown = {"occupation group": f"occupation: {card.occupation!r}", "setting": f"city: {card.city!r}"}
    for part, where in shown.items():
        if row[part] != slot.quota[part]:
            found.append(Reason("quota", f"{where} is counted as {row[part]!r}, but {slot.quota[part]!r} is asked for"))
    return found


def _names(persona: Persona) -> list[str]:
    given = persona.name[1:]
    return [persona.name, *([given] if len(given) > 1 else [])]


def _said(finding: Finding) -> str:
    return f"{finding.field}: {finding.message}"

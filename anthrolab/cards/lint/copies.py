"""Placeholders, names that stand twice, and cards that were made from one mould."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from anthrolab.cards.library import Library
from anthrolab.cards.lint.finding import Finding
from anthrolab.cards.lint.texts import alike, core, fields, runs
from anthrolab.cards.persona import Card

NEAR_DUPLICATE = 0.5
"""Share of common runs of three characters from which two cards are near duplicates."""
COPIED_RUN = 14
"""Length, in characters, of a run that no two cards of a kind share by chance."""
SHARED_CATCHPHRASE = 2
"""People who may have one catchphrase in common."""

_PLACEHOLDER = re.compile(
    r"TODO|TBD|FIXME|XXX|lorem|ipsum|placeholder|example\.com|待填|待补充|占位|某某|此处(?:填|写|补)|(?:张三|李四|王五)|\{[^}]*\}|<[^>]*>|_{3,}|"
    r"\?{3,}$|^(?:无|暂无|略|待定|待补|示例|N/?A|none|null|-+)$",
    re.IGNORECASE,
)
_MAY_BE_EMPTY = re.compile(r"expression_habits\.(?:emoji|punctuation)$")


def find(library: Library) -> Iterator[Finding]:
    """All findings of this kind."""
    scenarios = library.all_scenarios()
    kinds: list[Mapping[str, Card]] = [library.personas, scenarios, {f"{o}-{p}": m for (o, p), m in library.memories.items()}]
    for cards in kinds:
        for key, card in cards.items():
            for field, text in fields(card):
                hit = _PLACEHOLDER.search(text)
                if hit and not (_MAY_BE_EMPTY.search(field) and hit[0] == text):
                    yield Finding(key, field, f"{hit[0]!r} reads like a placeholder; write what is meant")
    yield from _twice({k: p.name for k, p in library.personas.items()}, "name", "a person")
    yield from _twice({k: s.title for k, s in scenarios.items()}, "title", "a scenario")
    yield from _catchphrases(library)
    yield from _near({k: [t for _, t in fields(p, without=("hard_facts", "name"))] for k, p in library.personas.items()})
    yield from _near({k: [t for _, t in fields(s, without=("start", "category", "relationship"))] for k, s in scenarios.items()})


def _twice(values: Mapping[str, str], field: str, what: str) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for key, value in values.items():
        if (plain := core(value)) in first:
            yield Finding(key, field, f"{value!r} is that of {first[plain]} too; give {what} their own")
        first.setdefault(plain, key)


def _catchphrases(library: Library) -> Iterator[Finding]:
    users: dict[str, list[str]] = defaultdict(list)
    for key, persona in library.personas.items():
        for phrase in persona.expression_habits.catchphrases:
            users[core(phrase)].append(key)
    for phrase, keys in users.items():
        if len(keys) > SHARED_CATCHPHRASE:
            yield Finding(keys[-1], "expression_habits.catchphrases", f"{phrase!r} is said by {', '.join(keys)}; give them words of their own")


def _near(texts: Mapping[str, Iterable[str]]) -> Iterator[Finding]:
    """Cards that share half of their short runs, or one long one."""
    short = {key: runs(lines, 3) for key, lines in texts.items()}
    long = {key: runs(lines, COPIED_RUN) for key, lines in texts.items()}
    for x, y in combinations(texts, 2):
        if (share := alike(short[x], short[y])) >= NEAR_DUPLICATE:
            yield Finding(y, "card", f"is {share:.0%} the same as {x}; write another or drop one")
        elif copied := long[x] & long[y]:
            yield Finding(y, "card", f"has {min(copied)!r} word for word in common with {x}; say it in its own way")

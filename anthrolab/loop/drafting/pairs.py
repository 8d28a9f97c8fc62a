"""Who talks with whom: a directed pair of personas for every binding, chosen from the plan alone.

Pairs are distinct in their direction, nobody is in many more than their share, and a pair fits its category (a chat about
work needs two who work). Where there are more bindings than scenarios, some scenarios get several pairs. These are chosen
alike, side by side: the same sexes (cards say 他 and 她), and as far as the people allow the same age bands, statuses and
occupation groups. Such a scenario is written once, for all its pairs together: the model sees all their cards, no
name may stand in it, and it must pass the linter with each of them. The bindings that are more than scenarios are spread
over the categories by their shares. Couples, and parents with their children, are never planned: two cards that are
written apart would not agree about the family that they share.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from anthrolab.cards.scenario import CATEGORIES, Category
from anthrolab.cards.statistics import AGE_BANDS
from anthrolab.loop.drafting.plan import PersonaSlot
from anthrolab.loop.drafting.quotas import largest_remainder

Pair = tuple[str, str]

_BANDS = {band: i for i, band in enumerate(AGE_BANDS)}
_NO_WORK = ("retired", "pupil or student", "no paid work")


def choose_pairs(people: Sequence[PersonaSlot], categories: Sequence[Category], bindings: int, rng: random.Random) -> list[tuple[Pair, ...]]:
    """The pairs of each scenario, in the scenarios' order; `bindings` in all."""
    table = _Table(people, bindings, rng)
    wanted = _pairs_each(categories, bindings)
    chosen: dict[int, list[Pair]] = {}
    for i in sorted(range(len(categories)), key=lambda i: (-wanted[i], i)):  # those that need several, while all are free
        chosen[i] = [table.first(categories[i])]
        for _ in range(wanted[i] - 1):
            chosen[i].append(table.like(chosen[i][0], categories[i]))
    return [tuple(chosen[i]) for i in range(len(categories))]


def fits(category: Category, a: PersonaSlot, b: PersonaSlot) -> bool:
    """Whether two people can have a chat of that category."""
    if category == "Work":
        return not {a.quota["occupation group"], b.quota["occupation group"]} & set(_NO_WORK)
    if category == "Parenting":
        return any(p.age >= 25 and p.status in ("已婚", "离异", "丧偶") for p in (a, b)) and min(a.age, b.age) >= 18
    if category in ("Relation", "Finance"):
        return min(a.age, b.age) >= 18
    return True


def _pairs_each(categories: Sequence[Category], bindings: int) -> list[int]:
    """How many pairs each scenario gets: as equal as can be, what is over spread by the categories' shares."""
    base, over = divmod(bindings, len(categories))
    there = Counter(categories)
    order = [c for c in CATEGORIES if there[c]]
    more = largest_remainder({c: there[c] for c in order}, over, {c: (0, there[c]) for c in order})
    out = []
    for category in categories:
        out.append(base + (more[category] > 0))
        more[category] -= more[category] > 0
    return out


class _Table:
    """Everybody, and who has been paired with whom so far."""

    def __init__(self, people: Sequence[PersonaSlot], bindings: int, rng: random.Random) -> None:
        self.people = {p.id: p for p in people}
        self.most = -(-2 * bindings // len(people)) + 1
        self.used: Counter[str] = Counter()
        self.pairs: set[Pair] = set()
        self.rng = rng

    def first(self, category: Category) -> Pair:
        """A new pair that fits, of people who are in few so far; what cannot be had in a small plan is let go, the fit last."""
        for good in self._rules(category):
            for a in self._by_use(self.people.values()):
                for b in self._by_use(p for p in self.people.values() if p.id != a.id):
                    if good(a, b):
                        return self._take(a, b)
        raise AssertionError("more bindings than directed pairs")

    def like(self, model: Pair, category: Category) -> Pair:
        """A new pair that is like another one side by side, as alike as there is one."""
        model_a, model_b = (self.people[key] for key in model)
        alike: list[Callable[[PersonaSlot, PersonaSlot], bool]] = [
            lambda p, q: p.quota["occupation group"] == q.quota["occupation group"] and p.band == q.band and p.status == q.status,
            lambda p, q: p.band == q.band and p.status == q.status,
            lambda p, q: abs(_BANDS[p.band] - _BANDS[q.band]) <= 1 and p.status == q.status,
            lambda p, q: abs(_BANDS[p.band] - _BANDS[q.band]) <= 1 and (p.age < 18) == (q.age < 18),
            lambda p, q: (p.age < 18) == (q.age < 18),
            lambda p, q: True,
        ]
        for same_sex in (True, False):
            for good in self._rules(category):
                for rule in alike:
                    side_a = [p for p in self.people.values() if rule(p, model_a) and (not same_sex or p.gender == model_a.gender)]
                    side_b = [p for p in self.people.values() if rule(p, model_b) and (not same_sex or p.gender == model_b.gender)]
                    ordered_b = self._by_use(side_b)
                    for a in self._by_use(side_a):
                        for b in ordered_b:
                            if a.id != b.id and good(a, b):
                                return self._take(a, b)
        raise AssertionError("more bindings than directed pairs")

    def _rules(self, category: Category) -> list[Callable[[PersonaSlot, PersonaSlot], bool]]:
        def new(a: PersonaSlot, b: PersonaSlot) -> bool:
            return (a.id, b.id) not in self.pairs

        def unmet(a: PersonaSlot, b: PersonaSlot) -> bool:
            return new(a, b) and (b.id, a.id) not in self.pairs

        def free(a: PersonaSlot, b: PersonaSlot) -> bool:
            return max(self.used[a.id], self.used[b.id]) < self.most

        return [
            lambda a, b: unmet(a, b) and free(a, b) and fits(category, a, b),
            lambda a, b: new(a, b) and free(a, b) and fits(category, a, b),
            lambda a, b: new(a, b) and fits(category, a, b),
            lambda a, b: new(a, b) and free(a, b),
            new,
        ]

    def _by_use(self, people: Iterable[PersonaSlot]) -> list[PersonaSlot]:
        return sorted(people, key=lambda p: (self.used[p.id], self.rng.random()))

    def _take(self, a: PersonaSlot, b: PersonaSlot) -> Pair:
        self.pairs.add((a.id, b.id))
        self.used.update((a.id, b.id))
        return a.id, b.id

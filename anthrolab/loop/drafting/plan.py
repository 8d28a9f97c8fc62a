"""The plan: a slot for every card, which says what the model must write, made from quotas and a seed before anything is asked.

All that can be known beforehand stands in the slots: a person's age, sex, name and status, who talks with whom in which
scenario. So what one card turns out to be changes nothing in the order for another.
"""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast

from anthrolab.cards.persona import Gender, RelationshipStatus
from anthrolab.cards.places import REGIONS
from anthrolab.cards.scenario import Category
from anthrolab.cards.statistics import AGE_BANDS
from anthrolab.loop.drafting.names import Names
from anthrolab.loop.drafting.quotas import PERSONA_QUOTAS, SCENARIO_QUOTAS, QuotaError, Quotas, largest_remainder

YEAR = 2026
"""The year in which the scenarios play and of which the ages are."""
YOUNGEST, OLDEST = 12, 84
"""Years of age in the first and the last band."""
_SOFT, _NEVER = 1.0, 1e6


@dataclass(frozen=True)
class PersonaSlot:
    """A persona to be written. `quota`: the value that it must have in each part of PERSONA_QUOTAS."""

    id: str
    name: str
    age: int
    province: str
    quota: Mapping[str, str]

    @property
    def gender(self) -> Gender:
        """As on the card."""
        return cast(Gender, self.quota["gender"])

    @property
    def status(self) -> RelationshipStatus:
        """As in hard_facts."""
        return cast(RelationshipStatus, self.quota["relationship status"])

    @property
    def band(self) -> str:
        """Its age band."""
        return self.quota["age band"]


@dataclass(frozen=True)
class ScenarioSlot:
    """A scenario to be written. `pairs`: ids of the personas a and b, one pair for each binding that it will have."""

    id: str
    category: Category
    horizon_minutes: Literal[8, 10, 15, 20, 25]
    opener: Literal["a", "b"]
    remote: bool
    start: datetime
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Plan:
    """Every slot, in order. A scenario's bindings are its pairs."""

    personas: tuple[PersonaSlot, ...]
    scenarios: tuple[ScenarioSlot, ...]

    @property
    def slots(self) -> "tuple[PersonaSlot | ScenarioSlot, ...]":
        """All of them, personas first."""
        return (*self.personas, *self.scenarios)

    @property
    def bindings(self) -> int:
        """How many bindings there will be."""
        return sum(len(s.pairs) for s in self.scenarios)


def make_plan(
    quotas: Quotas, personas: int, scenarios: int, bindings: int, seed: int = 0, taken_names: Collection[str] = ()
) -> Plan:
    """The plan of so many cards; the same arguments give the same plan.

    Every part's counts follow its weights by largest remainder; ages may bend those of small plans. QuotaError if the numbers do not fit together, or
    if ages leave no way (retired people in a plan of pupils).
    """
    from anthrolab.loop.drafting.pairs import choose_pairs

    if personas < 2 or scenarios < 1:
        raise QuotaError(f"--personas {personas} --scenarios {scenarios}: at least 2 personas and 1 scenario make a chat")
    if bindings < scenarios:
        raise QuotaError(f"--bindings {bindings}: every scenario has a binding of its own; give at least {scenarios}")
    if bindings > personas * (personas - 1):
        raise QuotaError(f"--bindings {bindings}: {personas} personas make only {personas * (personas - 1)} directed pairs; give more personas")
    people = plan_personas(quotas, personas, random.Random(f"{seed}/personas"), taken_names)
    rng = random.Random(f"{seed}/scenarios")
    rows = _scenario_rows(quotas, scenarios, rng)
    pairs = choose_pairs(people, [row["category"] for row in rows], bindings, rng)
    return Plan(people, tuple(_scenario(i, scenarios, row, pairs[i], rng) for i, row in enumerate(rows)))


def plan_personas(quotas: Quotas, count: int, rng: random.Random, taken_names: Collection[str] = ()) -> tuple[PersonaSlot, ...]:
    """The slots of the personas, ages mixed."""
    ages = largest_remainder(quotas.personas["age band"], count)
    people: list[dict[str, str]] = [{"age band": band} for band, n in ages.items() for _ in range(n)]
    rng.shuffle(people)
    for part in PERSONA_QUOTAS[1:]:
        _give_out(part, quotas.personas[part], people, rng)
    names, provinces = Names(rng, taken_names), _Rota(rng)
    slots = []
    for i, quota in enumerate(people, 1):
        age = _age(quota["age band"], rng)
        name = names.give(cast(Gender, quota["gender"]), YEAR - age)
        slots.append(PersonaSlot(_numbered("p", i, count), name, age, provinces.next(quota["region"]), quota))
    return tuple(slots)


def _give_out(part: str, weights: Mapping[str, float], people: list[dict[str, str]], rng: random.Random) -> None:
    """Give every person a value of a part: counts as the quota says, no value that their age forbids, chance for the rest."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    may = {v: [_fit(part, v, p) < _NEVER for p in people] for v in weights}
    only = {v: sum(ok and not any(may[o][i] for o in weights if o != v) for i, ok in enumerate(may[v])) for v in weights}
    wanted = largest_remainder(weights, len(people))
    try:
        counts = largest_remainder(weights, len(people), {v: (only[v], sum(may[v])) for v in weights})
    except ValueError:
        counts = {}
    units = [v for v, n in counts.items() for _ in range(n)]
    cost = np.array([[_fit(part, v, p) + rng.random() for v in units] for p in people])
    if counts and max(abs(counts[v] - wanted[v]) for v in weights) <= _rounding(len(people), wanted):
        rows, columns = linear_sum_assignment(cost)
        if cost[rows, columns].max() < _NEVER:
            for person, column in zip(people, columns, strict=True):
                person[part] = units[column]
            return
    raise QuotaError(f"personas.{part}: these weights do not go with the ages in personas.age band ({_why(wanted, may)}); change one of them")


def _rounding(people: int, wanted: Mapping[str, int]) -> int:
    """By how much ages may bend a count: in a small plan one retired person may be due and nobody old enough."""
    return 1 if people >= 3 * len(wanted) else people


def _why(wanted: Mapping[str, int], may: Mapping[str, list[bool]]) -> str:
    return ", ".join(f"{v}: {n} wanted, {sum(may[v])} of an age for it" for v, n in wanted.items() if n > sum(may[v])) or "together they leave no way"


def _fit(part: str, value: str, person: Mapping[str, str]) -> float:
    """0 for what is common, _SOFT for what is rare, _NEVER for what cannot be."""
    start = AGE_BANDS[person["age band"]]
    if part == "relationship status":
        if start < 18:
            return 0.0 if value == "单身" else _NEVER
        if start < 25:
            return 0.0 if value in ("单身", "恋爱") else _NEVER
        if value == "丧偶":
            return _NEVER if start < 35 else _SOFT if start < 55 else 0.0
        return _SOFT if value in ("单身", "恋爱") and start >= 45 else 0.0
    if part == "occupation group":
        if start < 18 or value == "pupil or student":
            return 0.0 if value == "pupil or student" and start < 25 else _SOFT if start == 25 and value == "pupil or student" else _NEVER
        if value == "retired":
            return 0.0 if start >= 55 else _NEVER
        heavy = ("driving and delivery", "factory and building", "science and engineering", "office, finance and public service")
        return _SOFT if start >= 65 and value in heavy else 0.0
    if part == "setting" and value == "village":
        at_home = ("farming and fishing", "retired", "no paid work", "shop, food and lodging", "health", "education")
        return 0.0 if person["occupation group"] in at_home else _SOFT
    return 0.0


def _age(band: str, rng: random.Random) -> int:
    starts = [*AGE_BANDS.values(), OLDEST + 1]
    first = AGE_BANDS[band]
    return rng.randint(max(first, YOUNGEST), starts[starts.index(first) + 1] - 1)


class _Rota:
    """The provinces of each region in turn."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._piles: dict[str, list[str]] = {}

    def next(self, region: str) -> str:
        if not self._piles.get(region):
            self._piles[region] = [p for p in REGIONS[region].split() if p not in ("香港", "澳门", "台湾")]
            self._rng.shuffle(self._piles[region])
        return self._piles[region].pop()


def _scenario_rows(quotas: Quotas, count: int, rng: random.Random) -> list[dict[str, Any]]:
    columns = {}
    for part in SCENARIO_QUOTAS:
        counts = largest_remainder(quotas.scenarios[part], count)
        columns[part] = [value for value, n in counts.items() for _ in range(n)]
        rng.shuffle(columns[part])
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _scenario(i: int, count: int, row: Mapping[str, Any], pairs: tuple[tuple[str, str], ...], rng: random.Random) -> ScenarioSlot:
    horizon = cast(Literal[8, 10, 15, 20, 25], int(row["horizon"].split()[0]))
    start = _start(row["category"] == "Work", rng)
    return ScenarioSlot(_numbered("s", i + 1, count), row["category"], horizon, row["opener"], row["remote"] == "remote", start, pairs)


def _start(workday: bool, rng: random.Random) -> datetime:
    """Some minute of the year between seven in the morning and half past eleven at night, evenings most; work mostly on workdays."""
    day = datetime(YEAR, 1, 3) + timedelta(days=rng.randrange(355))
    if workday and day.weekday() > 4:
        day -= timedelta(days=2)
    hour = rng.choice((7, 9, 10, 11, 12, 12, 13, 15, 16, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23))
    return day.replace(hour=hour, minute=rng.randrange(30 if hour == 23 else 60))


def _numbered(letter: str, number: int, count: int) -> str:
    return f"{letter}{number:0{max(2, len(str(count)))}}"


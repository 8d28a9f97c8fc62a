"""Cases: every binding seen from both sides (paper section 5.5, Table 5), and which of them to run."""

from collections.abc import Sequence
from dataclasses import dataclass

from anthrolab.cards.library import Library
from anthrolab.cards.scenario import CATEGORIES, Category
from anthrolab.errors import AnthrolabError
from anthrolab.runtime.dialogue import Speaker, other


@dataclass(frozen=True)
class Case:
    """One binding with the tested system in one role; the reference partner plays the other."""

    binding: str
    role: Speaker
    category: Category

    @property
    def id(self) -> str:
        """`<binding>-<role>`, e.g. b01-a."""
        return f"{self.binding}-{self.role}"


def select_cases(library: Library, wanted: int | Sequence[str] | None) -> list[Case]:
    """The first so many cases, those of these ids, or all (None): one per binding first, spread over the categories,
    roles alternating.

    The order is fixed by the cards: round-robin over the twelve categories, then the same bindings in their
    other role. AnthrolabError if there are fewer, or if there is no case of an id.
    """
    waiting: dict[Category, list[str]] = {c: [] for c in CATEGORIES}
    for binding in library.bindings.values():
        waiting[library.scenarios[binding.scenario].category].append(binding.id)
    first: list[Case] = []
    while any(waiting.values()):
        for category in CATEGORIES:
            if waiting[category]:
                role: Speaker = "a" if len(first) % 2 == 0 else "b"
                first.append(Case(waiting[category].pop(0), role, category))
    cases = first + [Case(c.binding, other(c.role), c.category) for c in first]
    if wanted is None:
        return cases
    if not isinstance(wanted, int):
        if not wanted:
            raise AnthrolabError("--cases: names no case; a run needs at least one")
        if strange := sorted(set(wanted) - {case.id for case in cases}):
            raise AnthrolabError(f"--cases: these cards have no case {strange[0]}; a case is a binding and a role, such as {cases[0].id}")
        return [case for case in cases if case.id in wanted]
    number = wanted
    if not 1 <= number <= len(cases):
        raise AnthrolabError(f"--cases {number}: these cards make {len(cases)} cases; give 1 to {len(cases)}, or all")
    return cases[:number]


def case_ids(cases: Sequence[Case]) -> list[str]:
    """The ids in order."""
    return [case.id for case in cases]

"""Which cases a step plays: every case once before any comes twice, in an order drawn by the seed."""

from collections.abc import Sequence

from anthrolab.bench.cases import Case, select_cases
from anthrolab.cards.library import Library
from anthrolab.files import content_hash
from anthrolab.loop.sft.samples import pair_of
from anthrolab.training.settings import TrainingError


def cases_of_step(cases: Sequence[Case], step: int, count: int, seed: int) -> list[Case]:
    """The `count` cases of a step (from 1). It depends on nothing but its arguments, so that a training can go on anywhere."""
    found, orders = [], dict[int, list[Case]]()
    for place in range((step - 1) * count, step * count):
        turn, at = divmod(place, len(cases))
        if turn not in orders:
            orders[turn] = sorted(cases, key=lambda c: content_hash([seed, turn, c.id]))
        found.append(orders[turn][at])
    return found


def split_cases(library: Library, wanted: int | Sequence[str] | None, held_out: int | Sequence[str]) -> tuple[list[Case], list[Case]]:
    """The cases to train on and those held out. No pair of people stands in both, in whatever binding.

    held_out: the first so many cases of the benchmark (as `--cases N` of a run), or their ids; 0 for none. wanted: ids, or how many
    of the cases that are left (None: all). TrainingError if nothing is left, or a named case is of a held-out pair.
    """
    kept = [] if held_out == 0 or held_out == () or held_out == [] else select_cases(library, held_out)
    pairs = {_pair(library, case) for case in kept}
    if wanted is not None and not isinstance(wanted, int):
        chosen = select_cases(library, wanted)
        for case in chosen:
            if _pair(library, case) in pairs:
                raise TrainingError(f"cases: {case.id} is of two people that held_out_cases holds out; leave it out, or hold out others")
        return chosen, kept
    free = [case for case in select_cases(library, None) if _pair(library, case) not in pairs]
    if not free:
        raise TrainingError(f"held_out_cases: holds out every pair of people of these cards; hold out at most {most_held_out(library)} of the benchmark's first cases")
    if wanted is not None and not 1 <= wanted <= len(free):
        raise TrainingError(f"cases: {wanted}; {len(free)} cases are left to train on, so give 1 to {len(free)}")
    return free[:wanted], kept


def most_held_out(library: Library) -> int:
    """The largest number of first cases that leaves a pair of people to train on."""
    everyone = {_pair(library, case) for case in select_cases(library, None)}
    seen: set[str] = set()
    for count, case in enumerate(select_cases(library, None)):
        if (seen := seen | {_pair(library, case)}) == everyone:
            return count
    return 0


def _pair(library: Library, case: Case) -> str:
    binding = library.bindings[case.binding]
    return pair_of(binding.persona_a, binding.persona_b)

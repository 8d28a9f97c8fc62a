"""Which bindings teach a loop nothing, so that what it learnt can be measured on them."""

from anthrolab.cards.library import Library
from anthrolab.files import content_hash
from anthrolab.loop.folder import LoopError
from anthrolab.loop.sft.samples import pair_of
from anthrolab.loop.sft.split import pairs_of_bindings


def held_back_bindings(library: Library, wanted: str, seed: int) -> list[str]:
    """The bindings in the order of the cards: of a share of all persona pairs ("0.2"), drawn by `seed`, or those named ("b03,b07").

    Whole pairs always: a binding of the same two people, in either direction, is held back too. LoopError, or SftError for a
    binding that the cards lack.
    """
    pair = {key: pair_of(b.persona_a, b.persona_b) for key, b in library.bindings.items()}
    named = [part.strip() for part in wanted.split(",") if part.strip()]
    try:
        share = float(wanted)
    except ValueError:
        held = set(pairs_of_bindings([library], named))
    else:
        if not 0 <= share < 1:
            raise LoopError(f"--held-back {wanted}: a share of the persona pairs, at least 0 and below 1, or bindings with commas between")
        order = sorted(set(pair.values()), key=lambda p: content_hash([seed, p]))
        count = round(share * len(order))
        held = set(order[: max(count, 1 if share else 0)])
    if held >= set(pair.values()):
        raise LoopError(f"--held-back {wanted}: holds back every pair of these cards; leave some to learn from")
    return [key for key in library.bindings if pair[key] in held]

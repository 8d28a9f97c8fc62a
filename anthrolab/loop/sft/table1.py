"""Table 1 of the paper for any pool of samples: scenario cards and samples by category, counted from the samples alone."""

from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from anthrolab.bench.printing import as_percent, ratio
from anthrolab.bench.published import published_table
from anthrolab.cards.scenario import Category
from anthrolab.loop.sft.samples import Sample, SftError

NAMES: Mapping[Category, str] = {
    "Interest": "Interests",
    "Daily": "Daily chat",
    "Emotion": "Emotional support",
    "Tech": "Technology",
    "Parenting": "Family and parenting",
    "Relation": "Relationship development",
    "Finance": "Finance",
    "Pet/Fam.": "Pets and family life",
    "News": "News",
    "Sport": "Sports",
    "Game": "Gaming",
    "Work": "Work communication",
}
"""What Table 1 calls the twelve categories, in its order."""

COLUMNS = ("Category", "Scenario cards", "Scenario share", "SFT samples", "Training share")


def table1(samples: Sequence[Sample]) -> pl.DataFrame:
    """Table 1 of a pool, as printed strings in the paper's form, order and names, with its last row of totals.

    Cards are counted once however many samples they give. Shares are percentages with 2 decimals, rounded half to even
    from exact fractions, so the printed ones may miss 100.00% by a little; the totals are those of the pool. A category
    without samples prints 0; shares of an empty pool are empty. SftError if a scenario stands under two categories.
    """
    of: dict[str, Category] = {}
    for s in samples:
        if of.setdefault(s.scenario, s.category) != s.category:
            raise SftError(
                f"scenario {s.scenario}: stands under {of[s.scenario]} and under {s.category}; pool only samples of one folder of cards"
            )
    cards, decisions = Counter(of.values()), Counter(s.category for s in samples)
    rows = [
        (NAMES[c], *_part(cards[c], len(of)), *_part(decisions[c], len(samples))) for c in NAMES
    ] + [("Total", *_part(len(of), len(of)), *_part(len(samples), len(samples)))]
    return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")


def coverage(samples: Sequence[Sample]) -> dict[str, int]:
    """What the paper says beside Table 1: samples, unique scenario cards, unique persona cards, directed role pairs;
    and unordered pairs and dialogues. A directed pair is a speaker with a partner, in this direction."""
    return {
        "samples": len(samples),
        "scenarios": len({s.scenario for s in samples}),
        "personas": len({person for s in samples for person in s.pair.split("+")}),
        "directed_pairs": len({s.directed for s in samples}),
        "pairs": len({s.pair for s in samples}),
        "dialogues": len({s.dialogue_id for s in samples}),
    }


PAPER_COVERAGE: Mapping[str, int] = {"samples": 16_436, "scenarios": 334, "personas": 261, "directed_pairs": 400}
"""The paper's numbers beside Table 1 (section 4.6); its pool has no missing and no parsing-abnormal records."""


def beside_paper(samples: Sequence[Sample]) -> pl.DataFrame:
    """Table 1 of a pool with the paper's columns on its right, named `Paper: ...`."""
    paper = published_table(1)
    return table1(samples).hstack(paper.drop("Category").rename(lambda name: f"Paper: {name}"))


def _part(count: int, total: int) -> tuple[str, str]:
    return f"{count:,}", as_percent(ratio(count, total), 2)

"""Table 1 of a pool: its columns add up to the pool's own totals, in the paper's order and form."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.bench.published import published_numbers, published_table
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.loop.sft.samples import Sample, SftError
from anthrolab.loop.sft.table1 import COLUMNS, NAMES, PAPER_COVERAGE, beside_paper, coverage, table1
from anthrolab.show.table1 import table1_printed
from anthrolab.show.tables import as_html, as_markdown, as_text
from tests.test_sft_samples import make_sample

POOLS = st.lists(st.tuples(st.sampled_from(CATEGORIES), st.integers(0, 4), st.integers(0, 3)), max_size=80).map(
    lambda rows: [
        make_sample(i, category=c, scenario=f"{c}{n}", directed=f"p{k}>p{k + 1}", pair=f"p{k}+p{k + 1}") for i, (c, n, k) in enumerate(rows)
    ]
)


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


@settings(deadline=None)
@given(POOLS)
def test_its_columns_add_up_to_the_pools_own_totals(pool: list[Sample]) -> None:
    table = table1(pool)
    *rows, total = table.rows(named=True)
    assert number(total["SFT samples"]) == len(pool) == sum(number(row["SFT samples"]) for row in rows)
    assert number(total["Scenario cards"]) == len({s.scenario for s in pool}) == sum(number(row["Scenario cards"]) for row in rows)
    for row in rows:
        category = next(c for c, name in NAMES.items() if name == row["Category"])
        own = [s for s in pool if s.category == category]
        assert (number(row["SFT samples"]), number(row["Scenario cards"])) == (len(own), len({s.scenario for s in own}))
        if pool:
            assert abs(Fraction(row["Training share"].rstrip("%")) - Fraction(100 * len(own), len(pool))) <= Fraction(1, 200)


def test_names_order_and_columns_are_the_papers() -> None:
    paper = published_table(1)
    assert table1([]).columns == paper.columns == list(COLUMNS)
    assert table1([])["Category"].to_list() == paper["Category"].to_list()
    assert set(NAMES) == set(CATEGORIES)


def test_a_pool_with_the_papers_counts_prints_the_papers_table() -> None:
    """Every printed digit of Table 1, from 16,436 samples."""
    pool = []
    by_name = {name: category for category, name in NAMES.items()}
    for row in published_numbers(1).head(12).iter_rows(named=True):
        category, cards = by_name[row["Category"]], int(row["Scenario cards"])
        pool += [make_sample(i, category=category, scenario=f"{category}{i % cards}") for i in range(int(row["SFT samples"]))]
    assert table1(pool).equals(published_table(1))


def test_shares_are_rounded_half_to_even() -> None:
    pool = [make_sample(i, category="Sport" if i < 1 else "Work", scenario="s1" if i < 1 else "s2") for i in range(800)]
    shares = dict(zip(*table1(pool)[["Category", "Training share"]], strict=True))
    assert shares["Sports"] == "0.12%" and shares["Work communication"] == "99.88%"


def test_an_empty_category_prints_zero_and_an_empty_pool_no_shares() -> None:
    row = table1([make_sample()]).row(0, named=True)
    assert row == {"Category": "Interests", "Scenario cards": "0", "Scenario share": "0.00%", "SFT samples": "0", "Training share": "0.00%"}
    assert table1([]).row(12) == ("Total", "0", "", "0", "")


def test_a_scenario_under_two_categories_is_an_error() -> None:
    with pytest.raises(SftError, match="scenario s01: stands under Sport and under Work"):
        table1([make_sample(), make_sample(1, category="Work")])


def test_the_papers_numbers_beside_the_table_agree_with_it() -> None:
    totals = published_numbers(1).row(12, named=True)
    assert (totals["SFT samples"], totals["Scenario cards"]) == (PAPER_COVERAGE["samples"], PAPER_COVERAGE["scenarios"])
    own = coverage([make_sample(), make_sample(1, directed="p02>p01"), make_sample(2, pair="p01+p03", directed="p01>p03")])
    assert own == {"samples": 3, "scenarios": 1, "personas": 3, "directed_pairs": 3, "pairs": 2, "dialogues": 3}


def test_it_is_printed_beside_the_papers() -> None:
    pool = [make_sample(), make_sample(1, recovered="asked twice", directed="p02>p01")]
    assert beside_paper(pool).columns == [*COLUMNS, *(f"Paper: {name}" for name in COLUMNS[1:])]
    table = table1_printed(pool, {"broken reply": 4})
    for text in (as_html(table), as_markdown(table), as_text(table)):
        assert "Family and parenting" in text and "3,386" in text and "16,436" in text
    said = as_markdown(table)
    assert "1 of this pool come from a reply that was mended" in said and "broken reply 4" in said
    assert "This pool: 2 samples, 1 scenario cards, 2 persona cards, 2 directed role pairs." in said
    assert "–" in as_text(table1_printed([]))

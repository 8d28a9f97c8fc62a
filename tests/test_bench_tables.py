"""Tables 7-11: every published cell, a ledger small enough to compute by hand, and a slow literal version."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.bench.ledger import CATEGORIES, DIMENSIONS, Ledger
from anthrolab.bench.printing import as_decimal, as_percent
from anthrolab.bench.scores import PAPER_WEIGHTS, WeightsError, case_scores
from anthrolab.bench.tables import tables, write_tables

PUBLISHED = Path(__file__).parent / "data" / "published"
Schema = dict[str, type[pl.DataType]]
CASES: Schema = {"system": pl.String, "case_id": pl.String, "binding": pl.String, "role": pl.String}
CASES |= {"category": pl.String, "valid": pl.Boolean, "sample": pl.Int32}
BOXES: Schema = {
    "system": pl.String,
    "case_id": pl.String,
    "sample": pl.Int32,
    "scope": pl.String,
    "turn_index": pl.Int32,
}
BOXES |= {"dimension": pl.String, "checkbox": pl.Int32, "passed": pl.Boolean}

Row = dict[str, Any]


def case(system: str, case_id: str, category: str, valid: bool | None = True, sample: int = 0) -> Row:
    return dict(zip(CASES, (system, case_id, "b01", "a", category, valid, sample), strict=True))


def boxes(of: Row, turn: int | None, dimension: str, answers: Sequence[bool | None]) -> list[Row]:
    scope = "turn" if turn else "dialogue"
    key = {"system": of["system"], "case_id": of["case_id"], "sample": of["sample"], "scope": scope}
    return [
        key | {"turn_index": turn, "dimension": dimension, "checkbox": i, "passed": answer}
        for i, answer in enumerate(answers, 1)
    ]


def ledger(cases: list[Row], checkboxes: list[Row]) -> Ledger:
    return Ledger(pl.DataFrame(cases, schema=CASES), pl.DataFrame(checkboxes, schema=BOXES))


# ---- the published digits


def test_write_tables_gives_the_published_files_byte_for_byte(tmp_path: Path) -> None:
    paths = write_tables(PUBLISHED / "ledger", tmp_path / "out")
    assert [p.name for p in paths] == [f"table{n}.csv" for n in range(7, 12)] + ["coverage.csv"]
    cells = 0
    for number in range(7, 12):
        printed = pl.read_csv(PUBLISHED / f"table{number}.csv", infer_schema=False)
        made = pl.read_csv(tmp_path / "out" / f"table{number}.csv", infer_schema=False)
        assert made.to_dict(as_series=False) == printed.to_dict(as_series=False)
        assert paths[number - 7].read_bytes() == (PUBLISHED / f"table{number}.csv").read_bytes()
        cells += made.height * (made.width - 1)
    assert cells == 816


def test_the_two_exact_ties_of_the_published_tables_go_to_even() -> None:
    assert as_decimal(Fraction(94075, 100000), 4) == "0.9408"
    assert as_percent(Fraction(84375, 100000), 2) == "84.38%"
    assert as_decimal(Fraction(94065, 100000), 4) == "0.9406"
    assert as_percent(Fraction(1, 800), 2) == "0.12%"
    assert as_percent(Fraction(3, 800), 2) == "0.38%"
    assert as_decimal(Fraction(1), 4) == "1.0000"
    assert as_percent(Fraction(1), 1) == "100.0%"
    assert as_decimal(None, 1) == as_percent(None, 1) == ""


# ---- by hand


def tiny() -> Ledger:
    """Two systems: the first has a case of two turns and one of one turn, the second no valid case."""
    x, y = case("new", "x", "Sport"), case("new", "y", "Game")
    rows = [
        *boxes(x, 1, "D1", [True, True]),
        *boxes(x, 1, "D2", [True, False, None]),  # q = 1/2: the null is in neither count
        *boxes(x, 2, "D1", [None, None]),  # D1 leaves this turn
        *boxes(x, 2, "D2", [True, True, True]),
        *boxes(x, None, "E1", [True]),
        *boxes(x, None, "E2", [True, False]),
        *boxes(y, 1, "D1", [True, False]),
        *boxes(y, 2, "D1", [None]),  # nothing assessed: no turn at all
        *boxes(y, None, "E1", [True, True]),
        *boxes(case("old", "x", "Sport", None), 1, "D1", [True]),  # not done: its boxes do not count
    ]
    return ledger([x, y, case("new", "z", "Game", False), case("old", "x", "Sport", None)], rows)


def test_a_ledger_computed_by_hand() -> None:
    made = tables(tiny())
    # x: turn 1 = (13*1 + 9*1/2)/22 = 35/44, turn 2 = 1; S_turn = 79/88; S_dialogue = (14 + 10/2)/24 = 19/24
    # y: S_turn = 1/2; S_dialogue = 1
    # Per-turn (79/88 + 1/2)/2 = 123/176 = 0.69886; Holistic (19/24 + 1)/2 = 43/48 = 0.89583
    # Score 50*(123/176 + 43/48) = 79.735
    assert made["table7"].rows() == [
        ("new", "0.00%", "25.00%", "50.00%", "79.7", "0.6989", "0.8958"),
        ("old", "", "", "", "", "", ""),
    ]
    # D1 over two turns: (1 + 1/2)/2; D2: (1/2 + 1)/2; E1 over two cases, E2 over one
    none = [""] * 10
    assert made["table8"].rows() == [
        ("new", "0.7500", "0.7500", "", "", "", "1.0000", "0.5000", "", "", ""),
        ("old", *none),
    ]
    assert made["table9"].rows() == [
        ("new", "50.00%", "50.00%", "", "", "", "100.00%", "0.00%", "", "", ""),
        ("old", *none),
    ]
    # x: 50*(79/88 + 19/24) = 84.47; y: 75
    ten = dict.fromkeys(CATEGORIES, "") | {"Sport": "84.5", "Game": "75.0"}
    assert made["table10"].row(0) == ("new", *ten.values())
    eleven = dict.fromkeys(CATEGORIES, "") | {"Sport": "0.0%", "Game": "0.0%"}
    assert made["table11"].row(0) == ("new", "0.00%", *eleven.values())
    assert made["table11"].columns == ["Model", "ACC", *CATEGORIES]


def test_a_case_with_one_scope_assessed_counts_in_that_scope_alone() -> None:
    x, y = case("s", "x", "Sport"), case("s", "y", "Sport")
    rows = [*boxes(x, 1, "D1", [True]), *boxes(x, None, "E1", [None]), *boxes(y, None, "E1", [False])]
    (row,) = tables(ledger([x, y], rows))["table7"].rows()
    assert row == ("s", "50.00%", "100.00%", "0.00%", "", "1.0000", "0.0000")


def test_systems_stand_in_the_order_of_the_cases_file() -> None:
    names = ["z", "a", "m"]
    cases = [case(s, c, "Tech") for c in ("1", "2") for s in names]
    rows = [b for c in reversed(cases) for b in boxes(c, None, "E1", [True])]
    assert tables(ledger(cases, rows))["table11"]["Model"].to_list() == names


def test_an_empty_ledger_has_tables_without_rows() -> None:
    made = tables(ledger([], []))
    assert [t.height for t in made.values()] == [0] * 5
    assert made["table8"].columns == ["Model", *DIMENSIONS]


def test_case_scores_of_the_hand_computed_ledger() -> None:
    rows = {(r["system"], r["case_id"]): r for r in case_scores(tiny()).iter_rows(named=True)}
    x = rows["new", "x"]
    assert x["s_turn"] == pytest.approx(79 / 88)
    assert x["s_dialogue"] == pytest.approx(19 / 24)
    assert x["score"] == pytest.approx(50 * (79 / 88 + 19 / 24))
    assert (x["turns"], x["turn_acc"], x["dialogue_passed"], x["passed"]) == (2, 0.5, False, False)
    assert (x["boxes"], x["assessed"]) == (13, 10)
    for key in (("new", "z"), ("old", "x")):
        unknown = {k: rows[key][k] for k in ("boxes", "assessed", "turns", "s_turn", "s_dialogue", "score", "passed")}
        assert set(unknown.values()) == {None}


@pytest.mark.parametrize(
    "weights",
    [{"D1": 1}, PAPER_WEIGHTS | {"D6": 1}, PAPER_WEIGHTS | {"E5": 0}, PAPER_WEIGHTS | {"E5": float("nan")}],
)
def test_weights_that_cannot_be_used_are_refused(weights: dict[str, float]) -> None:
    with pytest.raises(WeightsError, match=r"^weights: "):
        tables(tiny(), weights)


def test_only_the_ratios_of_the_weights_matter() -> None:
    thirds = {d: Fraction(w, 3) for d, w in PAPER_WEIGHTS.items()}
    assert tables(tiny(), thirds)["table7"].equals(tables(tiny())["table7"])


def test_a_float_weight_means_what_it_prints() -> None:
    # S_turn 51/200, S_dialogue 0.1/(0.1 + 0.3) = 1/4: the score 25.25 is a tie, which binary floats would miss
    x = case("s", "x", "Sport")
    rows = [
        *boxes(x, 1, "D1", [True] * 51 + [False] * 149),
        *boxes(x, None, "E1", [True]),
        *boxes(x, None, "E2", [False]),
    ]
    made = tables(ledger([x], rows), PAPER_WEIGHTS | {"E1": 0.1, "E2": 0.3})
    assert made["table7"]["Score"].item() == "25.2"


# ---- the slow literal version: the definitions, one loop each


def mean(values: Iterator[Fraction | bool | int]) -> Fraction | None:
    numbers = [Fraction(v) for v in values]
    return sum(numbers, Fraction(0)) / len(numbers) if numbers else None


def printed(value: Fraction | None, places: int, percent: bool = False) -> str:
    if value is None:
        return ""
    scaled = value * 10 ** (places + 2 * percent)
    digits, rest = scaled.numerator // scaled.denominator, scaled % 1
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and digits % 2):
        digits += 1
    text = str(digits).rjust(places + 1, "0")
    return f"{text[:-places]}.{text[-places:]}" + "%" * percent


class LiteralCase:
    """The score cards of one valid case, as {dimension: assessed answers}."""

    def __init__(self, row: Row, answers: list[Row], weights: dict[str, Fraction]) -> None:
        cards: dict[int | None, dict[str, list[bool]]] = {}
        for box in answers:
            if all(box[k] == row[k] for k in ("system", "case_id", "sample")) and box["passed"] is not None:
                cards.setdefault(box["turn_index"], {}).setdefault(box["dimension"], []).append(box["passed"])
        self.category, self.weights = row["category"], weights
        self.dialogue = cards.pop(None, None)
        self.turns = list(cards.values())
        self.s_turn = mean(self.card_score(t) for t in self.turns)
        self.s_dialogue = self.card_score(self.dialogue) if self.dialogue else None
        self.score = None
        if self.s_turn is not None and self.s_dialogue is not None:
            self.score = 100 * (self.s_turn / 2 + self.s_dialogue / 2)
        self.turn_acc = mean(self.strict(t) for t in self.turns)
        everything = self.turns + ([self.dialogue] if self.dialogue else [])
        self.passed = all(self.strict(c) for c in everything) if everything else None

    def card_score(self, card: dict[str, list[bool]]) -> Fraction:
        q = {d: Fraction(sum(answers), len(answers)) for d, answers in card.items()}
        return sum((self.weights[d] * q[d] for d in q), Fraction(0)) / sum(self.weights[d] for d in q)

    @staticmethod
    def strict(card: dict[str, list[bool]]) -> bool:
        return all(all(answers) for answers in card.values())


def known_mean(cases: list[LiteralCase], name: str) -> Fraction | None:
    return mean(value for c in cases if (value := getattr(c, name)) is not None)


def literal_tables(cases: list[Row], answers: list[Row], weights: dict[str, Fraction]) -> dict[str, list[list[str]]]:
    made: dict[str, list[list[str]]] = {f"table{n}": [] for n in range(7, 12)}
    for system in dict.fromkeys(row["system"] for row in cases):
        valid = [LiteralCase(r, answers, weights) for r in cases if r["system"] == system and r["valid"] is True]
        known = partial(known_mean, valid)
        holistic = mean(c.strict(c.dialogue) for c in valid if c.dialogue)
        made["table7"].append(
            [
                *(system, printed(known("passed"), 2, True), printed(known("turn_acc"), 2, True)),
                *(printed(holistic, 2, True), printed(known("score"), 1)),
                *(printed(known("s_turn"), 4), printed(known("s_dialogue"), 4)),
            ]
        )
        all_cards = [card for c in valid for card in [*c.turns, *([c.dialogue] if c.dialogue else [])]]
        of = {d: [card[d] for card in all_cards if d in card] for d in DIMENSIONS}
        made["table8"].append(
            [system, *(printed(mean(Fraction(sum(a), len(a)) for a in of[d]), 4) for d in DIMENSIONS)]
        )
        made["table9"].append([system, *(printed(mean(all(a) for a in of[d]), 2, True) for d in DIMENSIONS)])
        groups = [[c for c in valid if c.category == category] for category in CATEGORIES]
        made["table10"].append([system, *(printed(known_mean(g, "score"), 1) for g in groups)])
        made["table11"].append(
            [
                system,
                printed(known("passed"), 2, True),
                *(printed(known_mean(g, "passed"), 1, True) for g in groups),
            ]
        )
    return made


@st.composite
def ledgers(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """Random ledgers: nulls, missing dimensions and scopes, samples, invalid and undone cases, box counts."""
    answers = st.lists(st.sampled_from([True, True, True, False, None]), max_size=6)
    keys = st.tuples(st.sampled_from(["s1", "s2", "s3"]), st.sampled_from(["x", "y", "z"]), st.integers(0, 2))
    cases, rows = [], []
    for system, case_id, sample in draw(st.lists(keys, unique=True, min_size=1, max_size=7)):
        category = draw(st.sampled_from(["Sport", "Pet/Fam.", "Finance"]))
        row = case(system, case_id, category, draw(st.sampled_from([True, True, True, False, None])), sample)
        cases.append(row)
        for turn in draw(st.lists(st.integers(1, 9), unique=True, max_size=4)):
            for d in draw(st.sets(st.sampled_from(DIMENSIONS[:5]))):
                rows += boxes(row, turn, d, draw(answers))
        for d in draw(st.sets(st.sampled_from(DIMENSIONS[5:]))):
            rows += boxes(row, None, d, draw(answers))
    return cases, draw(st.permutations(rows)) if len(rows) < 40 else rows


WEIGHTS = st.fixed_dictionaries({d: st.fractions(Fraction(1, 9), 20, max_denominator=9) for d in DIMENSIONS})


@settings(max_examples=150, deadline=None)
@given(made=ledgers(), weights=WEIGHTS)
def test_fast_tables_equal_the_literal_version(made: tuple[list[Row], list[Row]], weights: dict[str, Fraction]) -> None:
    cases, rows = made
    checked = ledger(cases, rows)
    fast = {name: [list(r) for r in table.rows()] for name, table in tables(checked, weights).items()}
    assert fast == literal_tables(cases, rows, weights)

    for row, scored in zip(cases, case_scores(checked, weights).iter_rows(named=True), strict=True):
        assert (scored["system"], scored["case_id"], scored["sample"]) == (
            row["system"],
            row["case_id"],
            row["sample"],
        )
        if row["valid"] is True:
            slow = LiteralCase(row, rows, weights)
            for name in ("s_turn", "s_dialogue", "score", "turn_acc"):
                wanted = getattr(slow, name)
                assert scored[name] == (None if wanted is None else pytest.approx(float(wanted)))
            assert scored["passed"] == slow.passed
            assert scored["turns"] == len(slow.turns)
        else:
            assert (scored["passed"], scored["score"], scored["boxes"]) == (None, None, None)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_a_tie_in_the_mean_prints_half_to_even_in_any_order(seed: int) -> None:
    """Nine cases at 1 and one at 69/80: the mean 0.98625 lies exactly between 0.9862 and 0.9863."""
    cases = [case("s", str(i), "News") for i in range(10)]
    rows = [b for c in cases[:9] for b in boxes(c, None, "E1", [True] * 3)]
    rows += boxes(cases[9], None, "E1", [True] * 69 + [False] * 11)
    shuffled = pl.DataFrame(rows, schema=BOXES).sample(fraction=1.0, shuffle=True, seed=seed)
    made = tables(Ledger(pl.DataFrame(cases, schema=CASES), shuffled))
    assert made["table7"]["Holistic"].item() == made["table8"]["E1"].item() == "0.9862"

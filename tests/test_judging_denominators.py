"""Null, half-null and contradictory answers of a judge move coverage and never a score: the denominators are the plan's, and
every figure is the one that a slow literal count over what was properly answered gives."""

import asyncio
import csv
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from anthrolab.bench.coverage import coverage_table
from anthrolab.bench.judge import judge_run
from anthrolab.bench.ledger import DIMENSIONS, Ledger, read_ledger
from anthrolab.bench.store import Run
from anthrolab.bench.tables import tables, write_tables
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.judging.llm import LLMJudge
from anthrolab.judging.scores import box_rows, case_pass, case_score, dialogue_score, turn_score
from anthrolab.judging.verdict import JUDGED_L0, Verdict
from anthrolab.models.client import Reply, Request
from anthrolab.models.scripted import Answer, Call, Scripted, ScriptedModel, serve
from tests.cards_for_tests import make_scenario
from tests.test_bench_judge import CASES, answering, fine, make_run
from tests.test_bench_run import decide, quiet
from tests.test_judging_llm import PEOPLE, RUBRIC, TEXTS, asked, chat, system

Key = tuple[str, str]
"""The call (its target's number, "" for the dialogue) and the id."""

BOX_DAMAGE = (
    "omitted", "null", "text", "number", "float", "no verdict", "bare", "null entry", "list", "given twice", "contradicted",
    "contradicted inside", "other field",
)  # fmt: skip
L0_DAMAGE = (*BOX_DAMAGE, "no message", "partner's message", "message as text", "message out of range", "message true")
REPLY_DAMAGE = ("", "抱歉，我不能评价。", "{", "null", "[]", '{"D1.1": {"passed": true}', '{"a": 1} {"b": 2}', "{}")


def entries(i: str, good: bool, damage: str, own: int) -> list[str]:
    """What the judge writes about one id, as JSON members; `own` is a message of the evaluated role."""
    verdict = "violated" if i in JUDGED_L0 else "passed"
    said = not good if i in JUDGED_L0 else good
    proper: dict[str, Any] = {"reason": "看了", verdict: said}
    if i in JUDGED_L0:
        proper["message"] = own if said else None
    values: dict[str, Any] = {
        "null": proper | {verdict: None}, "text": proper | {verdict: json.dumps(said)}, "number": proper | {verdict: int(said)},
        "float": proper | {verdict: float(said)}, "no verdict": {"reason": "看了"}, "bare": said, "null entry": None,
        "list": [said], "other field": {"reason": "看了", "pass": said, "result": said},
        "no message": {"reason": "看了", "violated": True, "message": None},
        "partner's message": {"reason": "看了", "violated": True, "message": 0},
        "message as text": {"reason": "看了", "violated": True, "message": str(own)},
        "message out of range": {"reason": "看了", "violated": True, "message": 999},
        "message true": {"reason": "看了", "violated": True, "message": True},
    }  # fmt: skip
    if damage == "omitted":
        return []
    if damage == "contradicted inside":
        return [f'"{i}": {{"{verdict}": true, "{verdict}": false, "message": {own}}}']
    one = f'"{i}": {json.dumps(values.get(damage, proper))}'
    if damage == "given twice":
        return [one, one]
    if damage == "contradicted":
        return [one, f'"{i}": {json.dumps(proper | {verdict: not said, "message": own})}']
    return [one]


@dataclass
class Damaged:
    """A judge that knows every answer (`truth`: the share of ids that are good) and spoils some, as the seed has it.

    spoiled, mended: the chance that an answer is spoiled, and that it is good when asked again. lost: that a whole reply is.
    `proper` is what it really answered, by call and id; nothing else may ever count.
    """

    seed: int
    truth: float
    spoiled: float
    mended: float
    lost: float
    fatal: float = 0.0
    proper: dict[Key, bool] = field(default_factory=dict)

    def draw(self, *what: object) -> random.Random:
        return random.Random("/".join(map(str, (self.seed, *what))))

    def answer(self, call: str, ids: Sequence[str], again: bool, own: int) -> str:
        if self.draw("lost", call, again).random() < self.lost:
            return self.draw("how", call, again).choice(REPLY_DAMAGE)
        members = []
        for i in ids:
            good = self.draw("truth", call, i).random() < (1 - self.fatal if i in JUDGED_L0 else self.truth)
            chance = 1 - self.mended if again else self.spoiled
            damage = ""
            if self.draw("spoiled", call, i, again).random() < chance:
                damage = self.draw("kind", call, i, again).choice(L0_DAMAGE if i in JUDGED_L0 else BOX_DAMAGE)
            if not damage:
                self.proper[call, i] = good
            members += entries(i, good, damage, own)
        unknown = [f'"{i}": {{"passed": false, "violated": true, "message": {own}}}' for i in ("D9.9", "D1", "E1.1 ", "总分", "L0-01")]
        self.draw("order", call, again).shuffle(members)
        return "{" + ", ".join([*members, *unknown[: self.draw("unknown", call).randrange(6)]]) + "}"


def target(prompt: str) -> str:
    """The number of the message that a call is about; "" for the dialogue."""
    found = re.search(r"^#(\d+) [^：]*（待评）：", prompt, re.MULTILINE)
    return found[1] if found else ""


# --- the slow literal version -----------------------------------------------------------------------------------------

Card = dict[str, bool | None]
"""Checkbox -> passed; None: no proper answer."""


@dataclass(frozen=True)
class Case:
    """A planned case; `valid` None if it is not done. Cards only of valid ones."""

    category: str
    valid: bool | None
    turns: list[Card] = field(default_factory=list)
    whole: Card = field(default_factory=dict)


def mean(values: Sequence[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


def share(values: Sequence[bool]) -> Fraction | None:
    return Fraction(sum(values), len(values)) if values else None


def said(card: Card, dimension: str = "") -> list[bool]:
    return [passed for box, passed in card.items() if passed is not None and box.startswith(dimension + "." if dimension else "")]


def score_of(card: Card) -> Fraction | None:
    top = bottom = Fraction(0)
    for dimension in RUBRIC.dimensions:
        q = share(said(card, dimension.id))
        if q is not None:
            top += Fraction(str(dimension.weight)) * q
            bottom += Fraction(str(dimension.weight))
    return top / bottom if bottom else None


def s_turn(case: Case) -> Fraction | None:
    return mean([s for card in case.turns if (s := score_of(card)) is not None])


def s(case: Case) -> Fraction | None:
    local, whole = s_turn(case), score_of(case.whole)
    return None if local is None or whole is None else 100 * (local + whole) / 2


def accepted(case: Case) -> bool | None:
    answers = [p for card in (*case.turns, case.whole) for p in said(card)]
    return all(answers) if answers else None


def printed(value: Fraction | None, places: int) -> str:
    if value is None:
        return ""
    digits = f"{round(value * 10**places):0{places + 1}d}"  # round() of a fraction is exact, half to even
    return f"{digits[:-places]}.{digits[-places:]}"


def percent(value: Fraction | None, places: int) -> str:
    return "" if value is None else f"{printed(100 * value, places)}%"


def literal(planned: Sequence[Case]) -> dict[str, dict[str, str]]:
    """The rows of Tables 7 to 11 of one system."""
    cases = [c for c in planned if c.valid]
    outcomes = [a for c in cases if (a := accepted(c)) is not None]
    turns = [[all(said(card)) for card in c.turns if said(card)] for c in cases]
    cards = {d: [said(k, d) for c in cases for k in (c.turns if d[0] == "D" else [c.whole]) if said(k, d)] for d in DIMENSIONS}
    by = {name: [c for c in cases if c.category == name] for name in CATEGORIES}
    return {
        "table7": {
            "ACC": percent(share(outcomes), 2),
            "Turn ACC": percent(mean([x for t in turns if (x := share(t)) is not None]), 2),
            "Holistic ACC": percent(share([all(said(c.whole)) for c in cases if said(c.whole)]), 2),
            "Score": printed(mean([x for c in cases if (x := s(c)) is not None]), 1),
            "Per-turn": printed(mean([x for c in cases if (x := s_turn(c)) is not None]), 4),
            "Holistic": printed(mean([x for c in cases if (x := score_of(c.whole)) is not None]), 4),
        },
        "table8": {d: printed(mean([Fraction(sum(k), len(k)) for k in cards[d]]), 4) for d in DIMENSIONS},
        "table9": {d: percent(share([all(k) for k in cards[d]]), 2) for d in DIMENSIONS},
        "table10": {n: printed(mean([x for c in own if (x := s(c)) is not None]), 1) for n, own in by.items()},
        "table11": {"ACC": percent(share(outcomes), 2)}
        | {n: percent(share([a for c in own if (a := accepted(c)) is not None]), 1) for n, own in by.items()},
    }


def same_figures(shown: Mapping[str, Mapping[str, str]], coverage: Mapping[str, str], planned: Sequence[Case]) -> None:
    """The printed rows are the literal ones, and the coverage row counts the plan and what was properly answered."""
    assert {name: {k: v for k, v in row.items() if k != "Model"} for name, row in shown.items()} == literal(planned)
    cards = [card for c in planned if c.valid for card in (*c.turns, c.whole)]
    boxes, answered = sum(map(len, cards)), sum(len(said(card)) for card in cards)
    assert (coverage["Planned"], coverage["Done"]) == (str(len(planned)), str(sum(c.valid is not None for c in planned)))
    assert (coverage["Valid"], coverage["Missing"]) == (str(sum(bool(c.valid) for c in planned)), str(sum(c.valid is None for c in planned)))
    assert (coverage["Boxes"], coverage["Assessed boxes"]) == (str(boxes), str(answered))
    assert coverage["Evaluated turns"] == str(sum(len(c.turns) for c in planned if c.valid))
    if boxes and not answered:
        assert coverage["Coverage"] == "0.00%"


# --- the judge in memory, under hypothesis ------------------------------------------------------------------------------

LENGTHS = {"Sport": 3, "Work": 9, "Daily": 6, "Finance": 4}
"""Messages of the dialogue of each category that is judged; a has every second one."""


def judged(damaged: Damaged, category: str) -> Verdict:
    def script(request: Request) -> Scripted:
        prompt = str((request.messages or [])[1]["content"])
        return Reply(damaged.answer(f"{category}{target(prompt)}", asked(request), bool(request.salt), 1))

    judge = LLMJudge(ScriptedModel(script), system(), RUBRIC)
    return asyncio.run(judge.judge(chat(TEXTS[: LENGTHS[category]]), PEOPLE, make_scenario()))


def properly(damaged: Damaged, category: str) -> Case:
    """What the judge answered properly, as it noted it itself."""

    def card(call: str, scope: str) -> Card:
        return {box.id: damaged.proper.get((f"{category}{call}", box.id)) for box in RUBRIC.boxes(scope)}  # type: ignore[arg-type]

    turns = [card(str(number), "turn") for number in range(1, LENGTHS[category], 2)]
    fatal = any(damaged.proper.get((category, i)) is False for i in ("L0-06", "L0-09"))
    return Case(category, not fatal, turns, card("", "dialogue"))


def measured(damaged: Damaged) -> tuple[Ledger, list[Case]]:
    """The ledger of four judged cases, one that is not done and one that the gate threw out; and what must be in it."""
    verdicts = {category: judged(damaged, category) for category in LENGTHS}
    planned = [properly(damaged, category) for category in LENGTHS] + [Case("Pet/Fam.", None), Case("News", False)]
    rows, boxes = [], []
    for number, case in enumerate(planned):
        common = {"system": "toy", "case_id": f"c{number}"}
        verdict = verdicts.get(case.category)
        valid = case.valid
        if verdict is not None:
            valid = not any(v.id in ("L0-06", "L0-09") for v in verdict.judge_violations())
            _same_scores(verdict, Case(case.category, True, case.turns, case.whole))
        rows.append({**common, "binding": None, "role": "a", "category": case.category, "valid": valid})
        if valid and verdict is not None:
            boxes += [{**common, **row._asdict()} for row in box_rows(verdict, RUBRIC)]
    types = {"system": pl.String, "case_id": pl.String, "scope": pl.String, "turn_index": pl.Int32, "dimension": pl.String,
             "checkbox": pl.Int32, "passed": pl.Boolean}  # fmt: skip
    return Ledger(pl.DataFrame(rows, infer_schema_length=None), pl.DataFrame(boxes, schema=types)), planned


def _same_scores(verdict: Verdict, case: Case) -> None:
    """The scores of one verdict are those of its properly answered checkboxes."""
    assert [[b.passed for b in turn.boxes] for turn in verdict.turns] == [list(card.values()) for card in case.turns]
    assert [b.passed for b in verdict.dialogue] == list(case.whole.values())
    for found, wanted in (
        (turn_score(verdict, RUBRIC), s_turn(case)), (dialogue_score(verdict, RUBRIC), score_of(case.whole)), (case_score(verdict, RUBRIC), s(case)),
    ):  # fmt: skip
        assert found == (None if wanted is None else pytest.approx(float(wanted)))
    assert case_pass(verdict) == accepted(case)
    assert verdict.complete, "a bad answer is an answer: asking the same judge again would not help"


def shown(ledger: Ledger) -> dict[str, dict[str, str]]:
    weights = {d.id: d.weight for d in RUBRIC.dimensions}
    return {name: frame.row(0, named=True) for name, frame in tables(ledger, weights).items()}


FOUND_AT_ONCE = (Phase.explicit, Phase.reuse, Phase.generate)
"""A judge of another seed is no simpler one: there is nothing to shrink."""

CHANCE = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])
JUDGES = st.builds(
    Damaged, st.integers(0, 10**6), truth=st.sampled_from([0.0, 0.5, 0.95, 1.0]), spoiled=CHANCE, mended=CHANCE,
    lost=st.sampled_from([0.0, 0.0, 0.3, 1.0]), fatal=st.sampled_from([0.0, 0.3]),
)  # fmt: skip


@settings(max_examples=80, deadline=None, phases=FOUND_AT_ONCE)
@given(JUDGES)
def test_every_figure_is_the_literal_one_over_what_was_properly_answered(damaged: Damaged) -> None:
    ledger, planned = measured(damaged)
    same_figures(shown(ledger), coverage_table(ledger).row(0, named=True), planned)


@settings(max_examples=40, deadline=None, phases=FOUND_AT_ONCE)
@given(st.integers(0, 10**6), CHANCE, CHANCE, st.sampled_from([0.0, 0.4]), st.booleans())
def test_no_damage_lowers_a_perfect_score_or_raises_a_bad_one(seed: int, spoiled: float, mended: float, lost: float, good: bool) -> None:
    ledger, _ = measured(Damaged(seed, float(good), spoiled, mended, lost))
    allowed = {"", "100.00%", "100.0%", "100.0", "1.0000"} if good else {"", "0.00%", "0.0%", "0.0", "0.0000"}
    assert {v for row in shown(ledger).values() for k, v in row.items() if k != "Model"} <= allowed


@pytest.mark.parametrize("damage", [*BOX_DAMAGE, *REPLY_DAMAGE])
def test_a_judge_that_never_answers_properly_gives_no_score_anywhere(damage: str) -> None:
    class Hopeless(Damaged):
        def answer(self, call: str, ids: Sequence[str], again: bool, own: int) -> str:
            if damage in REPLY_DAMAGE:
                return damage
            return "{" + ", ".join(m for i in ids for m in entries(i, True, damage, own)) + "}"

    ledger, planned = measured(Hopeless(0, 1.0, 1.0, 0.0, 0.0))
    found = {v for row in shown(ledger).values() for k, v in row.items() if k != "Model"}
    assert found == {""}
    row = coverage_table(ledger).row(0, named=True)
    assert (row["Planned"], row["Done"], row["Valid"], row["Assessed boxes"], row["Coverage"]) == ("6", "5", "4", "0", "0.00%")
    turns = sum(len(c.turns) for c in planned)
    assert row["Boxes"] == str(21 * turns + 23 * len(LENGTHS))


def test_the_damage_does_happen() -> None:
    """The property above would be empty if these judges answered all or nothing."""
    damaged = Damaged(1, truth=0.5, spoiled=0.5, mended=0.5, lost=0.0)
    ledger, planned = measured(damaged)
    boxes = ledger.checkboxes["passed"]
    assert 0.1 < boxes.null_count() / boxes.len() < 0.5
    assert {True, False, None} == {p for c in planned for card in (*c.turns, c.whole) for p in card.values()}


# --- a run over real HTTP ------------------------------------------------------------------------------------------------

MODES = {"all null": (1.0, 1.0, 0.0, 0.0), "half null": (0.9, 0.5, 0.3, 0.1), "contradictory": (0.5, 0.9, 0.1, 0.0), "whole": (0.97, 0.0, 1.0, 0.0)}
"""truth, spoiled, mended, lost"""


@pytest.mark.parametrize("mode", MODES)
def test_a_judged_run_counts_what_was_properly_answered(tmp_path: Path, mode: str) -> None:
    damaged, chats = Damaged(7, *MODES[mode]), set[str]()

    def handler(call: Call) -> str | Answer:
        schema = call.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        if "role" in schema.get("properties", {}):
            return decide(call)
        prompt = call.body["messages"][-1]["content"]
        own = next(int(n) for n in re.findall(r"^#(\d+) \S+ \S+ 被评者", prompt, re.MULTILINE) if n != "0")
        name = f"{re.findall('被评者的名字：(.*)', prompt)[0]} {re.findall('对方的名字：(.*)', prompt)[0]} "
        chats.add(name)
        return damaged.answer(name + target(prompt), list(schema["properties"]), "上一次的回答里" in prompt, own)

    with serve(handler) as served:
        run, systems = make_run(tmp_path, served.url)
        counts = judge_run(run, "oracle", systems_file=systems, progress=quiet)
    dialogues, cases = Run(run).dialogues(), []
    order = read_ledger(Run(run).ledger("oracle")).cases
    for row in order.iter_rows(named=True):
        dialogue = dialogues[f"r-{row['case_id']}-0"]
        own, other = (dialogue.speakers[s].name for s in (row["role"], "b" if row["role"] == "a" else "a"))
        name = f'"{own}" "{other}" '
        turns = [{b.id: damaged.proper.get((f"{name}{n}", b.id)) for b in RUBRIC.boxes("turn")} for n in dialogue.turns()]
        whole = {b.id: damaged.proper.get((name, b.id)) for b in RUBRIC.boxes("dialogue")}
        cases.append(Case(row["category"], True, turns, whole))
    assert len(chats) == len(cases) == CASES
    write_tables(Run(run).ledger("oracle"), tmp_path / "t")
    found = {}
    for name in ("table7", "table8", "table9", "table10", "table11", "coverage"):
        with (tmp_path / "t" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            found[name] = next(csv.DictReader(file))
    coverage = found.pop("coverage")
    same_figures(found, coverage, cases)
    assert {counts[key] for key in ("planned", "done", "valid", "judged")} == {CASES}
    empty = [v for v in Run(run).verdicts("oracle").values() if "model_error:empty" in v.unassessed()]
    assert counts["incomplete"] == len(empty), "only a reply without any text is no answer"
    assert (str(counts["boxes"]), str(counts["assessed"])) == (coverage["Boxes"], coverage["Assessed boxes"])
    if mode == "all null":
        assert counts["assessed"] == 0 and set(found["table7"].values()) == {"toy", ""}
    elif mode == "whole":
        assert counts["assessed"] == counts["boxes"]
    else:
        assert 0 < counts["assessed"] < counts["boxes"]


def test_damage_that_is_gone_when_asked_again_leaves_no_trace(tmp_path: Path) -> None:
    """Two judges of one mind, of which one answers badly first, give the same tables."""

    def clumsy(call: Call) -> str | Answer:
        schema = call.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        if "role" in schema.get("properties", {}) or "上一次的回答里" in call.body["messages"][-1]["content"]:
            return answering(verdict)(call)
        return json.dumps({i: {"reason": "看了", "passed": None, "violated": None} for i in schema["properties"]})

    def verdict(box: str) -> dict[str, Any]:
        return {"reason": "长", "passed": False} if box in ("D2.1", "E3.2") else fine(box)

    found = []
    for name, handler in (("sure", answering(verdict)), ("clumsy", clumsy)):
        with serve(handler) as served:
            (tmp_path / name).mkdir()
            run, systems = make_run(tmp_path / name, served.url)
            judge_run(run, "oracle", systems_file=systems, progress=quiet)
        written = write_tables(Run(run).ledger("oracle"), tmp_path / name / "t")
        found.append([p.read_bytes() for p in written])
    assert found[0] == found[1]

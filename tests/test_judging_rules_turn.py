"""The turn rules on lines written for them: what shows the fault fails, what only looks like it never does."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from anthrolab.cards.library import load_library
from anthrolab.cards.persona import ExpressionHabits, Persona
from anthrolab.judging.rubric import load_rubric
from anthrolab.judging.rules import TURN_RULES, RulesJudge
from anthrolab.judging.rules.card_habits import emoji_in, rules_out_emoji, rules_out_marks, rules_out_period
from anthrolab.judging.rules.readable import readable_text
from anthrolab.judging.rules.rhythm import sentence_count
from anthrolab.judging.rules.scene import Scene
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.written import load_gold
from tests.cards_for_tests import make_persona
from tests.test_judging_rules import Row, chat, on_last

ROOT = Path(__file__).parents[1]
LINES = yaml.safe_load((Path(__file__).parent / "data" / "judging" / "turn_lines.yaml").read_text(encoding="utf-8"))
RUBRIC = load_rubric()
RULE = {box.id: box.rule for box in RUBRIC.boxes("turn") if box.rule}
BOXES = [box for box in LINES if box != "cards"]


def lines(box: str, kind: str) -> list[str]:
    return [line for line in LINES[box].get(kind, "").split("\n") if line]


def card(key: str) -> Persona:
    punctuation, emoji, catchphrases = LINES["cards"][key]
    habits = ExpressionHabits(punctuation=punctuation, emoji=emoji, catchphrases=catchphrases, typical_length="短")
    return make_persona(expression_habits=habits)


def answer(box: str, line: str, persona: Persona | None = None) -> bool | None:
    """What the box's rule says of the line's last message, a minute after the one above; the partner answers it."""
    key, _, rest = line.partition("| ")
    if key in LINES["cards"]:
        persona, line = card(key), rest
    own: list[Row] = [("a", 60, part.replace("⏎", "\n")) for part in line.split(" / ")]
    rows: list[Row] = [("b", 0, "在干嘛"), *own, ("b", 60, "嗯")]
    return TURN_RULES[RULE[box]](Scene(chat(rows), persona), len(rows) - 2).passed


@pytest.mark.parametrize(("box", "line"), [(box, line) for box in BOXES for line in lines(box, "fails")])
def test_a_line_with_the_fault_fails(box: str, line: str) -> None:
    assert answer(box, line) is False


@pytest.mark.parametrize(("box", "line"), [(box, line) for box in BOXES for line in lines(box, "holds")])
def test_a_line_that_only_looks_like_it_does_not_fail(box: str, line: str) -> None:
    assert answer(box, line) is not False


@pytest.mark.parametrize("box", BOXES)
def test_what_the_rules_let_through_is_known(box: str) -> None:
    assert [line for line in lines(box, "unseen") if answer(box, line) is False] == []


def test_there_are_forty_lines_of_each_kind() -> None:
    few = {(box, kind) for box in BOXES for kind in ("fails", "holds") if len(lines(box, kind)) < 40}
    assert {box for box, _ in few} <= {"D2.2"}


def test_nobody_fails_a_turn_box_in_the_gold_dialogues() -> None:
    library, judge = load_library(ROOT / "data"), RulesJudge(RUBRIC)
    failed = []
    for key, dialogue in load_gold(ROOT / "data", library).items():
        for role in ("a", "b"):
            turned = dialogue.model_copy(update={"evaluated_role": role})
            verdict = judge.verdict(turned, turned.cards_of(library.personas), library.scenarios[turned.scenario or ""])
            failed += [(key, role, b.id, b.reason) for t in verdict.turns for b in t.boxes if b.passed is False]
    assert failed == []


@pytest.mark.parametrize(
    ("occupation", "text", "expected"),
    [
        ("中学老师", "你那条违章我刚从交管系统里消掉了", False), ("交警", "你那条违章我刚从交管系统里消掉了", None),
        ("厨师", "账号限制已经给你解除了", False), ("程序员", "账号限制已经给你解除了", None),
        ("厨师", "床位我给你安排好了", False), ("护士", "床位我给你安排好了", None),
        ("程序员", "床位我给你安排好了", False),  # the job must fit the matter
    ],
)  # fmt: skip
def test_an_office_is_open_to_those_who_work_in_it(occupation: str, text: str, expected: bool | None) -> None:
    assert answer("D4.3", text, make_persona(occupation=occupation)) is expected


@pytest.mark.parametrize(
    ("box", "text", "expected"),
    [
        ("D1.4", "您慢走", None), ("D4.4", "有研究", None), ("D4.3", "我账号登不上", None), ("D1.3", "因此我没去", None),
        ("D1.4", "领导说感谢您的配合", None), ("D4.4", "专家建议早睡 笑死", None), ("D4.3", "客服说账号给我解封了", None),
        ("D1.3", "他一开口就是“综上所述”", None), ("D5.1", "字" * 61, None), ("D5.1", "字" * 60, True),
        ("D2.1", "字" * 121, False), ("D5.2", "我觉得 дом 这个词不错", None),
    ],
)  # fmt: skip
def test_in_doubt_the_rules_are_silent(box: str, text: str, expected: bool | None) -> None:
    assert answer(box, text) is expected


def test_a_usual_length_is_no_licence_for_an_essay() -> None:
    habits = ExpressionHabits(catchphrases=[], punctuation="随意", emoji="少", typical_length="一条十五到四十个字连成一串")
    rows: Sequence[Row] = [("b", 0, "咋了"), ("a", 60, "字" * 121)]
    assert on_last("message_length", rows, make_persona(expression_habits=habits)) is False


def test_text_read_in_the_wrong_encoding() -> None:
    for text in ("你好，明天见", "我到家了", "在不在啊"):
        rows: list[Row] = [("b", 0, "咋了"), ("a", 60, text.encode("utf-8").decode("gb18030", errors="replace")), ("b", 60, "嗯")]
        assert readable_text(Scene(chat(rows)), 1).passed is False
        rows[1] = ("a", 60, text)
        assert readable_text(Scene(chat(rows)), 1).passed is True


def test_what_cards_rule_out() -> None:
    assert [rules_out_marks(t) for t in ("不打标点，用空格", "没有标点，空一格算断开", "标点全省；句尾偶尔一个问号", "不打句号", "逗号打到底，末了不打标点")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert rules_out_period("不打句号，用空格断开") and not rules_out_period("不打句号；气了才打句号")
    assert rules_out_emoji("不发表情，嫌假") and not rules_out_emoji("只用[握手]")
    assert emoji_in("好[捂脸]😂[OK][某个链接地址]") == ["[捂脸]", "[OK]", "😂"]


def test_sentences_are_counted_by_their_marks() -> None:
    assert [sentence_count(t) for t in ("行", "行！几点？在南门", "他说“行。知道了。”就挂了", "我……那个……算了", "啥？？！谁", "一\n二\n三")] == [
        1, 3, 1, 1, 2, 3,
    ]  # fmt: skip


def test_blank_lines_do_not_make_a_rule_run_away() -> None:
    """Patterns that let blanks run over line breaks took minutes for these."""
    judge = RulesJudge(load_rubric())
    for filler in ("\n", " \n", "\t", "*", "（", "哈"):
        text = "好" + filler * 20_000 + "好"
        messages = [
            {"speaker": who, "content": said, "at": datetime(2026, 3, 6, 20, minute), "opener": minute == 0}
            for minute, (who, said) in enumerate([("b", "在吗"), ("a", text)])
        ]
        people = {"a": {"name": "甲"}, "b": {"name": "乙"}}
        dialogue = Dialogue.model_validate({"dialogue_id": "d", "evaluated_role": "a", "speakers": people, "messages": messages})
        assert judge.verdict(dialogue, {}).turns[0].message_index == 1

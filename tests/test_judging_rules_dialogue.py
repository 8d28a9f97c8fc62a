"""The rules for whole dialogues on lines that were written before the rules were measured on them.

The lines stand in data/judging/dialogue_lines.yaml, by kind: what must fail and what only looks like it. A rule may
leave a fault undecided (`few`); it may never pass one, and never fail a look-alike.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
import yaml

from anthrolab.judging.rules import DIALOGUE_RULES
from anthrolab.judging.rules.asking import asking
from anthrolab.judging.rules.coherence import richness
from anthrolab.judging.rules.scene import Scene
from anthrolab.judging.rules.taking_part import is_acknowledgement
from tests.cards_for_tests import make_persona, make_scenario
from tests.test_judging_rules import Row, chat

LINES: dict[str, list[str]] = yaml.safe_load(
    (Path(__file__).parent / "data" / "judging" / "dialogue_lines.yaml").read_text(encoding="utf-8")
)
CHATS: dict[str, list[list[str]]] = {k: v for k, v in LINES.items() if v and isinstance(v[0], list)}  # type: ignore[misc]
PARTNER = ("昨天我去了趟老街那边", "那家店关门了", "我妈也说起这事")


def answer(rule: str, rows: Sequence[Row], start: str = "2026-03-06T20:31:00") -> bool | None:
    return DIALOGUE_RULES[rule](Scene(chat(rows, start=start), make_persona(), make_scenario())).passed


def exchange(text: str) -> list[Row]:
    """An exchange after the first words of a chat."""
    rows: list[Row] = [("b", 0, "今天风真大"), ("a", 20, "刚坐下"), ("b", 20, "嗯")]
    for said in text.split(" / "):
        content = said[2:].replace("{own2}", "晓雯").replace("{partner2}", "子航")
        rows.append(("a" if said[0] == "o" else "b", 20, content))
    return rows


def own(texts: Iterable[str]) -> list[Row]:
    """The texts as the evaluated person's messages, each followed by one of a partner who talks."""
    rows: list[Row] = [("b", 0, "我跟你说个事")]
    for number, text in enumerate(texts):
        rows += [("a", 20, text), ("b", 20, PARTNER[number % 3])]
    return rows


def among(text: str, others: list[str], count: int = 7) -> list[Row]:
    """A line in the midst of lines of another list."""
    return own([*random.Random(text).sample([o for o in others if o != text], count), text])


def at_its_time(text: str) -> bool | None:
    """What the clock rule says of a line that begins with the time."""
    return answer("greeting_fits_clock", [("b", 0, "在吗"), ("a", 20, text[6:])], f"2026-03-06T{text[:5]}:00")


EXCHANGES = {
    "no_repeated_question": ("asked_again", "asked_on", 0.85),
    "who_is_who": ("mixed_up", "not_mixed_up", 0.9),
    "no_cold_shutdown": ("brushed_off", "not_brushed_off", 0.9),
    "partner_follows": ("beside_the_point", "beside_and_back", 0.85),
}
"""Rule, faults, look-alikes, least share of the faults that must fail."""


@pytest.mark.parametrize("rule", EXCHANGES)
def test_faults_in_an_exchange_fail(rule: str) -> None:
    kind, _, least = EXCHANGES[rule]
    check(lambda text: answer(rule, exchange(text)), LINES[kind], least)


@pytest.mark.parametrize("rule", EXCHANGES)
def test_look_alikes_in_an_exchange_do_not_fail(rule: str) -> None:
    for kind in {EXCHANGES[rule][1], *(["asked_on", "not_mixed_up", "not_brushed_off"] if rule == "partner_follows" else [])}:
        assert [t for t in LINES[kind] if answer(rule, exchange(t)) is False] == []


def check(judge: Callable[[str], bool | None], faults: list[str], least: float) -> None:
    """Enough faults fail, and none passes."""
    answers = {text: judge(text) for text in faults}
    assert sum(a is False for a in answers.values()) >= least * len(faults), [t for t, a in answers.items() if a is not False]
    assert [t for t, a in answers.items() if a] == []


def test_what_is_off_the_clock_fails_and_what_speaks_of_another_time_does_not() -> None:
    check(at_its_time, LINES["off_the_clock"], 0.95)
    assert [t for t in LINES["on_the_clock"] if at_its_time(t) is False] == []


def test_statements_are_no_questions_and_questions_are() -> None:
    assert [t for t in LINES["statements"] if asking(t) != "no"] == []
    assert [t for t in LINES["questions"] if asking(t) == "no"] == []


def test_a_chat_of_statements_asks_nothing_and_one_question_is_enough_not_to_fail() -> None:
    check(lambda text: answer("asks_a_question", among(text, LINES["statements"])), LINES["statements"], 1.0)
    asked = [t for t in LINES["questions"] if answer("asks_a_question", among(t, LINES["statements"])) is False]
    assert asked == []


def test_stock_questions_alone_are_left_open_and_among_statements_fail() -> None:
    assert answer("asks_a_question", own(["咋了", "真的假的", "是吗", "然后呢"])) is None
    assert answer("asks_a_question", own(["咋了", "真的假的", *LINES["statements"][:5]])) is False


def test_the_persons_own_opener_is_not_held_against_them() -> None:
    statements: list[Row] = [("a", 30, t) for t in LINES["statements"][:6]]
    assert answer("asks_a_question", [("a", 0, "你几点下班"), *statements]) is None
    assert answer("asks_a_question", [("b", 0, "你几点下班"), *statements]) is False
    reactions: list[Row] = [("a", 30, t) for t in LINES["nothing_of_oneself"][:6]]
    assert answer("tells_of_self", [("a", 0, "我今天升职了"), *reactions]) is None


def test_questions_and_reactions_tell_nothing_of_oneself_and_one_own_line_is_enough_not_to_fail() -> None:
    check(lambda text: answer("tells_of_self", among(text, LINES["nothing_of_oneself"])), LINES["nothing_of_oneself"], 1.0)
    assert [t for t in LINES["of_oneself"] if answer("tells_of_self", among(t, LINES["nothing_of_oneself"])) is False] == []


def test_a_chat_of_acknowledgements_is_passive_and_one_of_short_own_words_is_not() -> None:
    check(lambda text: answer("not_passive", among(text, LINES["acknowledgements"])), LINES["acknowledgements"], 1.0)
    for text in LINES["own_words"]:
        assert not is_acknowledgement(text)
        mixed = [*random.Random(text).sample(LINES["acknowledgements"], 6), *random.Random(text).sample(LINES["own_words"], 3), text]
        assert answer("not_passive", own(mixed)) is not False
        assert answer("both_take_part", own(mixed)) is not False


def test_token_replies_are_no_part_in_the_chat_and_few_words_are() -> None:
    assert [c for c in CHATS["barely_there"] if answer("both_take_part", own(c)) is not False] == []
    assert [c for c in CHATS["few_words"] if answer("both_take_part", own(c)) is False] == []
    alone: list[Row] = [("b", 0, "我跟你说个事"), *(("a", 30, t) for t in LINES["of_oneself"][:7])]  # type: ignore[list-item]
    assert answer("both_take_part", alone) is False


def test_chats_that_turn_in_a_circle_fail() -> None:
    for texts in CHATS["going_in_circles"]:
        assert answer("keeps_moving", own(texts)) is False
        assert (richness(texts) or 1) < 0.52
    assert answer("keeps_moving", own(LINES["of_oneself"][:10])) is True
    assert richness(LINES["of_oneself"][:3]) is None


def test_off_topic_throughout_fails_and_a_word_taken_from_the_partner_does_not() -> None:
    for texts in CHATS["off_topic"]:
        assert answer("takes_up_the_event", own(texts)) is False
        assert answer("takes_up_the_event", own([*texts, "老街那家店我去过 关门了啊"])) is None


def test_repeated_questions_need_the_same_matter_and_an_answer() -> None:
    def says(first: str, reply: str, again: str) -> bool | None:
        return answer("no_repeated_question", exchange(f"o {first} / p {reply} / o 哦 / p 是啊 / o {again}"))

    assert says("你表弟几号回来", "28号下午", "他回来定的是哪天") is False
    assert says("你表弟几号回来", "还没定", "他回来定的是哪天") is None
    assert says("你明天来不来", "来", "后天来不来") is not False
    assert says("你妈出院没有", "出了", "你爸出院没有") is not False
    assert says("血糖测了没", "测了", "血压测了没") is not False
    assert says("你到哪了", "刚过收费站", "你现在到哪了") is not False
    assert says("会不会下雨", "打雷了都", "打雷了？会不会下雨") is not False
    assert says("你周六加班吗", "加", "那你周日加班吗") is not False


def test_a_correction_by_the_partner_counts_for_what_the_person_claimed() -> None:
    assert answer("who_is_who", exchange("p 我报名了驾校 / o 我学车你别笑我 / p 是我学车啊")) is False
    assert answer("who_is_who", exchange("p 我报名了驾校 / o 你学车莫急 / p 是我学车啊")) is not False
    assert answer("who_is_who", exchange("p 谁去 / o 我学车去不了啊 你呢 / p 是我去接的他")) is not False


def test_filler_in_answer_to_distress_keeps_a_chat_from_passing() -> None:
    warm = "p 你吃了没 / o 吃了碗面 / p 我今天被骂哭了 / o {} / p 嗯 / o 晚上我去找你"
    assert answer("no_cold_shutdown", exchange(warm.format("谁骂你 我找他去"))) is True
    assert answer("no_cold_shutdown", exchange(warm.format("哦"))) is None


def test_new_word_pairs_of_old_characters_are_a_circle_all_the_same() -> None:
    texts = ["我说那个人不行吧", "我早就讲过了", "你就是不听", "那人真的不行", "我早跟你讲了", "你不听我的嘛", "我就说他不行", "早就说过的"]
    assert answer("keeps_moving", own(texts)) is False

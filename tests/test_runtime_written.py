"""Dialogues written as decisions: the scheduler plays them to identical messages and times, or says which line cannot be."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.cards.gold import Written
from anthrolab.cards.library import Library, load_library
from anthrolab.runtime.dialogue import Speaker
from anthrolab.runtime.schedule import Rules
from anthrolab.runtime.session import replay
from anthrolab.runtime.written import WrittenError, as_lines, load_gold, play_written
from tests.cards_for_tests import copy_cards, make_seats

OPENER = "20:31:00 b 周末有空没"


def played(*lines: str) -> list[str]:
    dialogue = play_written(Written(binding="b01", lines=[OPENER, *lines]), make_seats(), "gold-b01")
    assert replay(dialogue, Rules(horizon_s=900)).stop == dialogue.stop
    return as_lines(dialogue)


def problems(*lines: str) -> str:
    with pytest.raises(WrittenError) as caught:
        play_written(Written(binding="b01", lines=list(lines)), make_seats(), "gold-b01")
    return str(caught.value)


def test_messages_and_drafts_come_back_as_written() -> None:
    lines = [
        "20:31:20 a 有啊 咋了",
        "~20:32:40 a 你不会又要",  # a began to write, b was faster
        "20:31:50 b 打球去不",
        "~20:33:10 b 我把场地都",
        "20:32:41 a 几点",
        "20:33:00 b 周六三点",
        "20:39:30 b 去不去嘛",
        "~20:46:30 a 那我看看",  # due after the horizon: the chat ends with a draft that never goes out
    ]
    assert played(*lines) == [OPENER, *lines]


def test_the_asks_are_the_decisions_in_the_lines() -> None:
    written = Written(
        binding="b01", lines=[OPENER, "20:31:20 a 有啊 咋了", "~20:32:40 a 你不会又要叫我打球", "20:31:50 b 打球去不", "20:32:40 a 你不会又要叫我打球吧"]
    )
    dialogue = play_written(written, make_seats(), "gold-b01")
    assert dialogue.asks is not None
    actions = [(ask.speaker, ask.action) for ask in dialogue.asks]
    assert actions == [
        ("b", "silent"), ("a", "new"),  # after the opener
        ("a", "new"), ("b", "new"),  # a begins a second message, b answers
        ("b", "silent"), ("a", "revise"),  # b's message interrupts a, who changes the end
        ("a", "silent"), ("b", "silent"),
    ]  # fmt: skip
    assert dialogue.stop == "closed"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["20:31:00 b 周末有没有空", "20:31:20 a 有"], "lines[1]: is not the opener"),
        (["20:31:01 b 周末有空没", "20:31:20 a 有"], "lines[1]: is not the opener"),
        ([OPENER, "20:31 a 有"], "lines[2]: is not 'HH:MM:SS a text'"),
        ([OPENER, "20:31:20 c 有"], "lines[2]: is not"),
        ([OPENER, "20:31:20 a 有", "20:31:10 b 好"], "lines[3]: is earlier"),
        ([OPENER, "~20:31:40 a 有", "20:31:50 a 有啊"], "a speaker has one draft"),
        ([OPENER, "~20:31:20 a 有", "20:31:20 b 在不在"], "is due before lines[3]"),
        ([OPENER, "~20:31:40 a 有", "~20:31:45 a 有啊", "20:31:20 b 在不在"], "two unsent drafts"),
        ([OPENER, "20:31:20 a 有", "~20:33:00 b 好啊"], "goes out; let it be due after the horizon"),
        ([OPENER, "20:31:20 a 有空的啊", "20:31:40 a 有空的啊！"], "self_repetition dropped"),
        ([OPENER, *(f"20:31:{s} a 说{s}个事" for s in (10, 12, 14, 16, 18))], "too_many_in_a_row dropped"),
        ([OPENER, "20:41:01 a 有"], "lines[2]: is due more than 600 s"),
        ([OPENER, "20:40:00 a 有", "20:46:01 b 好"], "does not go out at its time"),
    ],
)
def test_what_the_scheduler_would_not_send_is_named_by_its_line(lines: list[str], said: str) -> None:
    assert said in problems(*lines)


def test_a_clock_past_midnight() -> None:
    seats = {s: seat.__class__(**{**vars(seat), "scene": seat.scene.__class__(**{**vars(seat.scene), "start": seat.scene.start.replace(hour=23, minute=58)})})
             for s, seat in make_seats().items()}  # fmt: skip
    table: dict[Speaker, object] = dict(seats)
    dialogue = play_written(Written(binding="b01", lines=["23:58:00 b 周末有空没", "00:03:10 a 有啊"]), table, "gold-b01")  # type: ignore[arg-type]
    assert [m.at.day for m in dialogue.messages] == [6, 7]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 40), st.booleans()), min_size=1, max_size=12))
def test_any_course_that_the_scheduler_takes_is_written_and_played_the_same(steps: list[tuple[str, int, bool]]) -> None:
    at, lines, row = 0, [OPENER], ["b"]
    for number, (who, gap, holds) in enumerate(steps):
        if row[-3:] == [who] * 3:
            who = "a" if who == "b" else "b"
        at += gap
        if holds:
            lines.append(f"~{clock(at + 5)} {'a' if who == 'b' else 'b'} 打到一半的第{number}句")
        lines.append(f"{clock(at)} {who} 这是第{number}句话")
        row.append(who)
    dialogue = play_written(Written(binding="b01", lines=lines), make_seats(), "gold-b01")
    assert as_lines(dialogue) == lines


def clock(second: int) -> str:
    return f"20:{31 + second // 60:02d}:{second % 60:02d}"


def test_a_folder_of_written_dialogues(tmp_path: Path) -> None:
    cards = copy_cards(tmp_path / "卡片")
    library: Library = load_library(cards)
    assert load_gold(cards, library) == {}
    gold = cards / "gold"
    gold.mkdir()
    first = "19:42:00 a 小龙，抽签出来了，头一轮碰老邮电。"
    (gold / "b01.yaml").write_text(f"binding: b01\nlines:\n  - {first}\n  - 19:42:31 b 真的啊！！\n", encoding="utf-8")
    assert as_lines(load_gold(cards, library)["b01"]) == [first, "19:42:31 b 真的啊！！"]
    (gold / "b02.yaml").write_text(f"binding: b01\nlines:\n  - {first}\n  - 19:42:31 b 真的啊！！\n", encoding="utf-8")
    (gold / "b99.yaml").write_text("binding: b99\nlines:\n  - 19:42:00 a x\n  - 19:42:31 b y\n", encoding="utf-8")
    (gold / "b03.yaml").write_text("binding: b03\nlins: []\n", encoding="utf-8")
    with pytest.raises(WrittenError) as caught:
        load_gold(cards, library)
    text = "\n".join(caught.value.problems)
    assert f"{gold / 'b02.yaml'}: binding: is 'b01'" in text
    assert f"{gold / 'b99.yaml'}: binding: no binding 'b99'" in text
    assert f"{gold / 'b03.yaml'}: lins: is no field of a written (did you mean 'lines'?)" in text

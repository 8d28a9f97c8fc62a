"""The lines of the terminal chat: nothing in them steers a terminal, and wide characters take two cells."""

import unicodedata
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.live.context import EMPTY, Inferred, corrected
from anthrolab.live.scene import case_setting, open_setting
from anthrolab.live.terminal_commands import KINDS
from anthrolab.live.terminal_start import part_text
from anthrolab.live.terminal_text import (
    HELP,
    call_text,
    cells,
    context_text,
    farewell,
    folded,
    framed,
    message_text,
    visible,
)
from anthrolab.live.view import Line
from anthrolab.models.client import Reply
from anthrolab.show.chat_panel import Call

LIBRARY = load_library(default_cards_dir())


@given(st.text())
def test_what_is_visible_holds_nothing_that_acts_but_line_ends_and_the_joiner(text: str) -> None:
    shown = visible(text)
    acting = {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")}
    assert acting <= {"\n", "\u200d"}


@pytest.mark.parametrize("text", ["在吗？哈哈 >_< [强]", "一家人👨\u200d👩\u200d👧", "全角　空格", "a\nb", "<b>&amp;"])
def test_what_does_nothing_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(st.text(st.characters(exclude_categories=("Cc", "Zl", "Zp", "Cs", "Cf", "Mn", "Me", "Cn", "Co"))), st.integers(2, 90))
def test_folded_rows_fit_and_lose_nothing_but_blanks(text: str, columns: int) -> None:
    rows = folded(text, columns)
    assert all(cells(row) <= columns for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


def test_chinese_characters_take_two_cells_and_words_stay_whole() -> None:
    assert cells("你好a") == 5
    assert folded("你好世界", 5) == ["你好", "世界"]
    assert folded("不要 rely on it", 9) == ["不要 rely", "on it"]
    assert folded("abcdef", 4) == ["abcd", "ef"]


def test_a_frame_closes_at_the_same_column_whatever_the_width_of_its_characters() -> None:
    rows = [row for row in framed("这是一个人工智能，不是真人。\nThis is an AI. " * 3, 60).split("\n") if row]
    assert {cells(row) for row in rows} == {60}


def test_the_help_fits_a_terminal_of_80_columns() -> None:
    assert max(map(cells, HELP.split("\n"))) <= 79


def test_a_message_is_number_time_name_text() -> None:
    line = Line(2, False, "林晓雯", datetime(2026, 3, 6, 20, 31, 12), "有啊\n咋了\x07")
    assert message_text(line) == "[3] 20:31:12 林晓雯: 有啊\n    咋了\\u0007"


def test_a_call_shows_every_message_and_the_raw_reply() -> None:
    call = Call([("system", "你是谁"), ("user", "在吗\x07")], {}, Reply("{", reasoning="想"))
    assert call_text(call) == "--- shown (system)\n你是谁\n--- shown (user)\n在吗\\u0007\n--- thought\n想\n--- replied\n{\n---"


def test_what_is_known_stands_with_its_evidence() -> None:
    entry = Inferred(kind="city", value="成都", quote="我在成都", message=2)
    context = corrected(EMPTY.model_copy(update={"entries": [entry]}), "name", "小林")
    assert context_text(context, True) == "1. city: 成都 (from [3]: “我在成都”)\n2. name: 小林 (set by hand)"
    assert "--analyser" in context_text(EMPTY, False)
    assert KINDS == ("name", "age", "gender", "city", "occupation", "relationship_status", "said", "relationship", "topic", "place", "mood")


def test_at_the_end_a_saved_chat_says_where_it_is_and_how_to_judge_it() -> None:
    said = farewell(Path("聊天 一"), "chat01", 3, False)
    assert said == "Saved in '聊天 一' as chat01.\nGo on with it: the same command with --chat chat01\nJudge it: anthrolab judge '聊天 一'"
    assert "Judge" not in farewell(Path("x"), "chat01", 0, True) and "Go on" not in farewell(Path("x"), "chat01", 0, True)


def test_in_a_case_the_person_is_told_whose_part_they_take_and_nothing_of_the_other_side() -> None:
    setting = case_setting(LIBRARY, "b01-a")
    said = part_text(setting)
    assert setting.part is not None and setting.part.trigger in said and setting.person in said
    assert setting.seat.side.trigger not in said
    alone = open_setting(LIBRARY, "p01", "小林", datetime(2026, 3, 6))
    assert part_text(alone) == f"You write with {alone.seat.name}, as 小林."

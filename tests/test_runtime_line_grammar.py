"""A transcript line: the grammar, the regular expression and the parser are one rule."""

import re
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.runtime.line_grammar import LineRule

moments = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(lambda t: t.replace(microsecond=0))


@given(moments, st.integers(0, 1200), st.integers(0, 1200))
def test_the_regex_offers_exactly_the_minutes_ahead(now: datetime, longest: int, delay: int) -> None:
    rule = LineRule("林晓雯", "周子航", now, longest)
    at = now + timedelta(seconds=delay)
    line = f"{at:%H:%M:%S}] 林晓雯: 好啊\n"
    last_minute = (now + timedelta(seconds=longest)).replace(second=59)
    known = rule.clock()
    offered = line.startswith(known) and re.fullmatch(rule.regex(), line[len(known) :]) is not None
    assert offered == (at <= last_minute)
    if at <= last_minute:
        assert rule.parse(line) == (delay, "好啊")


def test_the_second_before_now_is_not_offered() -> None:
    rule = LineRule("甲", "乙", datetime(2026, 3, 6, 20, 31, 15), 60)
    assert rule.clock() == "20:3"
    assert re.fullmatch(rule.regex(), "1:14] 甲: 好\n") is None
    assert re.fullmatch(rule.regex(), "1:15] 甲: 好\n") is not None
    assert re.fullmatch(rule.regex(), "1:15] 丙: 好\n") is None


def test_the_partners_name_is_silence_and_midnight_is_crossed() -> None:
    rule = LineRule("甲", "乙", datetime(2026, 3, 6, 23, 59, 50), 600)
    assert rule.parse("00:00:05] 乙:") == (15, None)
    assert rule.parse("00:00:05] 甲: 还没睡") == (15, "还没睡")


@pytest.mark.parametrize("line", ["好的", "25:00:00] 甲: 好", "20:31:05] 丙: 好", ""])
def test_other_lines_are_errors(line: str) -> None:
    with pytest.raises(ValueError, match=r"line|time"):
        LineRule("甲", "乙", datetime(2026, 3, 6, 20, 31), 600).parse(line)


def test_the_grammar_quotes_names() -> None:
    assert '"阿\\"宝\\\\: "' in LineRule('阿"宝\\', "乙", datetime(2026, 3, 6, 20, 31), 60).gbnf()


def test_a_time_that_has_passed_is_no_time_of_tomorrow() -> None:
    assert LineRule("甲", "乙", datetime(2026, 3, 6, 20, 31, 10), 600).parse("20:31:05] 甲: 好") == (-5, "好")

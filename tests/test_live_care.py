"""The care rules: what they find, what they leave alone, how they read, and the notices that follow. Phrases: data/care.yaml."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anthrolab.live import care_words
from anthrolab.live.care import Care, Concern, care
from anthrolab.live.care_abuse import ABUSE, ABUSE_ENGLISH
from anthrolab.live.care_emergency import EMERGENCY, EMERGENCY_ENGLISH
from anthrolab.live.care_self_harm import SELF_HARM, SELF_HARM_ENGLISH
from anthrolab.live.notices import AI_NOTICE, care_notice, header
from anthrolab.yaml_files import read_yaml

DATA = Path(__file__).parent.parent / "data"
SETS: dict[str, list[dict[str, Any]]] = read_yaml(Path(__file__).parent / "data" / "care.yaml")  # type: ignore[assignment]
INDEPENDENT, CLUTTER = SETS.pop("independent"), SETS.pop("clutter")
"""`independent`: by somebody who had not seen the rules, which were not mended for it. It says what to expect of fresh messages."""
CONCERNS = get_args(Concern)
CHINESE = [row["text"] for row in SETS["first"] if row["concern"] and re.search("[一-鿿]", row["text"])]

RULES = (*SELF_HARM, *ABUSE, *EMERGENCY, *SELF_HARM_ENGLISH, *ABUSE_ENGLISH, *EMERGENCY_ENGLISH)
PATTERNS = (
    *(rule.says for rule in RULES),
    *(rule.unless for rule in RULES if rule.unless),
    *care_words.IDIOMS, *care_words.ENGLISH_IDIOMS, care_words.STORY,
)  # fmt: skip

DEFENDED = {
    "我真的不想活了",
    "我真的好累 感觉撑不下去了",
    "钱全没了 我想死的心都有",
    "美珍。你是我心里的太阳。没有你。我一天也活不下去。让我大声说爱你。",
}
"""Planted lines of the labelled set that alarm: three are cries for help, and no rule can tell the love letter from a fourth."""


def concern(text: str) -> str | None:
    found = care(text)
    return found.concern if found else None


@pytest.mark.parametrize(("rows", "phrases", "found", "alarms"), [(INDEPENDENT, 60, 37, 7), (CLUTTER, 90, 88, 10)])
def test_the_rules_are_no_worse_than_they_were_measured(rows: list[dict[str, Any]], phrases: int, found: int, alarms: int) -> None:
    missed = [row["text"] for row in rows if row["concern"] and concern(row["text"]) != row["concern"]]
    false = {row["text"]: care(row["text"]) for row in rows if row["concern"] is None and care(row["text"])}
    assert sum(row["concern"] is not None for row in rows) == phrases and len(rows) == 2 * phrases
    assert len(missed) <= phrases - found and len(false) <= alarms, (missed, false)


FILLING = "今天路上堵得厉害然后去买了两斤橘子晚上还下了点雨"
"""What somebody may say before or after: it holds no sign of anything, and is longer than words reach."""
EXCUSES = ["猫", "上班", "断电了", "哈哈", "昨天看的电影", "打了会儿游戏", "恢复得不错", "体检", "开会改ppt", "手机", "医生", "切菜", "笑死", "去年"]
PLAIN = [
    ("我不想活了", "self_harm"), ("我想去死", "self_harm"), ("我活不下去了", "self_harm"), ("我撑不下去了", "self_harm"), ("我割腕了", "self_harm"),
    ("我写好遗书了", "self_harm"), ("我爸又打我了", "abuse"), ("他把我锁在家里", "abuse"), ("我被邻居猥亵了", "abuse"), ("他把我按在地上打", "abuse"),
    ("我妈晕倒了叫不醒", "emergency"), ("我吞了一整瓶安眠药", "emergency"), ("我爸嘴歪了", "emergency"), ("我喘不上气了", "emergency"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PLAIN)
@pytest.mark.parametrize("excuse", EXCUSES)
def test_a_word_far_from_a_plain_statement_does_not_silence_it(text: str, expected: str, excuse: str) -> None:
    assert concern(f"{excuse} {FILLING} {text} {FILLING} {excuse}") == expected


@pytest.mark.parametrize("text", [text for text, kind in PLAIN if kind == "self_harm"])
@pytest.mark.parametrize("laugh", ["哈哈", "哈哈哈哈哈", "233", "2333333", "😂", "嘿嘿", "hhh", "笑死"])
def test_who_wants_to_die_and_laughs_over_it_is_found(text: str, laugh: str) -> None:
    assert concern(f"{text} {laugh}") == concern(f"{text}{laugh}") == concern(f"{laugh} {text}") == "self_harm"


@pytest.mark.parametrize("place", range(0, 300, 50))
@pytest.mark.parametrize(("text", "expected"), PLAIN)
def test_a_plain_statement_is_found_anywhere_in_a_long_message(text: str, expected: str, place: int) -> None:
    clutter = (FILLING + "猫在门口等我上班手机电影游戏哈哈") * 10
    assert concern(f"{clutter[:place]} {FILLING} {text} {FILLING} {clutter[: 300 - place]}") == expected


def test_of_two_concerns_the_more_urgent_is_named_and_a_story_about_one_hides_no_other() -> None:
    assert concern("我爸打我 我不想活了 我吞了一整瓶安眠药") == "emergency"
    assert concern("电影里那个人割腕了 我爸又打我了") == "abuse"
    assert concern("同学打游戏 我爸踹我") == "abuse"  # one match holds both
    assert concern(f"昨天看的电影 {FILLING}{FILLING} 奶奶断气了") == "emergency" and concern("电影里奶奶断气了") is None


@pytest.mark.parametrize("name", SETS)
def test_every_phrase_is_found_with_its_concern(name: str) -> None:
    phrases = [row for row in SETS[name] if row["concern"]]
    assert {row["text"]: concern(row["text"]) for row in phrases} == {row["text"]: row["concern"] for row in phrases}


@pytest.mark.parametrize("name", SETS)
def test_at_most_two_look_alikes_alarm(name: str) -> None:
    alarms = {row["text"]: care(row["text"]) for row in SETS[name] if row["concern"] is None and care(row["text"])}
    assert len(alarms) <= 2, alarms


def test_the_first_set_has_twenty_phrases_of_each_concern_and_sixty_look_alikes() -> None:
    count = [sum(row["concern"] == kind for row in SETS["first"]) for kind in (*CONCERNS, None)]
    assert count == [20, 20, 20, 60]


def test_no_written_dialogue_and_no_opener_alarms() -> None:
    gold = [line.split(" ", 2)[2] for path in sorted((DATA / "gold").glob("*.yaml")) for line in read_yaml(path)["lines"]]  # type: ignore[index]
    openers = [read_yaml(path)["opener"]["content"] for path in sorted((DATA / "scenarios").glob("*.yaml"))]  # type: ignore[index]
    assert len(gold) > 1000 and len(openers) >= 50
    assert {text: care(text) for text in (*gold, *openers) if care(text)} == {}


def test_the_labelled_set_alarms_only_where_somebody_cries_for_help() -> None:
    rows = (DATA / "labelled" / "set.jsonl").read_text(encoding="utf-8").splitlines()
    lines = {op["content"] for row in rows for op in json.loads(row)["ops"] if "content" in op}
    assert len(lines) > 1000
    assert {line for line in lines if care(line)} == DEFENDED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我割腕了 血止不住", "emergency"),  # a life first
        ("他打我 我不想活了", "self_harm"),
        ("我看的剧里那个人自杀了 我也想自杀", "self_harm"),  # a story, and then oneself
        ("剧里她说不想活了", None), ("我朋友说不想活了", "self_harm"), ("对面打野又打我了", None), ("我爸又打我了", "abuse"),
        ("想死的心都有了", "self_harm"), ("又要加班 想死的心都有了", None),
        ("我没考上 不想活了", "self_harm"), ("热得不想活了", None), ("年轻生活真好", None), ("没自杀成", "self_harm"), ("我不会自杀的", None),
        ("我不想活了 猫托付给你了", "self_harm"), ("上班被骂了一天 我真的不想活了", "self_harm"), ("我活不下去了 网停了 钱也没了 断电了", "self_harm"),
        ("我想去死 哈哈", "self_harm"), ("没空调我活不下去", None), ("笑得我喘不上气", None), ("再改一版我真的去死", None), ("再逼我我就跳楼", "self_harm"),
        ("加班到现在 死了算了", None), ("加班到现在 死了算了 我说真的", "self_harm"),  # said in earnest
        # idioms end where somebody else comes up
        ("急死了 我爸心梗了", "emergency"), ("早上奶奶怎么叫都不醒", "emergency"), ("看他突然晕倒了", "emergency"), ("狗都叫了 他打我", "abuse"),
        ("我好累 死了算了", "self_harm"), ("队友打我 我爸也打我", "abuse"), ("去年我妈脑梗 现在恢复得不错", None),
        ("my boss raped me", "abuse"),  # a boss is of a game in Chinese only
        ("自杀式袭击太可怕了", None), ("尴尬死了 想消失", None), ("去年我妈中风了", None), ("去年我妈中风了 今天又嘴歪了", "emergency"),
    ],
)  # fmt: skip
def test_the_words_around_say_what_is_meant(text: str, expected: str | None) -> None:
    assert concern(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("唉 不 想。活 了…", "不 想。活"), ("我想自殺", "自殺"), ("要不ＺＳ算了", "不ＺＳ"), ("俺被打了", "被打"), ("💔 自\u200b鲨", "自\u200b鲨"),
        ("He said: I WANT  to kill\nmyself!", "kill\nmyself"), ("Can’t breathe", "Can’t breathe"),
        ("İİİ 自杀", "自杀"), ("笑死 累死 我割腕了", "割腕"),
    ],
)  # fmt: skip
def test_the_words_are_those_of_the_message(text: str, words: str) -> None:
    found = care(text)
    assert found is not None and found.words == words


@given(st.sampled_from(CHINESE), st.lists(st.sampled_from([" ", "　", "，", "。", "…", "!", "~", "😭", "\u200b", "\n", "-", "、"]), min_size=1, max_size=40))
def test_blanks_and_signs_between_the_characters_change_nothing(text: str, signs: list[str]) -> None:
    spread = "".join(char + signs[i % len(signs)] for i, char in enumerate(text))
    before, after = care(text), care(spread)
    assert before is not None and after is not None and after.concern == before.concern
    assert [c for c in after.words if c.isalnum()] == [c for c in before.words if c.isalnum()]


LITERALS = set("".join(PATTERNS))


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5).filter(lambda c: c not in LITERALS and care(c) is None), max_size=60))
def test_text_of_other_characters_says_nothing(text: str) -> None:
    assert care(text) is None


@given(st.text())
def test_any_text_is_read_and_the_words_stand_in_it(text: str) -> None:
    found = care(text)
    assert found is None or (found.words and found.words in text and found.concern in CONCERNS)


@given(st.text(st.sampled_from("我他妈又打死想不活了药血没呼吸喘气跳楼下去哈 he'skilme"), max_size=80))
def test_the_rules_own_characters_in_any_order_are_read(text: str) -> None:
    found = care(text)
    assert found is None or found.words in text


def repeats(tokens: Any) -> Iterator[int]:
    """The upper bound of every repeat in a parsed pattern."""
    for kind, value in tokens:
        if str(kind) in ("MAX_REPEAT", "MIN_REPEAT"):
            _, high, inner = value
            yield int(high)
            yield from repeats(inner)
        elif str(kind) == "SUBPATTERN":
            yield from repeats(value[3])
        elif str(kind) == "BRANCH":
            for branch in value[1]:
                yield from repeats(branch)
        elif str(kind) in ("ASSERT", "ASSERT_NOT"):
            yield from repeats(value[1])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_pattern_can_run_away(pattern: str) -> None:
    """Every repeat ends soon, so a message of n characters takes time in proportion to n; and every brace is a repeat."""
    assert not re.search(r"\(\d+, \d+\)|\{\{", pattern), "braces of an f-string, doubled or not as they should be"
    assert all(high <= 30 for high in repeats(_parser.parse(pattern)))


@pytest.mark.parametrize("unit", ["我", "他打", "药", "胸疼喘", "想不活", "he hit ", "a", "没有", "血流", "\u200b"])
def test_a_message_of_ten_thousand_characters_is_read(unit: str) -> None:
    found = care(unit * (10_000 // len(unit)))
    assert found is None or isinstance(found, Care)


def test_the_notice_before_a_chat_says_what_this_is() -> None:
    for word in ("AI", "虚构", "没有真人", "an AI program", "made-up", "medical, legal or money"):
        assert word in AI_NOTICE


def test_the_header_is_one_line_that_names_persona_and_model() -> None:
    line = header("林\n晓雯", "gemma-3-270m")
    assert line.startswith("AI · ") and "\n" not in line
    assert "不是真人" in line and "林 晓雯 is played by the model gemma-3-270m, not a person" in line


@pytest.mark.parametrize("kind", CONCERNS)
@pytest.mark.parametrize("by_person", [True, False])
def test_a_notice_says_ai_and_pause_and_whom_to_call_in_two_languages(kind: Concern, by_person: bool) -> None:
    chinese, english = care_notice(kind, by_person).split("\n\n")
    for text in (chinese, english):
        assert {"120", "110", "12110", "12356", "12338", "12355"} <= set(re.findall(r"\d+", text)) and "AI" in text
    assert "暂停" in chinese and "当地" in chinese and "paused" in english and "local emergency number" in english
    assert ("没有人真的有危险" in chinese and "nobody is in danger" in english) is not by_person
    assert ("帮不了你" in chinese and "cannot help" in english) is by_person


@pytest.mark.parametrize(("kind", "first"), [("emergency", "120"), ("self_harm", "12356"), ("abuse", "110")])
def test_the_first_number_is_the_one_that_the_concern_needs(kind: Concern, first: str) -> None:
    for by_person in (True, False):
        for text in care_notice(kind, by_person).split("\n\n"):
            assert re.findall(r"\d+", text)[0] == first

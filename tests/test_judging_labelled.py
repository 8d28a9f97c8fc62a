"""The labelled set's machinery: edits do what they say, nothing else, and the same seed makes the same items."""

import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

from anthrolab.cards.library import Library, load_library
from anthrolab.judging.labelled import making
from anthrolab.judging.labelled.bank import Bank, Entry, When, load_banks, spoken
from anthrolab.judging.labelled.edits import COMPUTED_FAILS, COMPUTED_HOLDS
from anthrolab.judging.labelled.items import (
    Broken,
    Drop,
    Fails,
    Insert,
    Labelled,
    LabelledError,
    Replace,
    Retime,
    applied,
    load_labelled,
    save_labelled,
    untouched,
)  # fmt: skip
from anthrolab.judging.labelled.making import Case, asks, cases_of, make_from_bank, may_ask
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.runtime.written import load_gold
from tests.cards_for_tests import copy_cards

SCRIPT = """binding: b01
lines:
  - 19:42:00 a 小龙，抽签出来了，头一轮碰老邮电。
  - 19:42:31 b 真的啊！！
  - ~19:43:05 a 你礼拜二没来，我就晓得
  - 19:42:50 b 谭爷爷 我有个事
  - 19:43:40 a 么子事，你讲。
  - 19:44:10 b 您那边膝盖好点没有呀？
  - 19:45:40 a 冇得事，老毛病。
  - 19:46:20 b 那就好 我怕您硬撑着
  - 19:47:40 a 你先讲你的事。
  - 19:48:30 b 我27号可能来不了了
"""


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Dialogue], Library]:
    cards = copy_cards(tmp_path_factory.mktemp("标注") / "cards")
    (cards / "gold").mkdir()
    (cards / "gold" / "b01.yaml").write_text(SCRIPT, encoding="utf-8")
    library = load_library(cards)
    return load_gold(cards, library), library


def item(*ops: object, **changes: object) -> Labelled:
    values = {"id": "x", "gold": "b01", "role": "b", "edit": "test", "seed": 1, "ops": list(ops)}
    return Labelled.model_validate(values | changes)


def lines(dialogue: Dialogue) -> list[str]:
    return [f"{m.at:%H:%M:%S} {m.speaker} {m.content}" for m in dialogue.messages]


def test_untouched_keeps_messages_asks_and_drafts(gold: tuple[dict[str, Dialogue], Library]) -> None:
    dialogue = applied(item(), gold[0])
    assert dialogue.messages == gold[0]["b01"].messages and dialogue.asks == gold[0]["b01"].asks
    assert (dialogue.dialogue_id, dialogue.evaluated_role) == ("x", "b")


def test_each_op_changes_its_message_and_keeps_the_other_distances(gold: tuple[dict[str, Dialogue], Library]) -> None:
    before = lines(gold[0]["b01"])
    inserted = lines(applied(item(Insert(after=2, speaker="b", content="算了", wait_s=30)), gold[0]))
    assert inserted[:3] == before[:3] and inserted[3] == "19:43:20 b 算了"
    assert inserted[4] == "19:44:10 a 么子事，你讲。" and len(inserted) == len(before) + 1
    replaced = lines(applied(item(Replace(at=1, content="哦")), gold[0]))
    assert replaced == [before[0], "19:42:31 b 哦", *before[2:]]
    dropped = lines(applied(item(Drop(at=1)), gold[0]))
    assert dropped[:2] == [before[0], "19:42:19 b 谭爷爷 我有个事"]
    earlier = lines(applied(item(Retime(at=3, gap_s=-10)), gold[0]))
    assert earlier[3] == "19:42:40 a 么子事，你讲。" and earlier[4] == "19:43:10 b 您那边膝盖好点没有呀？"


def test_asks_of_an_edited_dialogue_give_its_messages(gold: tuple[dict[str, Dialogue], Library]) -> None:
    dialogue = applied(item(Insert(after=2, speaker="b", content="算了", wait_s=30)), gold[0])
    assert dialogue.asks is not None and len(dialogue.asks) == 2 * len(dialogue.messages)
    decided = [(a.speaker, a.decision.content, a.decision.at) for a in dialogue.asks if a.decision and not a.decision.end]
    assert decided == [(m.speaker, m.content, m.at) for m in dialogue.messages[1:]]


def test_a_broken_reply_leaves_the_messages(gold: tuple[dict[str, Dialogue], Library]) -> None:
    dialogue = applied(item(Broken(after=2, speaker="b", error="role is missing")), gold[0])
    assert lines(dialogue) == lines(gold[0]["b01"]) and dialogue.asks is not None
    broken = [a for a in dialogue.asks if a.error]
    assert [(a.speaker, a.error, a.decision, a.now) for a in broken] == [("b", "role is missing", None, dialogue.messages[2].at)]


def test_items_come_back_from_their_file_and_faults_are_named(tmp_path: Path) -> None:
    items = [item(Replace(at=1, content="哦"), fails=[Fails(id="D1.3", turn=1)], holds=["L0-01"]), item(id="y")]
    save_labelled(items, tmp_path / "集.jsonl")
    assert load_labelled(tmp_path / "集.jsonl") == items
    (tmp_path / "bad.jsonl").write_text('{"id": "x"}\n', encoding="utf-8")
    with pytest.raises(LabelledError, match=r"bad.jsonl: line 1: gold"):
        load_labelled(tmp_path / "bad.jsonl")
    odd = [item(Replace(at=1, content="哦\u2028好\u0085的\x0c")), item(id="y")]
    save_labelled(odd, tmp_path / "odd.jsonl")
    assert load_labelled(tmp_path / "odd.jsonl") == odd
    save_labelled([item(), item()], tmp_path / "twice.jsonl")
    with pytest.raises(LabelledError, match="stands twice"):
        load_labelled(tmp_path / "twice.jsonl")
    with pytest.raises(ValueError, match="cannot both fail and hold"):
        item(fails=[Fails(id="E1.1")], holds=["E1.1"])


def test_what_does_not_fit_the_gold_dialogues_is_refused(gold: tuple[dict[str, Dialogue], Library]) -> None:
    with pytest.raises(LabelledError, match="no gold dialogue of binding b09"):
        applied(item(gold="b09"), gold[0])
    with pytest.raises(LabelledError, match="drop at 99, but the dialogue has 9 messages"):
        applied(item(Drop(at=99)), gold[0])


def test_untouched_items_claim_all_ids_for_both_roles(gold: tuple[dict[str, Dialogue], Library]) -> None:
    assert [(i.gold, i.role, i.edit, i.holds) for i in untouched(gold[0], ["D1.1"])] == [
        ("b01", "a", "none", ["D1.1"]), ("b01", "b", "none", ["D1.1"]),
    ]  # fmt: skip


def test_a_bank_line_goes_in_with_its_context_and_its_turn_is_named(gold: tuple[dict[str, Dialogue], Library]) -> None:
    bank = Bank.model_validate(
        {"id": "D4.4", "siblings": ["D1.3"], "also": ["L0-08"], "fails": [{"lines": ["p 那咋办啊", "o 研究表明要多喝水", "p 哦"], "also": ["L0-06"]}], "holds": ["我妈说要多喝水"]}
    )
    cases = cases_of(*gold)
    items = make_from_bank(bank, cases, 7, fails=3, holds=2, turn_scope=True)
    assert items == make_from_bank(bank, cases, 7, fails=3, holds=2, turn_scope=True)
    for positive in items[:3]:
        dialogue = applied(positive, gold[0])
        assert positive.fails[0].turn is not None
        said = dialogue.messages[dialogue.turns()[positive.fails[0].turn - 1]]
        assert said.content == "研究表明要多喝水" and said.speaker == positive.role
        assert positive.holds == ["L0-01", "L0-02", "L0-03", "L0-04", "L0-05", "D1.3"]
    for negative in items[3:]:
        assert negative.fails == [] and {"D4.4", "L0-06"} <= set(negative.holds)
        assert any(m.content == "我妈说要多喝水" for m in applied(negative, gold[0]).messages)


def test_an_entry_goes_only_where_it_fits(gold: tuple[dict[str, Dialogue], Library]) -> None:
    cases = cases_of(*gold)
    young = Bank(id="D3.1", fails=[Entry(lines=["老身骨头疼"], when=When(age_to=25))])
    assert {i.role for i in make_from_bank(young, cases, 1, fails=6, holds=0, turn_scope=True)} == {"b"}
    nobody = Bank(id="D3.1", fails=[Entry(lines=["老身骨头疼"], when=When(age_to=10))])
    with pytest.raises(LabelledError, match="fits no gold dialogue"):
        make_from_bank(nobody, cases, 1, fails=1, holds=0, turn_scope=True)


def test_slots_are_filled_from_the_cards(gold: tuple[dict[str, Dialogue], Library]) -> None:
    case = cases_of(*gold)[0]
    entry = Entry(lines=["o+40 {own2}今年{age}", "p {partner}", "我今年{older}，在{other_city}当{other_job}"])
    said = spoken(entry, case.own, case.partner, random.Random(1))
    assert [(s.own, s.wait_s) for s in said] == [(True, 40), (False, None), (True, None)]
    assert said[0].content == "国祥今年68" and said[1].content == "龙佳颖"
    assert "{" not in said[2].content and "株洲" not in said[2].content


def test_another_city_and_job_are_nowhere_in_the_card_nor_near_it() -> None:
    data = Path(__file__).parent.parent / "data"
    near = {"拉萨": "西藏", "海口": "海南", "哈尔滨": "黑龙江", "乌鲁木齐": "新疆", "厦门": "福建", "石家庄": "河北", "南宁": "广西", "沈阳": "辽宁", "银川": "宁夏", "昆明": "云南"}
    seen = set()
    for own in load_library(data).personas.values():
        card = " ".join([own.city, *own.hard_facts.city, own.occupation, *own.hard_facts.occupation])
        for seed in range(30):
            city, job = spoken(Entry(lines=["{other_city}", "{other_job}"]), own, own, random.Random(seed))
            seen |= {city.content, job.content}
            assert city.content not in card and near[city.content] not in card and job.content not in card, own.id
    assert len(seen) == 20, "every city and job is far from somebody"


def test_a_card_that_could_be_anything_is_named(gold: tuple[dict[str, Dialogue], Library]) -> None:
    own = cases_of(*gold)[0].own
    everywhere = own.model_copy(update={"city": "西藏海南东北新疆福建河北广西宁夏云南"})
    with pytest.raises(LabelledError, match=f"city: {own.id} may be any of 拉萨, 海口"):
        spoken(Entry(lines=["x"]), everywhere, own, random.Random(1))


@pytest.mark.parametrize(
    ("text", "surely", "perhaps"),
    [
        ("您那边膝盖好点没有呀？", True, True), ("睡了没。", True, True), ("今晚行吗", True, True), ("你昨晚几点收的工", True, True),
        ("牟静 中秋你上不上班", True, True), ("我也不晓得怎么教了", False, True), ("好着呢", False, True), ("下班没 早上冷惨了", False, True),
        ("五一回来不回来", False, True), ("冇得事，老毛病。", False, False), ("上铺打呼噜 我也睡不成", False, False),
    ],
)  # fmt: skip
def test_what_asks(text: str, surely: bool, perhaps: bool) -> None:
    assert (asks(text), may_ask(text)) == (surely, perhaps)


def test_the_set_is_not_made_with_what_it_measures() -> None:
    folder = Path(making.__file__).parent
    lines = [line for path in folder.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    used = {line for line in lines if re.match(r"from anthrolab\.judging\.(l0|rules)", line)}
    assert used == {"from anthrolab.judging.l0.result import ConstraintId"}


def test_spread_and_every(gold: tuple[dict[str, Dialogue], Library]) -> None:
    cases = [c for c in cases_of(*gold) if c.role == "b"]
    spread = Bank(id="E1.2", fails=[Entry(lines=["我六点到家", "我九点才到的家"], how="spread")])
    said = lines(applied(make_from_bank(spread, cases, 3, fails=1, holds=0, turn_scope=False)[0], gold[0]))
    at = [n for n, line in enumerate(said) if "到家" in line or "到的家" in line]
    assert len(at) == 2 and at[1] - at[0] >= 3 and "六点" in said[at[0]]
    every = Bank(id="E4.5", fails=[Entry(lines=["嗯", "哦"], how="every")])
    dialogue = applied(make_from_bank(every, cases, 3, fails=1, holds=0, turn_scope=False)[0], gold[0])
    assert [dialogue.messages[i].content for i in dialogue.turns()] == ["嗯", "哦", "嗯", "哦", "嗯"]
    questions = Bank(id="E4.1", fails=[Entry(lines=["我晓得了"], how="questions")])
    dialogue = applied(make_from_bank(questions, cases, 3, fails=1, holds=0, turn_scope=False)[0], gold[0])
    assert not any("？" in dialogue.messages[i].content for i in dialogue.turns())


def test_every_bank_of_the_corpus_loads_and_is_named_after_its_id() -> None:
    folder = Path(__file__).parent.parent / "data" / "labelled" / "banks"
    banks = load_banks(folder)
    assert {path.stem for path in folder.glob("*.yaml")} == set(banks)


@pytest.mark.parametrize("name", sorted({made.__name__ for edits in (COMPUTED_FAILS, COMPUTED_HOLDS) for t in edits.values() for made in t}))
def test_computed_edits_fit_the_corpus_and_can_be_applied(name: str) -> None:
    data = Path(__file__).parent.parent / "data"
    library = load_library(data)
    gold = load_gold(data, library)
    made = next(m for edits in (COMPUTED_FAILS, COMPUTED_HOLDS) for t in edits.values() for m in t if m.__name__ == name)
    fit = 0
    for case in cases_of(gold, library):
        edit = made(case, random.Random(f"{case.dialogue.binding}{case.role}"))
        if edit is None:
            continue
        fit += 1
        assert edit.name == name
        dialogue = applied(item(*edit.ops, gold=case.dialogue.binding, role=case.role), gold)
        assert dialogue.messages[0] == case.dialogue.messages[0]
        if edit.fault is not None and name != "broken_reply":
            assert dialogue.messages[edit.fault].speaker == case.role
        if name not in ("sent_before_the_one_above",):
            assert all(x.at <= y.at for x, y in pairwise(dialogue.messages))
    assert fit >= 8


def test_a_case_knows_its_turns(gold: tuple[dict[str, Dialogue], Library]) -> None:
    case: Case = cases_of(*gold)[1]
    assert case.role == "b" and case.own_positions() == [1, 2, 4, 6, 8]

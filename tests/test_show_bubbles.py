"""Chat bubbles: who said what when, what was dropped or left unsaid, and what failed where."""

from datetime import datetime, timedelta

from anthrolab.judging.rubric import load_rubric
from anthrolab.judging.verdict import BoxVerdict, L0Answer, TurnVerdict, Verdict
from anthrolab.runtime.dialogue import Dialogue, Guarded, Message, Participant
from anthrolab.show.bubbles import chat_html, chat_page, chat_view

START = datetime(2026, 3, 6, 20, 31)


def dialogue(**changes: object) -> Dialogue:
    said = [("b", "周末有空没", 0), ("a", "有啊 咋了", 12), ("b", "打球去", 40), ("a", "<i>行</i>", 55)]
    values: dict[str, object] = {
        "dialogue_id": "d",
        "evaluated_role": "a",
        "speakers": {"a": Participant(name="林晓雯"), "b": Participant(name="周子航")},
        "messages": [
            Message(speaker=s, content=c, at=START + timedelta(seconds=t), opener=t == 0)  # type: ignore[arg-type]
            for s, c, t in said
        ],
    }
    return Dialogue.model_validate({**values, **changes})


def verdict(**changes: object) -> Verdict:
    values: dict[str, object] = {
        "dialogue_id": "d",
        "judge": "j",
        "judge_identity": "i",
        "rubric": "r",
        "turns": [
            TurnVerdict(turn_index=1, message_index=1, boxes=[BoxVerdict(id="D1.1", passed=True)]),
            TurnVerdict(turn_index=2, message_index=3, boxes=[BoxVerdict(id="D1.1", passed=False, reason="太正式")]),
        ],
        "dialogue": [BoxVerdict(id="E1.1", passed=False, reason="没头没尾"), BoxVerdict(id="E1.2", unassessed="no_rule")],
    }
    return Verdict.model_validate({**values, **changes})


def test_sides_times_opener_and_turns() -> None:
    chat = chat_view(dialogue())
    assert [(b.tested, b.at, b.opener, b.turn) for b in chat.bubbles] == [
        (False, "20:31:00", True, None),
        (True, "20:31:12", False, 1),
        (False, "20:31:40", False, None),
        (True, "20:31:55", False, 2),
    ]
    assert (chat.tested, chat.partner) == ("林晓雯", "周子航")
    assert chat.outcome == "4 messages · 2 evaluated turns"


def test_failed_boxes_stand_at_their_turn_and_global_ones_below() -> None:
    chat = chat_view(dialogue(), verdicts={"model judge": verdict()}, rubric=load_rubric(), valid=True)
    assert [[f.id for f in b.findings] for b in chat.bubbles] == [[], [], [], ["D1.1"]]
    failed = chat.bubbles[3].findings[0]
    assert (failed.reason, failed.by) == ("太正式", "model judge")
    assert failed.text.endswith("?")
    assert [f.id for f in chat.below] == ["E1.1"]
    assert chat.outcome.endswith("valid · model judge: 2 failed of 3 assessed checkboxes (4 in all)")


def test_violations_stand_at_their_message_or_below() -> None:
    own = {"id": "L0-05", "severity": "fatal", "message_index": 3, "evidence": "same"}
    contract = {"id": "L0-04", "severity": "fatal", "message_index": -1, "evidence": "no line"}
    partner = {"id": "L0-02", "severity": "fatal", "message_index": 2, "evidence": "发你照片"}
    gate = {"reason": "fatal", "violations": [contract, own], "partner_violations": [partner]}
    found = L0Answer(id="L0-09", violated=True, message_index=1, reason="危险")
    chat = chat_view(dialogue(), gate=gate, verdicts={"j": verdict(l0=[found], turns=[], dialogue=[])}, valid=False)
    assert [[(f.id, f.partner) for f in b.findings] for b in chat.bubbles] == [
        [], [("L0-09", False)], [("L0-02", True)], [("L0-05", False)],
    ]  # fmt: skip
    assert [f.id for f in chat.below] == ["L0-04"]
    assert "invalid (L0-04, L0-05)" in chat.outcome


def test_dropped_drafts_stand_in_time() -> None:
    def draft(text: str, seconds: int) -> Guarded:
        return Guarded(speaker="a", content=text, guard="goodbye_loop", at=START + timedelta(seconds=seconds))

    chat = chat_view(dialogue(guards=[draft("拜拜", 20), draft("再见", 60)]))
    assert [b.text for b in chat.bubbles if b.dropped] == ["拜拜", "再见"]
    assert [bool(b.dropped) for b in chat.bubbles] == [False, False, True, False, False, True]


def test_text_is_escaped_in_print() -> None:
    evil = dialogue(speakers={"a": Participant(name="<b>a</b>"), "b": Participant(name="b")})
    for html in (chat_html([chat_view(evil)]), chat_page(chat_view(evil))):
        assert "&lt;i&gt;行&lt;/i&gt;" in html
        assert "<b>a</b>" not in html
    assert chat_page(chat_view(evil)).startswith("<style>")

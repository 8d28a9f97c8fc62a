"""Chat bubbles: who said what when, what was dropped or left unsaid, and what failed where."""

from datetime import date, datetime, timedelta

from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.cards.memory import Memory
from anthrolab.judging.rubric import load_rubric
from anthrolab.judging.verdict import BoxVerdict, L0Answer, TurnVerdict, Verdict
from anthrolab.metrics.asks import asks_of
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Draft, Guarded, Message, Participant, Speaker, Summary
from anthrolab.runtime.written import load_gold
from anthrolab.show.bubbles import chat_html, chat_page, chat_view, marked_chat

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


def test_the_line_over_a_chat_says_why_it_stopped_as_the_table_of_stops_does() -> None:
    def why(**changes: object) -> str:
        chat = chat_view(dialogue(**changes))
        return chat.outcome.removeprefix("4 messages · 2 evaluated turns").removeprefix(" · ")

    quiet = (ask("a", 55, ""), ask("b", 55, ""))
    assert why(stop="closed", asks=[*quiet]) == "both fell silent"
    assert why(stop="closed", asks=[quiet[0], ask("b", 55, "", error="no JSON")]) == "the partner's last reply broke the contract"
    assert why(stop="closed", asks=[ask("a", 55, "", error="no JSON"), quiet[1]]) == "the tested side's last reply broke the contract"
    assert why(stop="closed") == "closed, no log says how"
    assert why(stop="horizon") == "the time was up"
    assert why(stop="someone left") == "someone left", "a record from elsewhere has its own words"
    assert why() == ""


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
    assert [(b.text, b.unsent) for b in chat.bubbles if b.unsent] == [("拜拜", "draft dropped: goodbye loop"), ("再见", "draft dropped: goodbye loop")]
    assert [bool(b.unsent) for b in chat.bubbles] == [False, False, True, False, False, True]


def ask(speaker: Speaker, seconds: int, text: str, *, draft: str | None = None, error: str | None = None) -> Ask:
    """An ask at a message's time; a decision of "" is silence, `error` a broken reply."""
    now = START + timedelta(seconds=seconds)
    decision = None if error else Decision(content=text, at=now + timedelta(seconds=9), end=not text)
    previous = Draft(content=draft, at=now + timedelta(seconds=5)) if draft else None
    return Ask(speaker=speaker, now=now, previous_draft=previous, decision=decision, error=error)


def with_asks(*pairs: tuple[Ask, Ask]) -> Dialogue:
    return dialogue(asks=[one for pair in pairs for one in pair])


def test_a_draft_that_was_revised_replaced_or_withdrawn_stands_where_that_was_decided_with_what_became_of_it() -> None:
    chat = chat_view(
        with_asks(
            (ask("b", 0, "打球去"), ask("a", 0, "有啊 咋了")),
            (ask("a", 12, ""), ask("b", 12, "那打球去不去", draft="打球去不去")),
            (ask("b", 40, ""), ask("a", 40, "<i>行</i>", draft="明天我得加班到很晚")),
            (ask("a", 55, ""), ask("b", 55, "", draft="带上拍子")),
        )
    )
    assert [b.text for b in chat.bubbles] == ["周末有空没", "有啊 咋了", "打球去不去", "打球去", "明天我得加班到很晚", "<i>行</i>", "带上拍子"]
    assert [(b.unsent, b.became) for b in chat.bubbles if b.index is None] == [
        ("draft revised", "那打球去不去"), ("draft replaced", "<i>行</i>"), ("draft withdrawn", None),
    ]  # fmt: skip
    assert [b.tested for b in chat.bubbles if b.unsent] == [False, True, False]
    html = chat_html([chat])
    assert html.count('class="line left unsent"') == 2 and html.count('class="line right unsent"') == 1
    assert "became <span lang=\"zh\">&lt;i&gt;行&lt;/i&gt;</span>" in html


def test_a_reply_of_the_same_second_does_not_come_before_the_draft_that_it_replaced() -> None:
    said = [("b", "在不", 0), ("a", "在", 30), ("b", "吃了没", 30)]
    messages = [Message(speaker=s, content=c, at=START + timedelta(seconds=t), opener=t == 0) for s, c, t in said]  # type: ignore[arg-type]
    pairs = [(ask("b", 0, "帮我带份饭"), ask("a", 0, "在")), (ask("a", 30, ""), ask("b", 30, "吃了没", draft="帮我带份饭"))]
    chat = chat_view(dialogue(messages=messages, asks=[one for pair in pairs for one in pair]))
    assert [b.text for b in chat.bubbles] == ["在不", "在", "帮我带份饭", "吃了没"]


def test_a_draft_is_lost_with_a_broken_reply_and_overtaken_by_the_end() -> None:
    chat = chat_view(
        with_asks(
            (ask("b", 0, ""), ask("a", 0, "有啊 咋了")),
            (ask("a", 12, ""), ask("b", 12, "", draft="走啊", error="no line")),
            (ask("b", 40, ""), ask("a", 40, "<i>行</i>")),
            (ask("a", 55, "等我换个鞋"), ask("b", 55, "")),
        )
    )
    unsent = [(b.text, b.unsent) for b in chat.bubbles if b.unsent]
    assert unsent == [("走啊", "draft lost: the reply broke the contract"), ("等我换个鞋", "draft still unsent when the chat stopped")]
    dropped = with_asks((ask("b", 0, ""), ask("a", 0, "")), (ask("a", 12, ""), ask("b", 12, "")), (ask("b", 40, ""), ask("a", 40, "")), (ask("a", 55, "拜拜"), ask("b", 55, "")))
    guard = Guarded(speaker="a", content="拜拜", guard="goodbye_loop", at=START + timedelta(seconds=64))
    assert [b.unsent for b in chat_view(dropped.model_copy(update={"guards": [guard]})).bubbles if b.unsent] == ["draft dropped: goodbye loop"]


def test_a_message_says_through_how_many_messages_its_draft_was_kept() -> None:
    chat = chat_view(
        with_asks(
            (ask("b", 0, "打球去"), ask("a", 0, "有啊 咋了")),
            (ask("a", 12, "<i>行</i>"), ask("b", 12, "打球去", draft="打球去")),
            (ask("b", 40, ""), ask("a", 40, "<i>行</i>", draft="<i>行</i>")),
        )
    )
    assert [b.kept for b in chat.bubbles] == [0, 0, 1, 1]
    assert not [b for b in chat.bubbles if b.unsent], "a kept draft is its message"
    assert "draft kept through 1 message<" in chat_html([chat])


def test_in_every_gold_dialogue_the_shown_drafts_are_those_that_the_log_counts() -> None:
    library = load_library(default_cards_dir())
    seen = 0
    for gold in load_gold(default_cards_dir(), library).values():
        chat = chat_view(gold)
        assert [b.text for b in chat.bubbles if b.index is not None] == [m.content for m in gold.messages]
        for speaker in ("a", "b"):
            asks = asks_of(gold, speaker)
            assert asks is not None
            shown = [b.unsent for b in chat.bubbles if b.unsent and b.tested == (speaker == gold.evaluated_role)]
            counts = [shown.count(f"draft {fate}") for fate in ("revised", "replaced", "withdrawn", "still unsent when the chat stopped")]
            assert counts == [asks.revise, asks.replace, asks.withdraw, asks.unsent]
            seen += len(shown)
    assert seen > 20, "the corpus has interrupted drafts"


def test_memories_and_summaries_are_folded_in_above_the_chat() -> None:
    memory = Memory(owner="p01", partner="p02", as_of=date(2026, 2, 20), facts=["养了只<b>猫</b>"], concerns=["怕考试"])
    chat = chat_view(dialogue(memories={"a": memory}, summaries=[Summary(upto=2, commitments=["周末打球"], open_topics=["几点"])]))
    assert [(n.title, n.lines) for n in chat.notes] == [
        ("林晓雯 remembers of 周子航 (as of 2026-02-20)", [("facts", "养了只<b>猫</b>"), ("concerns", "怕考试")]),
        ("summary of the first 2 messages", [("commitments", "周末打球"), ("open topics", "几点")]),
    ]
    html = chat_html([chat])
    assert '<details class="notes"><summary>2 memories and summaries</summary>' in html
    assert "养了只&lt;b&gt;猫&lt;/b&gt;" in html
    assert "notes" not in chat_html([chat_view(dialogue())])


def test_marked_failures_frame_their_message_and_no_other() -> None:
    partner = {"id": "L0-02", "severity": "fatal", "message_index": 2, "evidence": "发你照片"}
    chat = chat_view(dialogue(), verdicts={"j": verdict()}, gate={"violations": [], "partner_violations": [partner]})
    marked = marked_chat(chat, {("D1.1", 3), ("L0-02", 2), ("E1.1", None)})
    assert [b.marked for b in marked.bubbles] == [False, False, False, True], "a partner's fault is no failure"
    assert [f.marked for f in marked.below] == [True]
    assert [b.marked for b in marked_chat(chat, {("D1.1", 1), ("E1.1", 3)}).bubbles] == [False] * 4
    assert chat_html([marked]).count(" marked") == 1 and " marked" not in chat_html([chat])


def test_text_is_escaped_in_print() -> None:
    evil = dialogue(speakers={"a": Participant(name="<b>a</b>"), "b": Participant(name="b")})
    for html in (chat_html([chat_view(evil)]), chat_page(chat_view(evil))):
        assert "&lt;i&gt;行&lt;/i&gt;" in html
        assert "<b>a</b>" not in html
    assert chat_page(chat_view(evil)).startswith("<style>")

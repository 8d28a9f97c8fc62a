"""A small labelled set over one small chat of two small people, a small rubric, and verdicts made by hand."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from anthrolab.cards.library import Library
from anthrolab.judging.labelled.items import Fails, Labelled, Replace
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.verdict import BoxVerdict, L0Answer, TurnVerdict, Verdict
from anthrolab.runtime.dialogue import Dialogue, Message, Participant
from tests.cards_for_tests import make_persona, make_scenario

SMALL = Rubric.model_validate(
    {
        "name": "small",
        "dimensions": [
            {"id": "D1", "name": "turns", "scope": "turn", "weight": 1, "checkboxes": [
                {"id": "D1.1", "question": "spoken?"}, {"id": "D1.2", "question": "short?"}]},
            {"id": "E1", "name": "whole", "scope": "dialogue", "weight": 1, "checkboxes": [
                {"id": "E1.1", "question": "asks?"}]},
        ],
    }
)  # fmt: skip

TEXTS = ("周末有空没", "有啊 咋了", "抢到场了", "厉害啊 几点", "三点到五点", "行 那我带水吧", "周六见", "好嘞 到时候见哈")
"""b opens; a, the evaluated side, has messages 1, 3, 5 and 7 (turns 1 to 4)."""

LIBRARY = Library(
    personas={p.id: p for p in (make_persona(), make_persona("p91", "周子航", 29))},
    scenarios={"s90": make_scenario()},
    bindings={},
)


def chat(dialogue_id: str = "gold-b90", texts: Iterable[str] = TEXTS) -> Dialogue:
    """b and a by turns, half a minute apart."""
    start = datetime(2026, 3, 6, 20, 31)
    return Dialogue(
        dialogue_id=dialogue_id,
        binding="b90",
        scenario="s90",
        evaluated_role="a",
        speakers={"a": Participant(name="林晓雯", persona="p90"), "b": Participant(name="周子航", persona="p91")},
        start=start,
        messages=[
            Message(speaker="ba"[i % 2], content=text, at=start + timedelta(seconds=30 * i), opener=i == 0)  # type: ignore[arg-type]
            for i, text in enumerate(texts)
        ],
    )


GOLD = {"b90": chat()}


def item(item_id: str, *fails: tuple[str, int | None], holds: Iterable[str] = (), edit: str = "insert", say: Mapping[int, str] | None = None) -> Labelled:
    """An item; of a failing constraint the number is the message, of a checkbox the turn. `say` replaces messages."""
    return Labelled(
        id=item_id, gold="b90", role="a", edit=edit, seed=0, holds=list(holds),
        ops=[Replace(at=at, content=text) for at, text in (say or {}).items()],
        fails=[Fails(id=i, message=n) if i.startswith("L0") else Fails(id=i, turn=n) for i, n in fails],
    )  # fmt: skip


def verdict(
    dialogue_id: str, turns: Mapping[str, str], whole: str = "+", l0: Mapping[str, int | bool | None] | None = None
) -> Verdict:
    """A verdict: for each turn checkbox one sign a turn (+ passed, - failed, ? unassessed), one for E1.1.

    l0: constraint -> the violating message, False for no violation, None for no answer.
    """

    def box(i: str, sign: str) -> BoxVerdict:
        return BoxVerdict(id=i, unassessed="undecided") if sign == "?" else BoxVerdict(id=i, passed=sign == "+")

    def answer(i: str, said: int | bool | None) -> L0Answer:
        if said is None:
            return L0Answer(id=i, unassessed="missing_id")
        return L0Answer(id=i, violated=False) if said is False else L0Answer(id=i, violated=True, message_index=said)

    return Verdict(
        dialogue_id=dialogue_id, judge="hand", judge_identity="0", rubric=SMALL.hash,
        turns=[
            TurnVerdict(turn_index=n, message_index=2 * n - 1, boxes=[box(i, signs[n - 1]) for i, signs in turns.items()])
            for n in range(1, 5)
        ],
        dialogue=[box("E1.1", whole)],
        l0=[answer(i, said) for i, said in (l0 or {}).items()],
    )  # fmt: skip

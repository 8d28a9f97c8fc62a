"""Small dialogues of three kinds in three files, with everything in them that a rater must not see."""

from datetime import datetime, timedelta
from pathlib import Path

from anthrolab.judging.calibration.rating import Kind, Questions, Rated, ask, choose_boxes, load_rated
from anthrolab.judging.rubric import load_rubric
from anthrolab.runtime.dialogue import Dialogue, Message, Participant
from tests.labelled_for_tests import TEXTS

FILES: dict[Kind, str] = {"human-human": "wechat-real.jsonl", "human-model": "sessions.jsonl", "model-model": "selfplay.jsonl"}
SECRETS = ("human", "model", "written", "wechat-real", "sessions.jsonl", "selfplay", "jsonl", "secret", "horizon", "林晓雯", "周子航", "p90", "2026", "ratings", "草稿没发")
"""What must stand nowhere in what a rater is shown: kinds, file names, ids (all begin with "secret"), names, cards, dates."""


def dialogue(dialogue_id: str, texts: tuple[str, ...] = TEXTS, role: str = "a", human: list[str] | None = None, gap_s: int = 31, start: str = "2026-03-06T20:31:00") -> Dialogue:
    """b and a by turns; b opens."""
    begun = datetime.fromisoformat(start)
    record = {
        "dialogue_id": dialogue_id, "evaluated_role": role, "binding": "secret-binding", "scenario": "secret-s90", "stop": "horizon",
        "speakers": {"a": Participant(name="林晓雯", persona="p90"), "b": Participant(name="周子航", persona="secret-p91")},
        "start": begun,
        "messages": [Message(speaker="ba"[i % 2], content=text, at=begun + timedelta(seconds=gap_s * i), opener=i == 0) for i, text in enumerate(texts)],  # type: ignore[arg-type]
        "asks": [{"speaker": "a", "now": "2026-03-06T20:31:00", "decision": {"content": "草稿没发", "at": "2026-03-06T20:31:20", "end": False}}],
    }  # fmt: skip
    return Dialogue.model_validate(record | ({} if human is None else {"human": human}))


def kinds_in(folder: Path, each: int = 2) -> dict[Kind, str]:
    """The three files in a folder, with some dialogues of every kind; `{kind: path}` as `load_rated` takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    sides = {"human-human": ["a", "b"], "human-model": ["b"], "model-model": None}
    for kind, name in FILES.items():
        lines = [dialogue(f"secret-{kind[-7:]}{kind[0]}-{n}", human=sides[kind]).to_line() + "\n" for n in range(each)]
        (folder / name).write_text("".join(lines), encoding="utf-8")
    return {kind: str(folder / name) for kind, name in FILES.items()}


def rated_in(folder: Path, each: int = 2) -> list[Rated]:
    """The dialogues of `kinds_in`, loaded."""
    return load_rated(kinds_in(folder, each))


def about(*dialogues: str | Dialogue) -> Questions:
    """Questions on these dialogues of two models, or on ones of these ids."""
    rubric = load_rubric()
    rated = [Rated(dialogue(one) if isinstance(one, str) else one, "model-model") for one in dialogues]
    return ask(rated, choose_boxes(rubric, "D1.1, E4.1"), rubric)

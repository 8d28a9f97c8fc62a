"""Two small people and a scenario, for tests that need any card at all."""

import json
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from anthrolab.cards.library import Library, default_cards_dir
from anthrolab.cards.persona import ExpressionHabits, HardFacts, Persona
from anthrolab.cards.scenario import Opener, Scenario, Side, Sides
from anthrolab.runtime.dialogue import Speaker
from anthrolab.runtime.seat import Seat, seats


def make_persona(persona_id: str = "p90", name: str = "林晓雯", age: int = 27, **changes: object) -> Persona:
    """A valid persona; `changes` replace fields."""
    values: dict[str, object] = {
        "id": persona_id,
        "name": name,
        "gender": "女",
        "age": age,
        "occupation": "小学语文老师",
        "education": "本科",
        "city": "成都",
        "relationship_status": "单身",
        "personality": ["慢热", "嘴硬"],
        "interests": ["羽毛球", "逛菜市场"],
        "weak_topics": [f"{name}不懂的股票"],
        "expression_habits": ExpressionHabits(
            catchphrases=["咋了"], punctuation="不用句号", emoji="[捂脸]", typical_length="一条五六个字"
        ),
        "knowledge_boundaries": [f"{name}只懂教书"],
        "hard_facts": HardFacts(
            age=age, gender="女", city=["成都"], occupation=["老师", "语文老师"], relationship_status="单身"
        ),
    }
    return Persona.model_validate({**values, **changes})


def make_scenario(**changes: object) -> Scenario:
    """A valid scenario; `changes` replace fields."""
    values: dict[str, object] = {
        "id": "s90",
        "title": "周末约球",
        "category": "Sport",
        "relationship": "老同学",
        "remote": True,
        "start": datetime(2026, 3, 6, 20, 31),
        "horizon_minutes": 15,
        "goal": "约个时间打球",
        "tone": "轻松",
        "opener": Opener(speaker="b", content="周末有空没"),
        "speakers": Sides(
            a=Side(place="甲的家里", trigger="甲今天球拍断线了", emotion="甲有点烦", knows=["他爱打羽毛球"]),
            b=Side(place="乙的公司", trigger="乙抢到了周六的场地", emotion="乙很得意", knows=["她教小学"]),
        ),
    }
    return Scenario.model_validate({**values, **changes})


def make_seats() -> dict[Speaker, Seat]:
    """Both seats of the two small people."""
    return seats(make_persona(), make_persona("p91", "周子航", 29), make_scenario())


def copy_cards(folder: Path) -> Path:
    """A copy of the personas, scenarios and bindings that come with anthrolab."""
    for name in ("personas", "scenarios"):
        shutil.copytree(default_cards_dir() / name, folder / name)
    shutil.copy(default_cards_dir() / "bindings.yaml", folder)
    return folder


def small_cards(folder: Path, library: Library, bindings: Sequence[str]) -> Path:
    """A folder with these bindings of the shipped cards and what they need, and nothing else."""
    source = default_cards_dir()
    wanted = [library.bindings[b] for b in bindings]
    chosen = {"personas": {p for b in wanted for p in (b.persona_a, b.persona_b)}, "scenarios": {b.scenario for b in wanted}}
    for kind, ids in chosen.items():
        (folder / kind).mkdir(parents=True)
        for path in (source / kind).glob("*.yaml"):
            if path.stem in ids:
                shutil.copy(path, folder / kind)
    rows = [b.model_dump(mode="json", exclude_defaults=True) for b in wanted]
    (folder / "bindings.yaml").write_text(json.dumps({"bindings": rows}, ensure_ascii=False), encoding="utf-8")
    return folder

"""The gold dialogues: written as decisions, passed by the gate and by every rule, and the same after any export and import."""

from pathlib import Path

import pytest

from anthrolab.cards.exchange.anthrodial_export import export_anthrodial
from anthrolab.cards.exchange.anthrodial_import import import_anthrodial, write_library
from anthrolab.cards.exchange.character_card import export_character_card, import_character_card
from anthrolab.cards.gold import Written
from anthrolab.cards.library import Library, load_library
from anthrolab.judging.l0.gate import check
from anthrolab.judging.rubric import load_rubric
from anthrolab.judging.rules import RulesJudge
from anthrolab.runtime.dialogue import Dialogue, Speaker
from anthrolab.runtime.prompt import chat_system
from anthrolab.runtime.schedule import Rules
from anthrolab.runtime.seat import seats
from anthrolab.runtime.session import replay
from anthrolab.runtime.written import as_lines, load_gold, play_written, seats_of
from anthrolab.yaml_files import read_model

DATA = Path(__file__).parent.parent / "data"
BINDINGS = [f"b{i:02d}" for i in range(1, 51)]
ROLES: tuple[Speaker, ...] = ("a", "b")


@pytest.fixture(scope="module")
def library() -> Library:
    return load_library(DATA)


@pytest.fixture(scope="module")
def gold(library: Library) -> dict[str, Dialogue]:
    return load_gold(DATA, library)


@pytest.fixture(scope="module")
def abroad(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The corpus after a journey through AnthroDial's layout."""
    there, back = tmp_path_factory.mktemp("出去"), tmp_path_factory.mktemp("回来")
    export_anthrodial(library, there / "out")
    write_library(import_anthrodial(there / "out"), back / "cards")
    return load_library(back / "cards")


def test_there_is_one_for_every_binding(gold: dict[str, Dialogue], library: Library) -> None:
    assert list(gold) == list(library.bindings) == BINDINGS
    assert all(12 <= len(d.messages) <= 30 for d in gold.values())


@pytest.mark.parametrize("key", BINDINGS)
def test_the_gate_passes_it_and_no_rule_fails_it(gold: dict[str, Dialogue], library: Library, key: str) -> None:
    judge, scenario = RulesJudge(load_rubric()), library.scenarios[library.bindings[key].scenario]
    for role in ROLES:
        dialogue = gold[key].model_copy(update={"evaluated_role": role})
        people = dialogue.cards_of(library.personas)
        result = check(dialogue, people, scenario)
        assert (result.valid, result.violations, result.partner_violations) == (True, (), ())
        verdict = judge.verdict(dialogue, people, scenario)
        assert [(b.id, b.reason) for b in verdict.boxes() if b.passed is False] == []


@pytest.mark.parametrize("key", BINDINGS)
def test_its_decisions_give_its_messages_again(gold: dict[str, Dialogue], library: Library, key: str) -> None:
    dialogue = gold[key]
    rules = Rules(horizon_s=60 * library.scenarios[dialogue.scenario or ""].horizon_minutes)
    course = replay(dialogue, rules)
    assert (course.stop, course.guards) == (dialogue.stop, [])
    written = read_model(DATA / "gold" / f"{key}.yaml", Written)
    assert as_lines(dialogue) == written.lines


@pytest.mark.parametrize("key", BINDINGS)
def test_it_survives_every_format(gold: dict[str, Dialogue], library: Library, abroad: Library, tmp_path: Path, key: str) -> None:
    dialogue, binding = gold[key], library.bindings[key]
    line = dialogue.to_line()
    assert Dialogue.model_validate_json(line).to_line() == line
    written = Written(binding=key, lines=as_lines(dialogue))
    assert play_written(written, seats_of(abroad, key), dialogue.dialogue_id).to_line() == line
    prompts = {s: chat_system(seat) for s, seat in seats_of(library, key).items()}
    assert {s: chat_system(seat) for s, seat in seats_of(abroad, key).items()} == prompts
    for form in ("v2.json", "v3.json", "v3.png"):
        people = []
        for persona in (library.personas[binding.persona_a], library.personas[binding.persona_b]):
            export_character_card(persona, tmp_path / f"{persona.id}-{form}", version=2 if form.startswith("v2") else 3)
            people.append(import_character_card(tmp_path / f"{persona.id}-{form}").card)
        a, b = people
        assert a is not None and b is not None
        table = seats(a, b, library.scenarios[binding.scenario], memories=library.memories)
        assert {s: chat_system(seat) for s, seat in table.items()} == prompts
        assert play_written(written, table, dialogue.dialogue_id).to_line() == line


def test_times_are_those_of_people(gold: dict[str, Dialogue]) -> None:
    """Bursts, waits, silences and interrupted drafts are there, in the corpus as a whole."""
    drafts = [ask for d in gold.values() for ask in d.asks or [] if ask.previous_draft is not None]
    assert len(drafts) >= 25 and {a.action for a in drafts} >= {"keep", "revise", "replace"}
    gaps = [(y.at - x.at).total_seconds() for d in gold.values() for x, y in zip(d.messages, d.messages[1:], strict=False)]
    assert sum(gap > 240 for gap in gaps) >= 10
    assert sum(gap <= 10 for gap in gaps) >= 50

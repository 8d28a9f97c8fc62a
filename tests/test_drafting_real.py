"""A real instruct model, SmolLM2-135M in the embedded server, is asked for cards: the wire and the grammar.

It writes no Chinese card that anybody could use. That its requests are accepted, its replies are read, and whatever it writes is a card
or a typed rejection, is the point.
"""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from anthrolab.cards.library import load_library
from anthrolab.loop.drafting.drafting import draft_cards
from anthrolab.loop.drafting.schema import persona_schema, scenario_schema
from anthrolab.models.scripted import Call, serve
from tests.drafting_for_tests import good, is_persona
from tests.real_servers import CONTEXT, find_smollm2


def test_a_real_model_drafts_both_kinds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """First a scripted writer has the personas accepted and fails with the scenarios; then SmolLM2 has its try at these, and in a
    folder of its own at personas."""
    smollm2 = {
        "name": "smollm2", "endpoint": "embedded", "model": find_smollm2(), "server": "llama.cpp", "policy": "chat", "context": CONTEXT,
        "concurrency": 1, "judge_max_tokens": 160, "timeout_s": 600.0, "retries": 0, "sampling": {"temperature": 0.7, "seed": 1},
    }  # fmt: skip
    systems, pool, said = tmp_path / "systems.yaml", tmp_path / "pool", list[str]()
    with serve(lambda call: good(call) if is_persona(call.body) else "写不出来") as served:
        toy = {"name": "toy", "endpoint": served.url, "model": "scripted", "server": "openai", "policy": "chat"}
        systems.write_text(json.dumps({"systems": [toy, smollm2]}), encoding="utf-8")
        counts = draft_cards(pool, "toy", personas=2, scenarios=1, bindings=1, attempts=1, systems_file=systems, progress=said.append)
    assert (counts.accepted, counts.open) == (2, 1)
    capfd.readouterr()
    draft_cards(pool, "smollm2", personas=2, scenarios=1, bindings=1, attempts=2, systems_file=systems, progress=said.append)
    draft_cards(tmp_path / "own", "smollm2", personas=2, scenarios=1, bindings=1, attempts=1, systems_file=systems, progress=said.append)
    assert capfd.readouterr().err == "", "llama.cpp says so where it drops a part of the schema"
    for folder, schema, asked in ((pool, scenario_schema(), 1), (tmp_path / "own", persona_schema(), 2)):
        rows = [json.loads(line) for line in (folder / ".drafting" / "calls" / "writer.jsonl").read_text("utf-8").splitlines()]
        mine = [row for row in rows if row["system"] == "smollm2"]
        assert len(mine) == asked and {row["params"]["response_format"]["type"] for row in mine} == {"json_schema"}
        for row in mine:
            text = row["reply"]["text"]
            if row["reply"]["finish_reason"] != "length":
                jsonschema.validate(json.loads(text), dict(schema))
            else:  # cut, but the grammar was at work: fields in the order of the schema, none left out
                keys = [key for key in re.findall(r'"(\w+)":', text) if key in schema["properties"]]
                assert keys and keys == list(schema["properties"])[: len(keys)], text
        report = json.loads((folder / ".drafting" / "report.json").read_text("utf-8"))
        assert report["unanswered"] == []
        lines = (folder / ".drafting" / "rounds.jsonl").read_text("utf-8").splitlines()
        drafts = [o for line in lines for o in json.loads(line) if o["system"] == "smollm2"]
        assert len(drafts) == asked and all((o["card"] is None) == bool(o["reasons"]) for o in drafts)
    if (pool / "bindings.yaml").exists():
        load_library(pool)


def test_the_scripted_writer_is_asked_what_the_real_one_is(tmp_path: Path) -> None:
    """The tests against the scripted writer say something about real ones only if the wire is the same."""
    bodies = list[Call]()

    def handler(call: Call) -> str:
        bodies.append(call)
        return good(call)

    with serve(handler) as served:
        toy = {"name": "toy", "endpoint": served.url, "model": "scripted", "server": "openai", "policy": "chat"}
        (tmp_path / "systems.yaml").write_text(json.dumps({"systems": [toy]}), encoding="utf-8")
        draft_cards(tmp_path / "pool", "toy", personas=2, scenarios=1, bindings=1, systems_file=tmp_path / "systems.yaml", progress=lambda line: None)
    assert {call.path for call in bodies} == {"/v1/chat/completions"}
    assert [m["role"] for m in bodies[0].body["messages"]] == ["system", "user"]
    assert bodies[0].body["response_format"]["json_schema"]["schema"] == json.loads(json.dumps(persona_schema()))
    assert bodies[-1].body["response_format"]["json_schema"]["schema"] == json.loads(json.dumps(scenario_schema()))

"""A tuned model in a systems file: one call, nothing else in the file changes, and a wrong entry is never written."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.models.bundled import LocalModelError
from anthrolab.models.systems import SystemsError, default_systems_path, find_system, load_systems
from anthrolab.training.entry import add_system

OWN = """# mine
systems:
    # the base
    - name: base      # as it was
      endpoint: embedded
      model: gemma3-270m
      server: llama.cpp
      policy: transcript
# the end"""


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    file = tmp_path / "tuned: 微调 #1.gguf"
    file.write_bytes(b"GGUF and the rest")
    return file


@pytest.fixture
def systems_file(tmp_path: Path) -> Path:
    file = tmp_path / "systems.yaml"
    file.write_text(OWN, encoding="utf-8")
    return file


def test_a_gguf_becomes_an_embedded_chat_system_with_room_for_our_prompts(systems_file: Path, gguf: Path) -> None:
    made = add_system(systems_file, "tuned", gguf=gguf, partner="base")
    found = find_system(load_systems(systems_file), "tuned")
    assert found == made
    assert (found.endpoint, found.model, found.server, found.policy) == ("embedded", str(gguf), "llama.cpp", "chat")
    assert (found.context, found.most_at_once, found.max_tokens, found.system_role) == (4096, 4, 256, True)
    assert found.partner == "base" and 0.7 <= float(str(found.sampling["temperature"])) <= 1.0


def test_everything_that_stood_in_the_file_stays_to_the_byte(systems_file: Path, gguf: Path) -> None:
    add_system(systems_file, "tuned", gguf=gguf, partner="base", comment="round 1\nof the loop")
    text = systems_file.read_text(encoding="utf-8")
    assert text.startswith(OWN + "\n\n    # round 1 of the loop\n    - name: tuned\n      endpoint: embedded\n")
    assert list(load_systems(systems_file)) == ["base", "tuned"]


def test_line_ends_of_windows_stay(systems_file: Path, gguf: Path) -> None:
    before = OWN.replace("\n", "\r\n").encode()
    systems_file.write_bytes(before)
    add_system(systems_file, "tuned", gguf=gguf, partner="base")
    after = systems_file.read_bytes()
    assert after.startswith(before) and after.count(b"\n") == after.count(b"\r\n")


def test_a_server_of_ones_own_is_an_address_and_the_servers_name_for_the_model(systems_file: Path) -> None:
    add_system(systems_file, "tuned", endpoint="http://localhost:8000/v1", model="runs/sft: 1", server="openai", partner="tuned")
    found = load_systems(systems_file)["tuned"]
    assert (found.endpoint, found.model, found.server) == ("http://localhost:8000/v1", "runs/sft: 1", "openai")
    assert found.concurrency is None and found.partner == "tuned"


def test_the_same_entry_again_changes_nothing(systems_file: Path, gguf: Path) -> None:
    add_system(systems_file, "tuned", gguf=gguf, partner="base")
    once = systems_file.read_bytes()
    add_system(systems_file, "tuned", gguf=gguf, partner="base", comment="again")
    assert systems_file.read_bytes() == once


def test_another_entry_of_the_same_name_is_refused_and_nothing_is_written(systems_file: Path, gguf: Path) -> None:
    add_system(systems_file, "tuned", gguf=gguf, partner="base")
    once = systems_file.read_bytes()
    with pytest.raises(SystemsError, match="tuned: is there already, with other fields; take another name"):
        add_system(systems_file, "tuned", gguf=gguf, partner="base", max_tokens=99)
    assert systems_file.read_bytes() == once


def test_a_file_that_is_not_there_begins_as_a_copy_of_ours(tmp_path: Path, gguf: Path) -> None:
    file = tmp_path / "new" / "systems.yaml"
    add_system(file, "tuned", gguf=gguf, partner="gemma-3-270m")
    assert file.read_text(encoding="utf-8").startswith(default_systems_path().read_text(encoding="utf-8"))
    assert list(load_systems(file)) == [*load_systems(default_systems_path()), "tuned"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"partner": "bse"}, "partner: no system 'bse'"),
        ({"sampling": {"max_tokens": 3}}, "sampling.max_tokens: is set by anthrolab"),
        ({"sampling": {"temperature": float("nan")}}, "not finite"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"endpoint": "http://localhost/v1", "model": "m"}, "give either gguf, or endpoint and model"),
        ({"gguf": None}, "give either gguf, or endpoint and model"),
        ({"gguf": None, "endpoint": "http://localhost/v1"}, "give either gguf, or endpoint and model"),
        ({"gguf": None, "endpoint": "localhost", "model": "m"}, "endpoint: is neither"),
    ],
)
def test_an_entry_that_the_file_would_not_take_is_an_error_and_is_not_written(
    systems_file: Path, gguf: Path, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(SystemsError, match=said) as raised:
        add_system(systems_file, "tuned", **{"gguf": gguf, "partner": "base", **change})
    assert ".new" not in str(raised.value)
    assert systems_file.read_text(encoding="utf-8") == OWN
    assert {p.name for p in systems_file.parent.iterdir()} == {systems_file.name, gguf.name}


def test_a_name_that_no_system_may_have_is_an_error(systems_file: Path, gguf: Path) -> None:
    with pytest.raises(SystemsError, match="a b: name"):
        add_system(systems_file, "a b", gguf=gguf, partner="base")
    assert systems_file.read_text(encoding="utf-8") == OWN


def test_a_missing_model_file_is_an_error(systems_file: Path, tmp_path: Path) -> None:
    with pytest.raises(LocalModelError, match="no such model file"):
        add_system(systems_file, "tuned", gguf=tmp_path / "gone.gguf", partner="base")


def test_a_list_in_brackets_cannot_be_added_to_and_stays(systems_file: Path, gguf: Path) -> None:
    text = "systems: [{name: base, endpoint: embedded, model: gemma3-270m, server: llama.cpp, policy: transcript}]\n"
    systems_file.write_text(text, encoding="utf-8")
    with pytest.raises(SystemsError, match=r"in an editor|not valid YAML"):
        add_system(systems_file, "tuned", gguf=gguf, partner="base")
    assert systems_file.read_text(encoding="utf-8") == text


@settings(deadline=None, max_examples=40)
@given(
    model=st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=20),
    sampling=st.dictionaries(
        st.sampled_from(["min_p", "top_p", "stop", "on", "x: y"]),
        st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none() | st.text("a:# -]}'\"", max_size=4),
    ),
)
def test_any_model_name_and_sampling_are_read_back_as_they_were_given(
    tmp_path_factory: pytest.TempPathFactory, model: str, sampling: dict[str, Any]
) -> None:
    file = tmp_path_factory.mktemp("systems") / "systems.yaml"
    file.write_text(OWN, encoding="utf-8")
    add_system(file, "tuned", endpoint="http://localhost/v1", model=model, partner="base", sampling=sampling)
    found = load_systems(file)["tuned"]
    assert found.model == model and found.sampling == sampling

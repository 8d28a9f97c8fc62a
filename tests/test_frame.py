"""The frame: packaging files that must agree with each other."""

import json
import re
import tomllib
from pathlib import Path

from anthrolab import __version__
from anthrolab.cards.schema import SCHEMAS
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.yaml_files import read_yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_environment_yml_lists_what_pyproject_lists() -> None:
    environment = read_yaml(ROOT / "environment.yml")
    assert isinstance(environment, dict)
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    extras = PROJECT["optional-dependencies"]
    assert pip == [*PROJECT["dependencies"], *extras["local"], *extras["train"], *extras["dev"], "-e ."]


def test_the_lock_pins_every_direct_dependency() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned = {re.sub(r"[-_.]+", "-", n).lower() for n in re.findall(r"^([A-Za-z0-9_.-]+)==", lock, re.MULTILINE)}
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["local"], *extras["train"], *extras["dev"]]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~ ]", w)[0]).lower() for w in wanted}
    assert names <= pinned


def test_versions_agree() -> None:
    assert PROJECT["version"] == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_committed_schemas_are_todays() -> None:
    for kind, model in SCHEMAS.items():
        committed = json.loads((ROOT / "data" / "schemas" / f"{kind}.schema.json").read_text(encoding="utf-8"))
        assert committed == model.model_json_schema()


def test_every_make_target_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    for target in phony[1].split():
        assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE), target


def test_the_readme_names_every_module_of_the_package() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    modules = [p.name for p in (ROOT / "anthrolab").rglob("*.py") if p.name != "__init__.py"]
    missing = sorted({m for m in modules if m not in readme})
    assert not missing, f"README's file tree lacks {missing}"


def test_the_dialogue_in_the_readme_can_be_read() -> None:
    (line,) = [x for x in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if x.startswith('{"dialogue_id"')]
    dialogue = Dialogue.model_validate_json(line)
    assert dialogue.turns() == [1]

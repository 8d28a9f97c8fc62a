"""The hash of the analyser changes with every file that decides what stands."""

import ast
import re
import shutil
from pathlib import Path

import anthrolab
from anthrolab.live.analyser import analyser_hash

PACKAGE = Path(anthrolab.__file__).parent
NO_RULE = re.compile("^(?:runtime/(?!text)|models/(?:client|reask|calls|systems)|cards/|files|errors|yaml_files|judging/l0/__init__)")
"""What the analyser is built on, but which decides nothing: records, the call itself, cards."""


def read_by(name: str) -> set[str]:
    """The modules of anthrolab that a module imports, and those that these import; what decides nothing is left out."""
    found, open_ = set[str](), [name]
    while open_:
        file = open_.pop()
        if file in found or NO_RULE.match(file):
            continue
        found.add(file)
        for node in ast.walk(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("anthrolab."):
                place = (node.module or "").removeprefix("anthrolab.").replace(".", "/")
                inside = [f"{place}/{alias.name}.py" for alias in node.names]
                open_ += [p for p in [f"{place}.py", f"{place}/__init__.py", *inside] if (PACKAGE / p).is_file()]
    return found


def test_the_hash_of_the_analyser_sees_every_file_that_decides(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "anthrolab", ignore=shutil.ignore_patterns("__pycache__"))
    root = tmp_path / "anthrolab"
    assert analyser_hash(root) == analyser_hash()
    changed = [root / "live" / "prompts" / f"{name}.md" for name in ("analyse", "analyse_ask")] + [root / name for name in read_by("live/analyser.py")]
    assert len(changed) > 20
    seen = {analyser_hash(root)}
    for number, file in enumerate(changed, 2):
        file.write_text(file.read_text(encoding="utf-8") + "\n# changed", encoding="utf-8")
        seen.add(analyser_hash(root))
        assert len(seen) == number, f"{file.relative_to(root)} is not part of the hash"

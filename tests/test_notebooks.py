"""Hygiene of the committed notebooks, checked without a kernel."""

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from anthrolab.show.notebooks import work_from_root

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PARAMETER = re.compile(r"^[a-z_]+: (str|int|float|bool) = \S.*  # \S.*$")


@pytest.fixture(params=NOTEBOOKS, ids=lambda p: p.stem)
def notebook(request: pytest.FixtureRequest) -> Any:
    return nbformat.read(request.param, as_version=4)


def code(notebook: Any) -> list[str]:
    return [c.source for c in notebook.cells if c.cell_type == "code"]


def test_the_three_notebooks_of_the_main_job_are_there() -> None:
    assert {"02_self_chat", "03_judging", "04_tables"} <= {p.stem for p in NOTEBOOKS}
    assert all(re.fullmatch(r"\d\d_[a-z_]+", p.stem) for p in NOTEBOOKS)


def test_is_valid_with_readable_ids_and_the_python3_kernel(notebook: Any) -> None:
    nbformat.validate(notebook)
    ids = [c.id for c in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert not [i for i in ids if re.fullmatch(r"[0-9a-f]{8}", i)], "random ids make noisy diffs"
    assert notebook.metadata.kernelspec.name == "python3"


def test_has_no_outputs(notebook: Any) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
        assert set(cell.metadata) <= {"tags"}


def test_begins_with_title_reads_writes_and_paper_table(notebook: Any) -> None:
    first = notebook.cells[0]
    assert first.cell_type == "markdown"
    lines = first.source.splitlines()
    assert lines[0].startswith("# ")
    assert lines[2].endswith(".")
    for word in ("Reads", "Writes", "Paper table"):
        assert re.search(rf"\| {word} \| \S", first.source), word


def test_second_cell_holds_the_parameters_as_typed_literals_with_help(notebook: Any) -> None:
    tagged = [i for i, c in enumerate(notebook.cells) if "parameters" in c.metadata.get("tags", [])]
    assert tagged == [1]
    source = notebook.cells[1].source
    for line in source.splitlines():
        assert PARAMETER.match(line), line
    for node in ast.parse(source).body:
        assert isinstance(node, ast.AnnAssign)
        assert node.value is not None
        value = ast.literal_eval(node.value)
        assert type(value).__name__ == ast.unparse(node.annotation)


def test_third_cell_holds_all_imports(notebook: Any) -> None:
    _, imports, *rest = code(notebook)
    assert all(isinstance(n, ast.Import | ast.ImportFrom) for n in ast.parse(imports).body)
    for source in rest:
        assert not [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import | ast.ImportFrom)], source


def test_loads_with_an_assertion_and_ends_with_a_summary(notebook: Any) -> None:
    assert "assert " in code(notebook)[2]
    assert notebook.cells[-2].source.startswith("Summary")
    assert "print(" in notebook.cells[-1].source


def test_is_short_and_every_step_is_introduced(notebook: Any) -> None:
    assert len(notebook.cells) <= 30
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            assert len(cell.source.splitlines()) <= 15, cell.source
            if i > 2:
                before = notebook.cells[i - 1]
                assert before.cell_type == "markdown", cell.source
                assert before.source.endswith(".")


def test_defines_nothing_and_touches_nothing_outside(notebook: Any) -> None:
    for source in code(notebook):
        for node in ast.walk(ast.parse(source)):  # fails on ! and % lines too
            assert not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef), source
        assert "sys.path" not in source
        assert "pip install" not in source
    for cell in notebook.cells:
        assert not re.search(r"(^|[\s\"'`(=])(/[A-Za-z][\w.-]*/|[A-Z]:\\|~/)", cell.source), cell.source
        assert not re.search(r"sk-[A-Za-z0-9]{8}|api[_-]?key\s*=|Bearer |hf_[A-Za-z0-9]{8}", cell.source), cell.source


def test_prose_is_english(notebook: Any) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"[\u3400-\u9fff]", cell.source)


def test_paths_mean_the_same_by_hand_and_headless(notebook: Any) -> None:
    """JupyterLab starts a kernel in the notebook's own folder; the first working cell leaves it."""
    assert code(notebook)[2].startswith("work_from_root()\n")


def test_work_from_root_leaves_only_a_folder_of_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    work_from_root()
    assert Path.cwd() == tmp_path / "notebooks", "no notebook lies here"
    (tmp_path / "notebooks" / "02_self_chat.ipynb").touch()
    work_from_root()
    assert Path.cwd() == tmp_path
    work_from_root()
    assert Path.cwd() == tmp_path

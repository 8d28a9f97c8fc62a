"""The strict runner, on small notebooks of its own."""

import os
import sys
from pathlib import Path

import nbformat
import pytest

from anthrolab.errors import AnthrolabError
from anthrolab.show.notebooks import NotebookError, run_notebooks
from tests.runs_for_tests import make_run

PARAMETERS = """run_dir: str = "runs/none"  # run folder
cases: int = 3  # how many
share: float = 0.5  # a share
loud: bool = False  # shout
word: str = "hi"  # a word"""


def write(folder: Path, name: str, *cells: str, parameters: str = PARAMETERS) -> Path:
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    )
    notebook.cells = [nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    notebook.cells += [nbformat.v4.new_code_cell(c) for c in cells]
    path = folder / "notebooks" / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    return path


def run(folder: Path, names: list[str], *parameters: str) -> list[str]:
    lines: list[str] = []
    run_notebooks(names, folder / "runs" / "r", parameters, notebooks_dir=folder / "notebooks", progress=lines.append)
    return lines


def test_runs_in_order_with_typed_parameters_from_the_root_in_this_python(tmp_path: Path) -> None:
    show = "import os, sys\nprint(repr((run_dir, cases, share, loud, word)))\nprint(os.getcwd())\nprint(sys.prefix)"
    one = write(tmp_path, "01_one", show)
    write(tmp_path, "02_two", "print('two', end='')", parameters='run_dir: str = ""  # run folder')
    before = one.read_bytes()
    lines = run(tmp_path, ["02", "01_one"], "cases=12", "share=2", "loud=true", "word=你好=a b")
    assert lines == [
        "== 02_two", "two", "== 01_one", "('runs/r', 12, 2.0, True, '你好=a b')", str(tmp_path.resolve()), sys.prefix,
    ]  # fmt: skip
    assert one.read_bytes() == before
    made = nbformat.read(tmp_path / "runs" / "r" / "notebooks" / "01_one.ipynb", as_version=4)
    assert "12" in made.cells[-1].outputs[0].text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("case=12", "parameter case: unknown to 01_one; known: cases, loud, share, word"),
        ("cases=twelve", "parameter cases of 01_one: 'twelve' is no int; give a whole number"),
        ("cases=1.5", "'1.5' is no int"),
        ("share=nan", "'nan' is no float"),
        ("loud=1", "'1' is no bool; give true or false"),
        ("cases", "write it as NAME=VALUE"),
        ("run_dir=x", "is set by --run"),
    ],
)
def test_refuses_what_a_notebook_does_not_declare(tmp_path: Path, given: str, said: str) -> None:
    write(tmp_path, "01_one", "print('ran')")
    with pytest.raises(NotebookError) as caught:
        run(tmp_path, ["01"], given)
    assert said in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_an_unknown_notebook_is_refused_before_anything_runs(tmp_path: Path) -> None:
    write(tmp_path, "01_one", "print('ran')")
    with pytest.raises(NotebookError, match=r"notebook 07: no such file .*01_one"):
        run(tmp_path, ["01", "07"])
    assert not (tmp_path / "runs").exists()


def test_stops_at_the_first_failing_cell_with_one_line(tmp_path: Path) -> None:
    bad = write(tmp_path, "01_bad", "x = 1", "raise ValueError('the file is empty\\nsecond line')")
    write(tmp_path, "02_next", "print('ran')")
    before = bad.read_bytes()
    lines: list[str] = []
    with pytest.raises(AnthrolabError) as caught:
        run_notebooks(["01", "02"], tmp_path / "r", notebooks_dir=tmp_path / "notebooks", progress=lines.append)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("01_bad.ipynb: cell In [")
    assert "(raise ValueError(" in message
    assert "ValueError: the file is empty" in message
    assert lines == ["== 01_bad"]
    executed = (tmp_path / "r" / "notebooks" / "01_bad.ipynb").read_text(encoding="utf-8")
    assert "Traceback" in executed
    assert bad.read_bytes() == before


def test_the_notebook_of_the_tables_makes_a_report_of_a_judged_run(tmp_path: Path) -> None:
    lines: list[str] = []
    judged = make_run(tmp_path / "judged")
    (made,) = run_notebooks(["04"], judged, [f"report_dir={tmp_path / 'report'}"], progress=lines.append)
    assert (tmp_path / "report" / "index.html").is_file()
    assert lines[-1] == f"report: {tmp_path / 'report' / 'index.html'}"
    assert any(line.startswith("Gemini-3.5-Flash ") and "32.00%" in line for line in lines)
    assert any(line.startswith("tiny-model ") and "0.00%*" in line for line in lines)
    assert made.stat().st_size < 2_000_000


def test_never_writes_into_the_folder_of_the_notebooks(tmp_path: Path) -> None:
    one = write(tmp_path, "01_one", "print('ran')")
    before = one.read_bytes()
    with pytest.raises(NotebookError, match="would overwrite"):
        run_notebooks(["01"], tmp_path, notebooks_dir=tmp_path / "notebooks")
    assert one.read_bytes() == before


def test_leaves_the_environment_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "elsewhere"))
    write(tmp_path, "01_one", "print('ran')")
    assert run(tmp_path, ["01"]) == ["== 01_one", "ran"]
    assert os.environ["JUPYTER_PATH"] == str(tmp_path / "elsewhere")

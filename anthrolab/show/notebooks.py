"""The strict notebook runner: papermill, with the repository as working directory and nothing let pass silently."""

import math
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anthrolab.errors import AnthrolabError
from anthrolab.files import unwritable

Progress = Callable[[str], None]
Literal = bool | int | float | str


class NotebookError(AnthrolabError):
    """A notebook that cannot be run as asked, or that stopped at a cell."""


def default_notebooks_dir() -> Path:
    """`notebooks/` of the checkout; NotebookError where anthrolab was installed without it."""
    folder = Path(__file__).parents[2] / "notebooks"
    if not folder.is_dir():
        raise NotebookError(f"{folder}: no such folder; notebooks come with a checkout of anthrolab, not with the package")
    return folder


def work_from_root() -> None:
    """Make the folder above `notebooks/` the working directory, where JupyterLab started a kernel inside it.

    Relative paths then mean the same by hand and headless: `runs/quick` is the run that `make tables` made.
    """
    here = Path.cwd()
    if here.name == "notebooks" and any(here.glob("*.ipynb")):
        os.chdir(here.parent)


def run_notebooks(
    names: Sequence[str],
    run_dir: Path,
    parameters: Sequence[str] = (),
    *,
    notebooks_dir: Path | None = None,
    progress: Progress = print,
) -> list[Path]:
    """Execute notebooks in the given order and write the executed copies to `run_dir/notebooks/`; returns their paths.

    names: file names, stems or numbers ("02"). parameters: NAME=VALUE; a notebook gets those that its parameters
    cell declares, and `run_dir`. What the notebooks print goes to `progress` line by line.
    Raises NotebookError, before anything runs, for an unknown notebook or parameter or a value that is not of the
    declared type; and at the first cell that fails, which ends the series (its trace stays in the executed copy).
    """
    folder = (notebooks_dir or default_notebooks_dir()).resolve()
    paths = [_find(folder, name) for name in names]
    declared = {path: _declared(path) for path in paths}
    given = _parsed(parameters, declared)
    root, run_dir = folder.parent, run_dir.resolve()
    out = run_dir / "notebooks"
    if out == folder:
        raise NotebookError(f"{out}: executed copies would overwrite the notebooks; choose another run folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise unwritable(out, e) from e
    where = str(run_dir.relative_to(root)) if run_dir.is_relative_to(root) else str(run_dir)
    made = []
    with _own_kernel():
        for path in paths:
            progress(f"== {path.stem}")
            values = {k: v for k, v in ({"run_dir": where} | given).items() if k in declared[path]}
            _execute(path, out / path.name, values, root, progress)
            made.append(out / path.name)
    return made


def _find(folder: Path, name: str) -> Path:
    stem = Path(name).name.removesuffix(".ipynb")
    there = sorted(folder.glob("*.ipynb"))
    found = [p for p in there if p.stem == stem or p.stem.split("_")[0] == stem]
    if len(found) != 1:
        known = ", ".join(p.stem for p in there) or "none"
        raise NotebookError(f"notebook {name}: {len(found) or 'no'} such file in {folder}; there are: {known}")
    return found[0]


def _declared(path: Path) -> dict[str, str]:
    """Names and types of the parameters cell."""
    from papermill import inspect_notebook

    return {name: p["inferred_type_name"] for name, p in inspect_notebook(str(path)).items()}


def _parsed(parameters: Sequence[str], declared: Mapping[Path, Mapping[str, str]]) -> dict[str, Literal]:
    """NAME=VALUE as typed values; NotebookError names what is wrong and what there is."""
    values: dict[str, Literal] = {}
    for text in parameters:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise NotebookError(f"parameter {text!r}: write it as NAME=VALUE")
        if name == "run_dir":
            raise NotebookError("parameter run_dir: is set by --run; leave it out")
        types = {path.stem: p[name] for path, p in declared.items() if name in p}
        if not types:
            known = sorted({n for p in declared.values() for n in p} - {"run_dir"})
            raise NotebookError(
                f"parameter {name}: unknown to {', '.join(p.stem for p in declared)}; known: {', '.join(known) or 'none'}"
            )
        for stem, kind in types.items():
            values[name] = _literal(value, kind, f"parameter {name} of {stem}")
    return values


def _literal(text: str, kind: str, what: str) -> Literal:
    if kind == "str":
        return text
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "int" and re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    if kind == "float" and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        number = float(text)
        if math.isfinite(number):
            return number
    if kind not in ("bool", "int", "float"):
        raise NotebookError(f"{what}: its cell declares the type {kind}; only str, int, float and bool can be set")
    like = {"bool": "true or false", "int": "a whole number", "float": "a number"}[kind]
    raise NotebookError(f"{what}: {text!r} is no {kind}; give {like}")


@contextmanager
def _own_kernel() -> Iterator[None]:
    """A kernelspec `python3` that is this very interpreter, found before any other of that name.

    Kernelspecs of a user or a system may name another Python, in which anthrolab is not installed.
    """
    from ipykernel.kernelspec import write_kernel_spec

    before = os.environ.get("JUPYTER_PATH")
    with tempfile.TemporaryDirectory(prefix="anthrolab-kernel-") as folder:
        (Path(folder) / "kernels").mkdir()
        write_kernel_spec(
            Path(folder) / "kernels" / "python3",
            python_arguments=["-Xfrozen_modules=off"],  # else the debugger warns on every start
            extra_arguments=["--log-level=CRITICAL"],  # else it logs its own shutdown as an error
        )
        os.environ["JUPYTER_PATH"] = os.pathsep.join([folder, *([before] if before else [])])
        try:
            yield
        finally:
            if before is None:
                del os.environ["JUPYTER_PATH"]
            else:
                os.environ["JUPYTER_PATH"] = before


class _Lines:
    """A text file that hands on whole lines."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._rest = ""

    def write(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._progress(line)

    def flush(self) -> None:
        """Nothing to do: a line goes out when it is whole."""

    def close(self) -> None:
        if self._rest:
            self.write("\n")


def _execute(path: Path, out: Path, values: Mapping[str, Any], root: Path, progress: Progress) -> None:
    from nbclient.exceptions import DeadKernelError
    from papermill import execute_notebook
    from papermill.exceptions import PapermillExecutionError

    lines = _Lines(progress)
    try:
        execute_notebook(
            str(path), str(out), parameters=dict(values), kernel_name="python3", cwd=str(root), progress_bar=False,
            stdout_file=lines,
        )  # fmt: skip
    except PapermillExecutionError as e:
        lines.close()
        code = next((line for line in e.source.splitlines() if line.strip()), "")
        what = (str(e.evalue).splitlines() or [""])[0]
        raise NotebookError(
            f"{path.name}: cell In [{e.exec_count}] ({code[:60]}): {e.ename}: {what} (the whole trace is in {out})"
        ) from e
    except DeadKernelError as e:
        raise NotebookError(f"{path.name}: its Python process died (out of memory?); what it did so far is in {out}") from e
    except OSError as e:
        raise unwritable(out, e) from e
    lines.close()

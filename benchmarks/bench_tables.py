"""How long Tables 7-11 take, beside group-bys of the same ledger, and how that grows with its rows.

    python benchmarks/bench_tables.py [--small]

Prints medians of several runs as ratios: reading the 16-system reconstructed ledger and making Tables 7-11,
against a bare polars and a pandas group-by of its checkboxes (read, group by card dimension, sum). Then the
same ledger with its cases or its systems copied 10 and 100 times under new ids, each in a process of its own,
with the peak of that process's memory. `--small` leaves the copies out.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from statistics import median
from time import perf_counter

import polars as pl

from anthrolab.bench.ledger import CASES_FILE, CHECKBOXES_FILE, read_ledger
from anthrolab.bench.tables import tables

CARD_DIMENSION = ["system", "case_id", "turn_index", "dimension"]
RUNS = 9


def make_tables(folder: Path) -> None:
    tables(read_ledger(folder))


def bare_polars(folder: Path) -> None:
    boxes = pl.scan_parquet(folder / CHECKBOXES_FILE)
    boxes.group_by(CARD_DIMENSION).agg(pl.col("passed").sum(), boxes=pl.len()).collect()


def bare_pandas(folder: Path) -> None:
    import pandas as pd

    boxes = pd.read_parquet(folder / CHECKBOXES_FILE)
    boxes.groupby(CARD_DIMENSION, dropna=False)["passed"].agg(["sum", "size"])


def seconds(work: Callable[[Path], None], folder: Path) -> float:
    """The median time of several runs after a first one that does not count."""
    times = []
    for _ in range(RUNS + 1):
        start = perf_counter()
        work(folder)
        times.append(perf_counter() - start)
    return median(times[1:])


def copy_ledger(source: Path, target: Path, column: str, times: int) -> None:
    """Write a ledger with every row `times` times, each copy under ids of its own in `column`."""
    target.mkdir()
    for name in (CASES_FILE, CHECKBOXES_FILE):
        frame = pl.scan_parquet(source / name)
        copies = [frame.with_columns(pl.col(column) + f" #{copy}") for copy in range(times)]
        pl.concat(copies).sink_parquet(target / name)


def measure_alone(folder: Path) -> None:
    """In a process of its own: print the seconds of one run and the peak memory in MiB."""
    start = perf_counter()
    make_tables(folder)
    elapsed = perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(elapsed, peak / (2**20 if sys.platform == "darwin" else 2**10))


def measured_alone(folder: Path) -> tuple[float, float]:
    command = [sys.executable, __file__, "--alone", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    elapsed, peak = map(float, done.stdout.split())
    return elapsed, peak


def print_ratios(folder: Path) -> None:
    rows = pl.scan_parquet(folder / CHECKBOXES_FILE).select(pl.len()).collect().item()
    print(f"Tables 7-11 of the reconstructed ledger: 16 systems, {rows:,} checkboxes, medians of {RUNS} runs")
    ours = seconds(make_tables, folder)
    print(f"  read, check and make the tables   {ours:6.3f} s")
    for name, work in (("bare polars group-by", bare_polars), ("bare pandas group-by", bare_pandas)):
        theirs = seconds(work, folder)
        print(f"  {name:32}  {theirs:6.3f} s   tables take {ours / theirs:.2f} of it")


def print_growth(folder: Path) -> None:
    print("Growth, one run each in a process of its own, its start-up not counted in the time")
    print(f"  {'rows':>12}  {'copied':8} {'seconds':>8} {'per 1x':>8} {'peak MiB':>9}")
    with tempfile.TemporaryDirectory() as scratch:
        first, peak = measured_alone(folder)
        print(f"  {'1x':>12}  {'-':8} {first:8.2f} {first:8.2f} {peak:9.0f}")
        for column, copied in (("case_id", "cases"), ("system", "systems")):
            for times in (10, 100):
                target = Path(scratch) / f"{copied}{times}"
                copy_ledger(folder, target, column, times)
                elapsed, peak = measured_alone(target)
                print(f"  {f'{times}x':>12}  {copied:8} {elapsed:8.2f} {elapsed / times:8.2f} {peak:9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="leave out the ledgers of 10 and 100 times the rows")
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        measure_alone(options.alone)
        return
    with as_file(files("anthrolab.bench") / "published" / "reconstructed_ledger") as folder:
        print_ratios(folder)
        if not options.small:
            print_growth(folder)


if __name__ == "__main__":
    main()

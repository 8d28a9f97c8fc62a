"""How long the reward weights take: from a slider's move to new figures.

    python -m benchmarks.bench_weights

On the reconstructed ledger of the sixteen published systems (1,600 dialogues), and on ten times as many. Python's share:
the new rewards, places and advantages, the figures as HTML, and their way into the widgets; the browser test of the notebook
reports what is seen in a browser. Aim: 100 ms from a move to the new view, the browser included.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from anthrolab.show.failure_sources import PUBLISHED
from anthrolab.show.reward_weights import RewardWeights
from anthrolab.show.reward_weights_dialogues import JudgedDialogues, open_dialogues
from anthrolab.show.reward_weights_effect import effect, score
from anthrolab.show.reward_weights_page import frames_html, write_weights_page
from anthrolab.show.reward_weights_presets import PRESETS
from anthrolab.show.reward_weights_view import Chosen, view
from anthrolab.training.reward.batch import Batch
from anthrolab.training.reward.settings import RewardSettings

MOVES = 60
SETTINGS = RewardSettings(p=2.0, sigma=0.15, mix_legacy=0.4, mix_adaptive=0.6)


def times_as_many(judged: JudgedDialogues, times: int) -> JudgedDialogues:
    """The same dialogues several times over, as further samples of their cases."""
    batch, cases = judged.batch, []
    for number in range(times):
        cases.append(judged.cases.with_columns(sample=pl.lit(number)))
    many = Batch(*(np.concatenate([part] * times) for part in (batch.scores, batch.passed, batch.valid, batch.judged)))
    return JudgedDialogues.of(f"{judged.name}, {times} times", pl.concat(cases), many, judged.dimensions, judged.names)


def timed(work: Callable[[], Any], repeats: int = 1) -> tuple[list[float], Any]:
    taken, result = [], None
    for _ in range(repeats):
        start = perf_counter()
        result = work()
        taken.append(1000 * (perf_counter() - start))
    return taken, result


def line(what: str, taken: list[float]) -> None:
    print(f"  {what:44} {median(taken):8.1f} ms" + (f" median, {max(taken):.1f} ms at most, of {len(taken)}" if len(taken) > 1 else ""))


def measure(judged: JudgedDialogues) -> None:
    """Print the figures for some dialogues."""
    print(f"{judged.name}: {len(judged.batch):,} dialogues")
    paper, chosen = score(judged), Chosen(judged.groupings[0])
    taken, done = timed(lambda: effect(judged, SETTINGS, paper), MOVES)
    line("rewards, weights and places", taken)
    taken, parts = timed(lambda: view(done, chosen), MOVES)
    line(f"the view as HTML ({sum(map(len, parts.values())) / 1000:.0f} kB)", taken)
    taken, board = timed(lambda: RewardWeights(judged, Path("out")))
    line("the widgets, first view", taken)
    for name, low, high in (("p", 0.0, 4.0), ("sigma", 0.05, 1.0), ("mix_adaptive", 0.0, 1.0), ("D3", 1.0, 40.0)):
        stops = iter(np.linspace(low, high, MOVES).round(3).tolist())
        line(f"a move of {name}, to the widgets", timed(lambda: _move(board, name, next(stops)), MOVES)[0])  # noqa: B023 - called at once
    presets = iter(list(PRESETS.values()) * 3)
    line("a preset", timed(lambda: board.set(next(presets)), 3 * len(PRESETS))[0])
    line("the frames for readers without a kernel", timed(lambda: frames_html(judged))[0])
    with tempfile.TemporaryDirectory() as folder:
        taken, page = timed(lambda: write_weights_page(judged, Path(folder) / "page.html"))
        line(f"the static page ({page.stat().st_size / 1e6:.1f} MB)", taken)


def _move(board: RewardWeights, name: str, value: float) -> None:
    board.sliders[name].value = value


def main() -> None:
    """Print the figures of both."""
    taken, judged = timed(lambda: open_dialogues(ledger_dir=PUBLISHED))
    line("reading the reconstructed ledger", taken)
    measure(judged)
    measure(times_as_many(judged, 10))


if __name__ == "__main__":
    main()

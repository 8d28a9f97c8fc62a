"""What a command may take: money, time, and replies that other runs have had already."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from anthrolab.bench.spend import CHARGES, cost_so_far, default_cache, prices_of
from anthrolab.bench.store import Run, RunError
from anthrolab.models.engine import Engine, open_engine
from anthrolab.models.systems import Prices, System

DEADLINE_S = 3600.0
"""Seconds that one dialogue or one verdict may take unless something else is said."""


@dataclass(frozen=True)
class Effort:
    """cache: the SQLite file of replies that runs share; None for none.
    max_cost: USD that the whole run may cost, earlier commands included; None for no limit.
    deadline_s: seconds that one dialogue or one verdict may take.
    """

    cache: Path | None = None
    max_cost: float | None = None
    deadline_s: float = DEADLINE_S

    def __post_init__(self) -> None:
        if self.max_cost is not None and not 0 <= self.max_cost < float("inf"):
            raise RunError(f"--max-cost {self.max_cost}: USD, at least 0")
        if not 0 < self.deadline_s < float("inf"):
            raise RunError(f"--deadline {self.deadline_s / 60:g}: minutes, more than 0")

    def engine(self, run: Run, *systems: System) -> AbstractAsyncContextManager[Engine]:
        """The engine of a command on a run. `systems`: with their prices of today; others by the manifest.

        RunError if there is a limit and the run holds calls of a system without prices.
        """
        begun = self.max_cost is not None and (run.path / "manifest.json").exists()
        return self._open(run, {**(prices_of(run.manifest()) if begun else {}), **{s.name: s.prices for s in systems}})

    def engine_at(self, folder: Path, *systems: System) -> AbstractAsyncContextManager[Engine]:
        """The same for a folder that is no run, with `calls/` as a run has them: calls by the prices of today."""
        return self._open(Run(folder), {s.name: s.prices for s in systems})

    def _open(self, run: Run, prices: Mapping[str, Prices | None]) -> AbstractAsyncContextManager[Engine]:
        spent = 0.0 if self.max_cost is None else cost_so_far(run, prices)
        return open_engine(self.cache, self.max_cost, spent, run.path / CHARGES)


NO_LIMIT = Effort()
"""No cache, no limit on money, an hour for an item."""


def effort_of(run_dir: Path, max_cost: float) -> Effort:
    """What a notebook's run may take: the replies of its neighbours, and `max_cost` USD (negative: no limit)."""
    return Effort(default_cache(run_dir), None if max_cost < 0 else max_cost)


def cache_report(engine: Engine) -> list[str]:
    """What is to be said at the end of a command about replies that came from other runs."""
    lines = []
    if engine.cache is not None and engine.cache.trouble:
        lines.append(engine.cache.trouble)
    reused = sum(toll.reused for toll in engine.meter.tolls.values())
    if engine.cache is not None and reused:
        lines.append(
            f"{reused} replies came from {engine.cache.path}: other runs had asked the same of the same address and model name "
            "(another checkpoint behind that name? --cache none asks anew)"
        )
    return lines

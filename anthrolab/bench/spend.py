"""What a run has cost so far, from its call logs: calls, tokens, money, and attempts that went wrong on the way."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anthrolab.bench.store import Run, RunError
from anthrolab.files import whole_lines
from anthrolab.models.calls import CallLogError
from anthrolab.models.client import Reply, Usage
from anthrolab.models.systems import Prices

CHARGES = "charges.jsonl"
"""The file of a run with attempts that may have been charged without a reply."""


@dataclass
class Outlay:
    """One system on one side of a run (tested, partner, summary, memory, or the judge's).

    usage: its replies, without those that came from the shared cache, which are counted in `reused`; redrawn: tokens
    (prompt, completion) of replies that were drawn anew; unsure: USD of attempts without a reply that may have been charged,
    at their highest price (known only where a limit was set); troubles: attempts that another one followed, by what was
    wrong; seconds: the model's time, summed over calls.
    """

    side: str
    system: str
    usage: Usage = field(default_factory=Usage)
    reused: int = 0
    redrawn: tuple[int, int] = (0, 0)
    unsure: float = 0.0
    troubles: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def cost(self, prices: Prices | None) -> float | None:
        """USD of all replies, those drawn anew included; None without prices. Attempts without a reply are not in it."""
        if prices is None:
            return None
        return prices.cost(self.usage) + prices.cost(Usage(0, 0, self.redrawn[0], 0, self.redrawn[1]))


def read_spend(run: Run) -> list[Outlay]:
    """What each system did in a run, tested side first; CallLogError for a damaged log."""
    found: dict[tuple[str, str], Outlay] = {}
    for path in sorted(run.calls.glob("*.jsonl")) if run.calls.is_dir() else ():
        for number, line in enumerate(whole_lines(path), 1):
            try:
                row = json.loads(line)
                _add(found, row, path.name)
            except (ValueError, KeyError, TypeError) as e:
                raise CallLogError(f"{path}: line {number}: no call record ({e!r}); remove that line") from e
    for row in run.rows(CHARGES):
        key = (row["side"], row["system"])
        found.setdefault(key, Outlay(*key)).unsure += row["usd"]
    order = ("tested", "partner")
    return sorted(found.values(), key=lambda s: (order.index(s.side) if s.side in order else len(order), s.side, s.system))


def _add(found: dict[tuple[str, str], Outlay], row: Mapping[str, Any], file: str) -> None:
    side = "judge" if file.startswith("judge-") else "unknown"  # logs of earlier versions do not say
    key = ("retest" if file.startswith("retest-") else row.get("side", side), row.get("system", row["model"]))
    spent = found.setdefault(key, Outlay(*key))
    if row.get("reused"):
        spent.reused += 1
        return
    reply = row["reply"]
    counts = {name: reply[name] for name in ("prompt_tokens", "cached_tokens", "completion_tokens")}
    spent.usage += Usage.of(Reply("", **counts))
    prompt, completion = row.get("redrawn", (0, 0))
    spent.redrawn = (spent.redrawn[0] + prompt, spent.redrawn[1] + completion)
    spent.troubles.update(row.get("failed", ()))
    spent.seconds += row["seconds"]


def prices_of(manifest: Mapping[str, Any]) -> dict[str, Prices | None]:
    """The prices of all systems that a manifest names."""
    named = [*manifest["settings"].values(), *(j.get("system") for j in manifest["judges"].values())]
    systems = [s for s in named if isinstance(s, Mapping) and "name" in s]
    return {s["name"]: Prices.model_validate(s["prices"]) if s.get("prices") else None for s in systems}


def cost_so_far(run: Run, prices: Mapping[str, Prices | None]) -> float:
    """USD that a run has cost by these prices; RunError if it holds calls of a system that is not among them."""
    if run.has_dialogues and not run.calls.is_dir():
        raise RunError(f"--max-cost: {run.calls} is gone, so nobody knows what the run has cost; put it back, or leave the limit out")
    total = 0.0
    for spent in read_spend(run):
        cost = spent.cost(prices.get(spent.system))
        if cost is None:
            raise RunError(
                f"--max-cost: {run.calls} holds calls of {spent.system} ({spent.side}), which has no prices, so nobody knows what "
                "they cost; write its prices (0 and 0 if it costs nothing) in the systems file"
            )
        total += cost + spent.unsure
    return total


def default_cache(run_dir: Path) -> Path:
    """Where the replies lie that runs in one folder share."""
    return run_dir.resolve().parent / "replies.sqlite"

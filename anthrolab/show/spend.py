"""What runs have cost, in print: calls, tokens, money, and attempts that went wrong on the way."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from anthrolab.bench.spend import Outlay, prices_of
from anthrolab.models.systems import Prices
from anthrolab.show.tables import NO_VALUE, PrintedTable, plain_table


def spend_table(runs: Mapping[str, tuple[Mapping[str, Any], Sequence[Outlay]]]) -> PrintedTable | None:
    """By run (its manifest and what `read_spend` says): a row for each system on each side; None where no call is on record."""
    rows = [_row(run, spent, prices_of(manifest)) for run, (manifest, spends) in runs.items() for spent in spends]
    if not rows:
        return None
    return plain_table(
        "spend", "Calls, tokens and money",
        "From the call logs. Cached: prompt tokens that the server had in its prefix cache. Reused: replies that another run had got and "
        "that cost nothing. Failed attempts: those that another one followed, by what was wrong. USD by the prices in the "
        "systems file, cached tokens at the full price. USD at most, no reply: attempts that may have been charged for nothing, each at its "
        "highest price; known only where --max-cost was set.",
        pl.DataFrame(rows),
    )  # fmt: skip


def troubles_by_side(spends: Sequence[Outlay]) -> dict[str, Counter[str]]:
    """Failed attempts of each side of a run."""
    found: dict[str, Counter[str]] = {}
    for spent in spends:
        found.setdefault(spent.side, Counter()).update(spent.troubles)
    return found


def _row(run: str, spent: Outlay, prices: Mapping[str, Prices | None]) -> dict[str, str]:
    usage, cost = spent.usage, spent.cost(prices.get(spent.system))
    troubles = ", ".join(f"{what} {count}" for what, count in sorted(spent.troubles.items()))
    return {
        "Run": run,
        "Side": spent.side,
        "System": spent.system,
        "Calls": f"{usage.calls:,}",
        "Reused": f"{spent.reused:,}" if spent.reused else NO_VALUE,
        "Prompt tokens": f"{usage.prompt_tokens + spent.redrawn[0]:,}" + ("" if usage.uncounted == 0 else f" ({usage.uncounted} calls uncounted)"),
        "Cached": f"{usage.cached_tokens:,}",
        "Completion tokens": f"{usage.completion_tokens + spent.redrawn[1]:,}",
        "Seconds a call": f"{spent.seconds / usage.calls:.2f}" if usage.calls else NO_VALUE,
        "Failed attempts": troubles or NO_VALUE,
        "USD": NO_VALUE if cost is None else f"{cost:.4f}",
        "USD at most, no reply": f"{spent.unsure:.4f}" if spent.unsure else NO_VALUE,
    }

"""What is chosen in the failure explorer, and what follows from it; no widgets, no files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from anthrolab.bench.selection import Selected
from anthrolab.loop.hints import Hints
from anthrolab.loop.records import FailureRecord
from anthrolab.show.beside import Case, beside_html, case_html, texts
from anthrolab.show.failure_sources import FailuresError
from anthrolab.show.failures import FACETS, Failures, chosen, counted_cases, facet_counts, failing_cases
from anthrolab.show.records import found_records, suggestions_html

PAGE = 100
"""Cases in one page of the list."""
ANY = ""
"""What pickers hold where nothing is asked for; ipywidgets would show None as an empty box."""
_NAMED = 8
"""Ids that the list names of a case."""

Option = tuple[str, Any]
"""What a picker shows, and what it stands for."""


@dataclass
class ExplorerState:
    """The explorer's state: what is asked for, the page of the list, the case that is shown, and the one beside it.

    asked: by facet (`failures.FACETS`); beside: source, system and sample that are to stand beside every case that has
    them. `found` (failures) and `cases` (of these) follow from what is asked. hints: by source, for suggested repairs
    (`records.hints_by_source`); without them there are none.
    """

    failures: Failures
    asked: dict[str, str | None] = field(default_factory=dict)
    search: str = ""
    page: int = 0
    case: int | None = None
    beside: tuple[str, str, int] | None = None
    hints: Mapping[str, Hints] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ask()

    def ask(self, *, search: str | None = None, **changes: str | None) -> None:
        """Change what is asked for; the case that is shown stays if it is found again, else the first one is shown."""
        self.asked |= changes
        if changes.get("gate"):
            self.asked |= {"checkbox": None, "dimension": None}
        elif changes.get("checkbox") or changes.get("dimension"):
            self.asked["gate"] = None
        box, dimension = self.asked.get("checkbox"), changes.get("dimension")
        if box and dimension and not box.startswith(f"{dimension}."):
            self.asked["checkbox"] = None
        self.search = self.search if search is None else search
        self.found = chosen(self.failures.rows, search=self.search, **self.asked)
        self.cases = failing_cases(self.found)
        there = self.cases["case"].to_list()
        if self.case not in there:
            self.case = there[0] if there else None
        self.page = (self.place - 1) // PAGE if self.case is not None else 0

    @property
    def place(self) -> int:
        """Where the case that is shown stands among those that are found, from 1; 0 if there is none."""
        found = self.cases["case"].index_of(self.case) if self.case is not None else None
        return 0 if found is None else found + 1

    def go_to(self, place: int) -> None:
        """Show the case at a place (from 1), and the page on which it is listed."""
        if 1 <= place <= self.cases.height:
            self.case, self.page = self.cases["case"][place - 1], (place - 1) // PAGE

    @property
    def pages(self) -> int:
        """How many pages the list has, at least one."""
        return max(1, -(-self.cases.height // PAGE))

    def turn_page(self, by: int) -> None:
        """Another page of the list, whose first case is then shown."""
        self.go_to(1 + PAGE * min(max(self.page + by, 0), self.pages - 1))

    def options(self) -> dict[str, list[Option]]:
        """For every facet what its picker offers: anything, and each value with its failures; what is asked for is
        always among them."""
        counts = facet_counts(self.failures.rows, search=self.search, **self.asked)
        words = texts(self.failures, self.asked.get("source"))
        offered = {}
        for facet in FACETS:
            there, asked = counts[facet], self.asked.get(facet)
            if asked and asked not in there:
                there = {**there, asked: 0}
            offered[facet] = [(f"any ({sum(there.values())})", ANY), *((_label(v, n, words.get(v)), v) for v, n in there.items())]
        return offered

    def listed(self) -> list[Option]:
        """The page's cases."""
        shown = self.cases.slice(self.page * PAGE, PAGE)
        return [(_listed(row, many=len(self.failures.sources) > 1), row["case"]) for row in shown.iter_rows(named=True)]

    def neighbours(self) -> list[Option]:
        """What can stand beside the case that is shown: the same case of another system, run, judge or sample."""
        if self.case is None:
            return []
        own = self.row(self.case)
        same = self.failures.cases.filter((pl.col("case_id") == own["case_id"]) & (pl.col("case") != self.case))
        return [(self._neighbour(own, row), (row["source"], row["system"], row["sample"])) for row in same.iter_rows(named=True)]

    def row(self, case: int) -> Case:
        """A case's row of `Failures.cases`."""
        return self.failures.cases.row(case, named=True)

    def counted(self) -> str:
        """What is found of how much, in one line."""
        planned = self.failures.cases
        if source := self.asked.get("source"):
            planned = planned.filter(pl.col("source") == source)
        if system := self.asked.get("system"):
            planned = planned.filter(pl.col("system") == system)
        return f"{self.found.height} failures in {self.cases.height} of {counted_cases(planned)}"

    def html(self) -> str:
        """The case that is shown, with another beside it if that is asked for and there is one."""
        if self.case is None:
            return "<p>No failure matches these filters.</p>"
        own = self.row(self.case)
        failing = set(self.found.filter(pl.col("case") == self.case).select("id", "message_index").iter_rows())
        key = [pl.col(name) == value for name, value in zip(("source", "system", "sample"), self.beside or (), strict=False)]
        same = self.failures.cases.filter(pl.col("case_id") == own["case_id"], pl.col("case") != self.case, *key)
        suggested = suggestions_html(self.records(everything=False))
        if self.beside and same.height:
            return suggested + beside_html(self.failures, own, same.row(0, named=True), failing)
        return suggested + case_html(self.failures, own, failing)

    def records(self, *, everything: bool) -> list[FailureRecord]:
        """The failure records of what is found in the case that is shown, or in every case."""
        rows = self.found if everything else self.found.filter(pl.col("case") == pl.lit(self.case, pl.UInt32))
        return found_records(self.failures, rows, self.hints) if self.hints else []

    def selected(self, *, everything: bool, note: str = "") -> list[Selected]:
        """The case that is shown, or every case that is found, as rows of a selection with what was found to fail there.

        Cases of which nothing is known but what failed are left out; FailuresError if no case is left.
        """
        playable = [s.name for s in self.failures.sources if s.playable]
        cases = self.cases.filter(pl.col("source").is_in(playable), pl.lit(everything) | (pl.col("case") == pl.lit(self.case, pl.UInt32)))
        if not cases.height:
            raise FailuresError("nothing to add: no case is found, or its chat and cards are not known; choose a case of a run")
        names = ("run", "system", "case_id", "sample", "dialogue_id", "judge")
        return [
            Selected(**{name: row[name] for name in names}, ids=tuple(row["ids"]), note=note) for row in cases.iter_rows(named=True)
        ]

    def _neighbour(self, own: Case, row: Case) -> str:
        hashes = [s.measured.manifest["hashes"]["cards"] if (s := self.failures.sources[c["number"]]).measured else None for c in (own, row)]
        parts = [row["system"], row["source"], *([f"sample {row['sample']}"] if row["sample"] or own["sample"] else [])]
        state = f"{row['failures']} failures" if row["valid"] else row["state"]
        return f"{' · '.join(parts)}: {state}" + (", other cards" if hashes[0] != hashes[1] else "")


def _label(value: str, count: int, text: str | None) -> str:
    return f"{value} ({count})" + (f" {text}" if text else "")


def _listed(row: Mapping[str, Any], *, many: bool) -> str:
    parts = [row["case_id"] + (f" #{row['sample']}" if row["sample"] else ""), row["category"], row["system"]]
    parts += [row["source"]] if many else []
    ids = row["ids"]
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{' · '.join(parts)} · {row['failures']} failed: {', '.join(ids[:_NAMED])}{more}"

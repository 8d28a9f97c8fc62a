"""What all steps of a loop's command share: its settings, systems, cards, rubric, and what it may take."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anthrolab.bench.effort import NO_LIMIT, Effort
from anthrolab.bench.plan import Progress
from anthrolab.bench.settings import SUMMARIES, chat_system_for
from anthrolab.bench.spend import cost_so_far, prices_of
from anthrolab.bench.store import Run
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.judging.verdict import RULES
from anthrolab.loop.folder import Loop, LoopError, LoopSettings
from anthrolab.loop.held_back import held_back_bindings
from anthrolab.loop.hints import Hints, load_hints
from anthrolab.models.opening import model_identity
from anthrolab.models.systems import System, default_systems_path, find_partner, find_system, load_systems
from anthrolab.runtime.prompt import prompts_hash


@dataclass(frozen=True)
class Files:
    """Where systems, cards and rubric are read from; None: those that come with anthrolab."""

    systems: Path | None = None
    cards: Path | None = None
    rubric: Path | None = None

    @property
    def cards_dir(self) -> Path:
        """The folder of cards."""
        return self.cards or default_cards_dir()


@dataclass(frozen=True)
class Workshop:
    """What all rounds of one command share."""

    loop: Loop
    settings: LoopSettings
    systems: dict[str, System]
    library: Library
    rubric: Rubric
    hints: Hints
    files: Files
    effort: Effort = NO_LIMIT
    progress: Progress = print

    @classmethod
    def open(cls, loop: Loop, settings: LoopSettings, files: Files, effort: Effort, progress: Progress) -> "Workshop":
        """Reads what the files hold, and checks every name before anything is asked; held-back bindings are completed to pairs.

        LoopError, SystemsError or RunError for a name that is none.
        """
        systems = load_systems(files.systems or default_systems_path())
        library, rubric = load_library(files.cards_dir), load_rubric(files.rubric)
        strange = [b for b in settings.held_back if b not in library.bindings]
        if strange:
            raise LoopError(f"--held-back: these cards have no binding {strange[0]}; name bindings such as {next(iter(library.bindings))}")
        if settings.held_back:
            settings = settings.model_copy(update={"held_back": held_back_bindings(library, ",".join(settings.held_back), settings.seed)})
        tested = find_system(systems, settings.system)
        find_partner(systems, tested, settings.partner)
        for option, name in (("--judge", settings.judge), ("--writer", settings.writer), ("--summary", settings.summary)):
            if name is not None and not (option == "--judge" and name == RULES) and not (option == "--summary" and name in SUMMARIES):
                chat_system_for(option, name, systems)
        return cls(loop, settings, systems, library, rubric, load_hints(rubric), files, effort, progress)

    def conditions(self) -> dict[str, Any]:
        """What all rounds of a loop must have in common besides the settings: cards, rubric, prompts, and the systems with what
        they say of themselves. A server may move (its address is no part of it)."""
        named = (self.settings.system, self.settings.partner, self.settings.judge, self.settings.writer, self.settings.summary)
        found: dict[str, Any] = {"cards": self.library.content_hash(), "rubric": self.rubric.hash, "prompts": prompts_hash()}
        for name in dict.fromkeys(n for n in named if n in self.systems):
            system = self.systems[name]
            found[f"settings of {name}"] = system.said_by() | ({"file": model_identity(system)} if system.embedded else {})
        return found

    def effort_for(self, own: Run) -> Effort:
        """What is left for one folder of the loop: the limit on money is for all of them together."""
        if self.effort.max_cost is None:
            return self.effort
        now = {s.name: s.prices for s in self.systems.values()}
        folders = [Run(p) for pattern in ("runs/*", "rounds/*", "ab/*/runs/*") for p in sorted(self.loop.path.glob(pattern))]
        then = [prices_of(run.manifest()) for run in folders if (run.path / "manifest.json").exists()]
        prices = {name: price for known in (*then, now) for name, price in known.items()}  # a system may be gone by now
        others = sum(cost_so_far(run, prices) for run in folders if run.path != own.path)
        return replace(self.effort, max_cost=max(0.0, self.effort.max_cost - others))

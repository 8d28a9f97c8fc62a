"""What all steps of a loop's command share: its settings, systems, cards, rubric, and what it may take."""

from dataclasses import dataclass, replace
from pathlib import Path

from anthrolab.bench.effort import NO_LIMIT, Effort
from anthrolab.bench.plan import Progress
from anthrolab.bench.settings import chat_system_for
from anthrolab.bench.spend import cost_so_far
from anthrolab.bench.store import Run
from anthrolab.cards.library import Library, default_cards_dir, load_library
from anthrolab.judging.rubric import Rubric, load_rubric
from anthrolab.loop.folder import Loop, LoopError, LoopSettings
from anthrolab.loop.hints import Hints, load_hints
from anthrolab.models.systems import System, default_systems_path, load_systems


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
        """Reads what the files hold; LoopError for a held-back binding that the cards lack."""
        systems = load_systems(files.systems or default_systems_path())
        library, rubric = load_library(files.cards_dir), load_rubric(files.rubric)
        strange = [b for b in settings.held_back if b not in library.bindings]
        if strange:
            raise LoopError(f"--held-back: these cards have no binding {strange[0]}; name bindings such as {next(iter(library.bindings))}")
        if settings.writer is not None:
            chat_system_for("--writer", settings.writer, systems)
        return cls(loop, settings, systems, library, rubric, load_hints(rubric), files, effort, progress)

    def effort_for(self, own: Run) -> Effort:
        """What is left for one folder of the loop: the limit on money is for all of them together."""
        if self.effort.max_cost is None:
            return self.effort
        prices = {s.name: s.prices for s in self.systems.values()}
        folders = [Run(p) for pattern in ("runs/*", "rounds/*", "ab/*/runs/*") for p in sorted(self.loop.path.glob(pattern))]
        others = sum(cost_so_far(run, prices) for run in folders if run.path != own.path)
        return replace(self.effort, max_cost=max(0.0, self.effort.max_cost - others))

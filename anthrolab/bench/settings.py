"""The settings of a run: the scheduler's limits, the pace, the skills, and who summarises older messages."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from anthrolab.bench.store import RunError
from anthrolab.cards.skill import Skill, default_skills_dir, load_skills
from anthrolab.models.calls import CallLog, Recorded
from anthrolab.models.opening import Models, model_identity
from anthrolab.models.structured import Ladder
from anthrolab.models.systems import System, find_system
from anthrolab.runtime.auxiliary import Auxiliary
from anthrolab.runtime.history import Summariser
from anthrolab.runtime.schedule import Rules
from anthrolab.runtime.summary_model import ModelSummariser
from anthrolab.runtime.summary_rules import RulesSummariser

SUMMARIES = ("rules", "none")
"""What may summarise older messages besides a system."""

NO_SKILLS = Path("none")
"""In place of a folder of skills."""


LONGEST_S = 1500
"""The longest horizon: a longer gap would end every chat."""


@dataclass(frozen=True)
class Pace:
    """Timing beyond the benchmark's rules, off by default (see `Rules`): seconds between own messages, least seconds
    before the first, second, ... unanswered follow-up, and a typing speed in characters a minute."""

    min_gap_s: int = 0
    follow_up_delays: tuple[int, ...] = ()
    typing_chars_per_minute: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.min_gap_s <= LONGEST_S:
            raise RunError(f"--min-gap {self.min_gap_s}: seconds, at least 0 and at most {LONGEST_S}")
        delays = ",".join(map(str, self.follow_up_delays))
        if any(not 0 <= delay <= LONGEST_S for delay in self.follow_up_delays):
            raise RunError(f"--follow-up-delays {delays}: seconds, each at least 0 and at most {LONGEST_S}")
        if list(self.follow_up_delays) != sorted(self.follow_up_delays):
            raise RunError(f"--follow-up-delays {delays}: a growing schedule; give each at least as long as the one before")
        if self.typing_chars_per_minute < 0:
            raise RunError(f"--typing-speed {self.typing_chars_per_minute}: characters a minute, at least 0")

    @property
    def in_words(self) -> str:
        """For a report: what is on."""
        parts = [f"{self.min_gap_s} s between own messages"] if self.min_gap_s else []
        if self.follow_up_delays:
            parts.append(f"follow-ups after {', '.join(map(str, self.follow_up_delays))} s")
        if self.typing_chars_per_minute:
            parts.append(f"typing {self.typing_chars_per_minute} characters a minute")
        return "; ".join(parts) or "none"


NO_PACE = Pace()
"""The benchmark's: nothing of it."""


@dataclass(frozen=True)
class Limits:
    """The scheduler's limits that do not depend on the scenario, and the verbatim window of the prompts."""

    max_messages: int = 50
    max_consecutive: int = 4
    max_delay_s: int = 600
    window: int = 12
    pace: Pace = NO_PACE

    def __post_init__(self) -> None:
        for field, least in (("max_messages", 2), ("max_consecutive", 1), ("max_delay_s", 0), ("window", 1)):
            value = getattr(self, field)
            if value < least:
                raise RunError(f"--{field.replace('_', '-')} {value}: at least {least}")

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> "Limits":
        """From what stands in a manifest (see `as_settings`); RunError for a limit that this version does not know."""
        known = {f.name for f in (*fields(Pace), *fields(cls))}
        if strange := sorted(set(settings) - known):
            raise RunError(f"limits.{strange[0]}: this version of anthrolab does not know it; use the version that made the run")
        paced = {f.name for f in fields(Pace)}
        pace: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in settings.items() if k in paced}
        return cls(**{k: v for k, v in settings.items() if k not in paced}, pace=Pace(**pace))

    def rules(self, horizon_minutes: int) -> Rules:
        """The scheduler's rules for a scenario."""
        return Rules(
            horizon_s=60 * horizon_minutes,
            max_delay_s=self.max_delay_s,
            max_consecutive=self.max_consecutive,
            max_messages=self.max_messages,
            **vars(self.pace),
        )

    def as_settings(self) -> dict[str, Any]:
        """As they stand in a manifest."""
        settings = asdict(self)
        pace = settings.pop("pace")
        return {**settings, **pace, "follow_up_delays": list(self.pace.follow_up_delays)}


@dataclass(frozen=True)
class State:
    """What the speakers of a run are given besides their cards: the skills, and who summarises older messages.

    `summary`: a chat system, "rules" (offline, quoting) or "none" (older messages are not shown).
    """

    skills: tuple[Skill, ...]
    summary: System | str = "rules"

    @classmethod
    def of(
        cls, skills_dir: Path | None, cards_dir: Path | None, pins: Mapping[str, str], summary: str,
        systems: Mapping[str, System],
    ) -> "State":  # fmt: skip
        """From what stands on the command line; `pins` names versions of skills. Skills are those of `skills_dir`, else
        those beside the cards, else the ones that come with anthrolab; a folder called "none" means no skills."""
        if skills_dir == NO_SKILLS:
            if pins:
                raise RunError(f"--skill {next(iter(pins))}: there are none with --skills {NO_SKILLS}; leave one of the two out")
            return cls((), _summary(summary, systems))
        return cls(load_skills(skills_folder(skills_dir, cards_dir), pins), _summary(summary, systems))

    def in_words(self) -> str:
        """For a line of progress."""
        named = ", ".join(f"{s.name} {s.version}" for s in self.skills) or "none"
        return f"skills {named}; older messages: {self.summary if isinstance(self.summary, str) else self.summary.name}"

    def summary_setting(self) -> Any:
        """As it stands in a manifest."""
        return self.summary.model_dump(mode="json") if isinstance(self.summary, System) else self.summary

    def summary_identity(self) -> str:
        """Names who summarises, and a system's server and model file."""
        return model_identity(self.summary) if isinstance(self.summary, System) else self.summary

    async def summariser(self, models: Models, log: CallLog, salt: str, ladder: Ladder) -> Summariser | None:
        """The summariser of one dialogue; its calls go into the dialogue's log. `ladder`: one for all dialogues."""
        if isinstance(self.summary, System):
            client = Recorded(await models.client(self.summary), log, log.engine.meter.toll(self.summary, "summary"))
            return ModelSummariser(Auxiliary(client, self.summary, ladder), salt)
        return RulesSummariser() if self.summary == "rules" else None


def skills_folder(skills_dir: Path | None, cards_dir: Path | None) -> Path:
    """The folder that skills are read from: the one named, else the one beside the cards, else that which comes with anthrolab."""
    if skills_dir is None and cards_dir is not None and (cards_dir / "skills").is_dir():
        return cards_dir / "skills"
    return skills_dir or default_skills_dir()


def _summary(name: str, systems: Mapping[str, System]) -> System | str:
    if name in SUMMARIES:
        return name
    if name not in systems:
        raise RunError(f"--summary {name}: is neither rules nor none nor a system; there are: {', '.join(systems)}")
    return chat_system_for("--summary", name, systems)


def chat_system_for(option: str, name: str, systems: Mapping[str, System]) -> System:
    """The chat system that an option names; RunError if it is a base model, which cannot answer in JSON."""
    system = find_system(systems, name)
    if system.policy != "chat":
        raise RunError(f"{option} {name}: is a base model (policy transcript) and cannot answer in JSON; name a chat system")
    return system

"""What a dialogue was played with, so that its prompts can be built again: cards, skills, limits, summaries."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from anthrolab.bench.settings import Limits
from anthrolab.bench.store import Run, RunError
from anthrolab.cards.library import CardError, Library
from anthrolab.cards.skill import Skill, SkillError, SkillName, load_skill
from anthrolab.runtime.asked import AskedPrompt, Past, prompts_of
from anthrolab.runtime.dialogue import Dialogue, Speaker, other
from anthrolab.runtime.prompt import prompts_hash
from anthrolab.runtime.schedule import Rules
from anthrolab.runtime.seat import Seat, seats


@dataclass(frozen=True)
class Context:
    """What all dialogues of a run have in common; to be had from `of_run`, or made by hand (gold dialogues)."""

    library: Library
    skills: tuple[Skill, ...] = ()
    limits: Limits = Limits()  # noqa: RUF009 - frozen
    past: Past = "rules"

    @classmethod
    def of_run(cls, run: Run, library: Library, skills_dir: Path) -> "Context":
        """The context of a run. RunError if these are not its cards, if a version of its skills is not the one here, or if it was
        made with other prompts than today's."""
        manifest = run.manifest()
        if manifest["hashes"].get("prompts") != prompts_hash():
            raise RunError(f"{run.path}: was made with other prompts than this version of anthrolab has, so they cannot be built again; use the version that made it")
        if library.content_hash() != manifest["hashes"]["cards"]:
            raise RunError(f"{run.path}: its cards are not those of this folder; give theirs with --cards")
        settings = manifest["settings"]
        summary = settings.get("summary", "rules")
        past: Past = "logged" if isinstance(summary, dict) else summary
        skills = tuple(_skill(run, label, skills_dir) for label in manifest["hashes"].get("skills", []))
        return cls(library, skills, Limits.of_settings(settings["limits"]), past)

    def seats(self, dialogue: Dialogue) -> dict[Speaker, Seat]:
        """Both seats, with the memories that the dialogue's record holds. CardError if a card is not in the library."""
        people = dialogue.cards_of(self.library.personas)
        scenario = self.library.all_scenarios().get(dialogue.scenario or "")
        if scenario is None or len(people) < 2:
            raise CardError([f"{dialogue.dialogue_id}: its cards are not all in this folder; give theirs with --cards"])
        ids = {side: person.id for side, person in people.items()}
        memories = {(ids[side], ids[other(side)]): memory for side, memory in (dialogue.memories or {}).items()}
        return seats(people["a"], people["b"], scenario, memories=memories, skills=self.skills)

    def rules(self, dialogue: Dialogue) -> Rules:
        """The scheduler's rules that the dialogue was played under. ValueError if it does not say how long it might last."""
        if dialogue.horizon_minutes is None:
            raise ValueError(f"{dialogue.dialogue_id}: horizon_minutes is missing, so its course cannot be played again")
        return self.limits.rules(dialogue.horizon_minutes)

    def prompts(self, dialogue: Dialogue) -> list[AskedPrompt]:
        """The prompt of every ask of the dialogue (see `runtime/asked.py`)."""
        return prompts_of(dialogue, self.seats(dialogue), self.rules(dialogue), window=self.limits.window, past=self.past)


def _skill(run: Run, label: str, skills_dir: Path) -> Skill:
    """The skill that a manifest names by name, version and content hash."""
    name, version, _ = label.split(" ")
    try:
        skill = load_skill(skills_dir, cast("SkillName", name), version)  # a wrong name has no version here
    except SkillError as e:
        raise RunError(f"{run.path}: was made with {name} {version}: {e}; give its skills with --skills") from e
    if skill.label != label:
        raise RunError(f"{run.path}: was made with another text of {name} {version} than {skills_dir} holds; put that text back")
    return skill

"""What is settled before a chat in the terminal begins: the terminal, the saved chat, the endpoint."""

import sys
from pathlib import Path
from typing import Any

from anthrolab.bench.store import Run
from anthrolab.cards.library import default_cards_dir, load_library
from anthrolab.cards.persona import Persona
from anthrolab.live.opening import ChatSettings
from anthrolab.live.saving import begun_chat
from anthrolab.live.scene import ChatError, Setting
from anthrolab.live.terminal_text import visible
from anthrolab.models.client import ModelError
from anthrolab.models.opening import remote_client
from anthrolab.models.systems import default_systems_path, find_system, load_systems

LISTED = 8
"""Personas that an error names."""


def check_terminal() -> None:
    """ChatError if standard input or output is no terminal that a chat can be had in."""
    from prompt_toolkit.utils import is_dumb_terminal

    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output")):
        if not stream.isatty():
            raise ChatError(f"standard {name} is no terminal; run `anthrolab chat` in a terminal window, without < | or >")
    if is_dumb_terminal():
        raise ChatError("TERM is not set, or says that the terminal is a dumb one; run: export TERM=xterm-256color")
    encoding = sys.stdin.encoding.lower().replace("-", "").replace("_", "")
    if encoding not in ("utf8", "ascii", "ansi_x3.41968"):
        raise ChatError(f"the terminal's encoding is {sys.stdin.encoding}; set it to UTF-8 and run: export LC_ALL=C.UTF-8")


def saved_settings(folder: Path, chat: str) -> dict[str, Any]:
    """What a saved chat was begun with, as fields of `ChatSettings`. ChatError if there is none of this name."""
    begun = begun_chat(folder, chat)
    if begun is None:
        there = sorted(path.stem for path in (folder / "chats").glob("*.jsonl") if path.stat().st_size)
        raise ChatError(f"--chat {chat}: {folder} has no such chat; {'there are: ' + ', '.join(there) if there else 'there is none yet'}")
    said = begun.setting
    found: dict[str, Any] = {key: said[key] for key in ("minutes", "typing_speed", "max_messages") if key in said}
    if said.get("case"):
        found["case"] = said["case"]
    else:
        found |= {"persona": said.get("persona"), "name": said.get("person")}
    if said.get("analyser"):
        found |= {"analyser": said["analyser"].get("name"), "analyse_every": said["analyser"].get("every")}
    if (folder / "manifest.json").exists():
        found["system"] = Run(folder).manifest()["settings"]["system"]["name"]
    return found


def which_persona(cards_dir: Path | None) -> ChatError:
    """The error of a command that names neither a persona nor a case."""
    personas = load_library(cards_dir or default_cards_dir()).personas
    lines = [f"  {p.id}  {about(p)}" for p in list(personas.values())[:LISTED]]
    more = f"; {len(personas)} in all, such as" if len(personas) > LISTED else ":"
    return ChatError("\n".join([f"name whom to chat with: --persona ID, or a case of the benchmark, --case b01-a{more}", *lines]))


def which_system(systems_file: Path | None) -> ChatError:
    """The error of a command that names no system."""
    return ChatError(f"name the model that plays the persona: --system NAME; there are: {', '.join(load_systems(systems_file or default_systems_path()))}")


async def check_endpoint(settings: ChatSettings) -> None:
    """ModelError if no server is where the system says; nothing is asked that costs something."""
    known = load_systems(settings.systems_file or default_systems_path())
    for name in dict.fromkeys((settings.system, settings.analyser)):
        system = find_system(known, name) if name else None
        if system is None or system.embedded:
            continue
        async with remote_client(system.model_copy(update={"retries": 0})) as client:
            try:
                await client.models()
            except ModelError as e:
                if e.fault == "unreachable":  # a server without a list of models may chat all the same
                    raise


def about(persona: Persona) -> str:
    """Who somebody is, in one line."""
    facts = (persona.name, persona.gender, f"{persona.age}岁", persona.city, persona.occupation, persona.relationship_status)
    return visible("，".join(facts))


def part_text(setting: Setting) -> str:
    """Whose part the person takes, and what they know when a case begins."""
    scene, card, part = setting.seat.scene, setting.card, setting.part
    if card is None or part is None:
        return f"You write with {visible(setting.seat.name)}, as {visible(setting.person)}."
    lines = [
        f"You take this part: {about(card)}",
        f"{setting.seat.name} and you: {scene.relationship}",
        f"What it is about: {scene.goal} ({scene.tone})",
        f"Where you are: {part.place}",
        f"What has happened: {part.trigger}",
        f"How you feel: {part.emotion}",
        *(f"You know: {known}" for known in part.knows),
    ]
    return visible("\n".join(lines))

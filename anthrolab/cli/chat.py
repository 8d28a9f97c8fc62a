"""The verb that lets a person chat."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from anthrolab.cli.options import Cards, MaxCost, Pins, Skills, Summary, Systems, pins
from anthrolab.errors import AnthrolabError

app = typer.Typer()


@app.command()
def chat(
    persona: Annotated[Optional[str], typer.Option(help="Persona that the model plays, such as p01; you write first.")] = None,
    case: Annotated[Optional[str], typer.Option(help="Or a case of the benchmark, such as b01-a; you take its other part.")] = None,
    system: Annotated[Optional[str], typer.Option(help="Name of the system in the systems file.")] = None,
    name: Annotated[Optional[str], typer.Option(help="Your name in the chat (default: 网友).")] = None,
    speed: Annotated[float, typer.Option(help="How many times faster than real time.")] = 1.0,
    minutes: Annotated[Optional[int], typer.Option(help="Virtual minutes until the chat ends (default: no end).")] = None,
    save: Annotated[Optional[Path], typer.Option(help="Folder to save the chat in (default: nothing is written).")] = None,
    chat: Annotated[Optional[str], typer.Option(help="Saved chat to go on with, such as chat01; persona, names, system and analyser are those it was begun with.")] = None,
    analyser: Annotated[Optional[str], typer.Option(help="Chat system that infers who you are from what you say (default: nobody).")] = None,
    start: Annotated[str, typer.Option(help="When the chat begins, YYYY-MM-DDTHH:MM:SS (default: now).")] = "",
    typing_speed: Annotated[Optional[int], typer.Option(help="Characters a minute that the persona types (default: 180).")] = None,
    summary: Summary = "rules",
    skill: Pins = None,
    systems: Systems = None,
    cards: Cards = None,
    skills: Skills = None,
    seed: Annotated[int, typer.Option(help="Another seed draws other answers.")] = 0,
    max_cost: MaxCost = None,
) -> None:
    """Chat with a persona that a model plays. It is an AI and says so; /help in the chat lists what can be done.

    Nothing is written anywhere without --save.

    Example: anthrolab chat --persona p05 --system gemma-3-270m --save runs/chats
    """
    from anthrolab.live.opening import ChatSettings
    from anthrolab.live.terminal import chat_in_terminal
    from anthrolab.live.terminal_start import saved_settings, which_persona, which_system
    from anthrolab.sync import run_async

    if chat is not None and save is None:
        raise AnthrolabError(f"--chat {chat}: names a saved chat; give the folder it is in with --save")
    said: dict[str, Any] = {
        "persona": persona, "case": case, "system": system, "name": name, "minutes": minutes, "typing_speed": typing_speed,
        "analyser": analyser,
    }  # fmt: skip
    known = saved_settings(save, chat) if save is not None and chat is not None else {}
    settings = {**known, **{key: value for key, value in said.items() if value is not None}}
    if not settings.get("persona") and not settings.get("case"):
        raise which_persona(cards)
    if not settings.get("system"):
        raise which_system(systems)
    chosen = ChatSettings(
        **settings, folder=save, chat=chat or "", start=start, summary=summary, skills=pins(skill), seed=seed,
        systems_file=systems, cards_dir=cards, skills_dir=skills, max_cost=max_cost,
    )  # fmt: skip
    run_async(chat_in_terminal(chosen, speed))

"""Import and export as the command line has them: a path in, files out, every warning as a line."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from anthrolab.cards.exchange.anthrodial_export import export_anthrodial
from anthrolab.cards.exchange.anthrodial_import import import_anthrodial, write_library
from anthrolab.cards.exchange.character_card import Version, character_card_file, import_character_card, stale
from anthrolab.cards.exchange.files import New, write_all, write_imported
from anthrolab.cards.exchange.outcome import CardWarning, ExchangeError, Imported
from anthrolab.cards.library import load_library
from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.yaml_files import read_model

Format = Literal["anthrodial", "v2", "v3", "png"]
"""`png` is a V3 image, which holds the V2 card as well."""
FORMATS: dict[str, Format] = {"anthrodial": "anthrodial", "v2": "v2", "v3": "v3", "png": "png"}
"""By the names that a command line takes."""


def import_into(path: Path, folder: Path) -> tuple[list[Path], list[str]]:
    """Import a Character Card file or an AnthroDial folder into a folder of cards: the files written, and the warnings.

    What is no whole card yet goes into `folder/drafts`, which is not loaded. Nothing is overwritten.
    """
    if path.is_dir():
        imported = import_anthrodial(path)
        return write_library(imported, folder), [*_lines(path, imported.warnings), *(w for c in imported.cards for w in _of(c))]
    taken = [p.stem for place in ("personas", "drafts/personas") for p in (folder / place).glob("*.yaml")]
    card = import_character_card(path, taken)
    return write_imported(card, folder), _of(card)


def export_to(source: Path, format: Format, out: Path, image: Path | None = None) -> tuple[list[Path], list[str]]:
    """Export a folder of cards, or one persona's .yaml, to `out`: the files written, and the warnings.

    As Character Cards a folder gives a file per persona, with its memories, in the folder `out`; a persona gives the
    file `out`. `image` is the picture to put it into. If one file is in the way, none is written.
    """
    if format == "anthrodial":
        if not source.is_dir():
            raise ExchangeError(f"{source}: is no folder of cards; AnthroDial's layout needs personas, scenarios and bindings")
        done = export_anthrodial(load_library(source), out)
        return list(done.paths), _lines(out, done.warnings)
    version: Version = 2 if format == "v2" else 3
    people: list[tuple[Persona, Path, list[Memory]]]
    if source.is_dir():
        library = load_library(source)
        ending = "png" if format == "png" else "json"
        people = [
            (p, out / f"{p.id}.{ending}", [m for (owner, _), m in library.memories.items() if owner == p.id])
            for p in library.personas.values()
        ]
    else:
        people = [(read_model(source, Persona), out, [])]
    files: list[New] = [(path, character_card_file(persona, path, version, image, memories)) for persona, path, memories in people]
    return write_all(files), [line for persona, path, _ in people for line in _lines(path, stale(persona))]


def _of(imported: Imported[Any]) -> list[str]:
    needs = [f"{imported.source}: draft: {problem}" for problem in imported.problems]
    return [*_lines(imported.source, imported.warnings), *needs]


def _lines(where: Path, warnings: Iterable[CardWarning]) -> list[str]:
    return [f"{where}: {warning}" for warning in warnings]

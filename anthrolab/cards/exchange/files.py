"""Cards and drafts as YAML files: block style, UTF-8, nothing folded, and the same values for YAML 1.1 and 1.2 readers."""

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from anthrolab.cards.exchange.outcome import ExchangeError, Imported, Kind
from anthrolab.cards.persona import Card
from anthrolab.files import FileError, write_atomic
from anthrolab.yaml_files import MAX_CHARS

FOLDERS: dict[Kind, str] = {"persona": "personas", "scenario": "scenarios", "binding": "bindings", "memory": "memories"}

PLAIN_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?: [A-Za-z][A-Za-z0-9_-]*)*")
OTHER_MEANING = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Words that YAML 1.1 (which PyYAML reads) or 1.2 takes for something else than a text."""


class _Representer(SafeRepresenter):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(representer: SafeRepresenter, text: str) -> ScalarNode:
    """Quoted where a YAML 1.1 reader could take it for a number, a time or a truth value."""
    style = None
    if not text.isprintable():
        style = '"'  # the one style in which every character comes back, a line end within the text or U+0085 too
    elif text.isascii() and (not PLAIN_WORDS.fullmatch(text) or text.lower() in OTHER_MEANING):
        style = "'"
    return representer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Representer.add_representer(str, _text)


def yaml_text(value: Any, comments: Iterable[str] = ()) -> str:
    """A value as YAML under some lines of comment."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 10**9
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump(value, out)
    said = ("".join(c if c.isprintable() else " " for c in line) for line in comments)
    return "".join(f"# {line}\n" for line in said) + out.getvalue()


New = tuple[Path, str | bytes]
"""A file to be written: its path, and its text or (a Character Card) its bytes."""


def write_all(files: Sequence[New]) -> list[Path]:
    """Write files that are not there yet, all of them or none; ExchangeError or FileError names the first in the way.

    A text must be one that `yaml_files` can read again.
    """
    seen: set[Path] = set()
    for path, content in files:
        if isinstance(content, str) and len(content) > MAX_CHARS:
            raise ExchangeError(f"{path}: would have {len(content):,} characters (a card file has at most {MAX_CHARS:,}); shorten what the source keeps in lorebook and assets")
        if path.exists():
            raise ExchangeError(f"{path}: is there already; choose another place, or move it away")
        if path in seen:
            raise ExchangeError(f"{path}: two cards of the source would be this file; rename one of them there")
        seen.add(path)
    written: list[Path] = []
    try:
        for path, content in files:
            write_atomic(path, content)
            written.append(path)
    except FileError:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written


def card_yaml(card: Card) -> str:
    """A card as the text of its file."""
    return yaml_text(card.model_dump(exclude_defaults=True))


def write_imported(imported: Imported[Any], folder: Path) -> list[Path]:
    """Write a card as `personas/<id>.yaml` and so on, with its memories; a draft into `drafts/`, which is not loaded.

    A draft says in comments what it still needs: complete it, then move it up. Nothing is overwritten; if one file is
    in the way, none is written.
    """
    return write_all(imported_files(imported, folder))


def imported_files(imported: Imported[Any], folder: Path) -> list[New]:
    """The files that `write_imported` writes."""
    name = f"{FOLDERS[imported.kind]}/{imported.id}.yaml"
    if imported.card is None:
        return [(folder / "drafts" / name, yaml_text(dict(imported.fields), ("a draft; it still needs:", *imported.problems)))]
    files: list[New] = [(folder / name, card_yaml(imported.card))]
    for memory in imported.memories:
        known = (folder / "personas" / f"{memory.partner}.yaml").exists()
        place = folder / "memories" if known else folder / "drafts" / "memories"
        files.append((place / f"{memory.owner}-{memory.partner}.yaml", card_yaml(memory)))
    for memory in imported.strange:
        files.append((folder / "drafts" / "memories" / f"{memory.owner}-{memory.partner}.yaml", card_yaml(memory)))
    return files

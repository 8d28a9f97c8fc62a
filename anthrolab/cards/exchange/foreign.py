"""Outside data as JSON values: read with bounds, compared, laid over each other; and ids and names that are safe here."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import date, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from anthrolab.cards.exchange.outcome import ExchangeError, Notes
from anthrolab.files import canonical_json
from anthrolab.yaml_files import MAX_CHARS, read_yaml

MAX_JSON_BYTES = 8 * 1024 * 1024
"""Bytes that the JSON of a card may have."""
MAX_MARKS = 200_000
"""Opening brackets, and commas, that it may have (in texts as well): how many values there are at most, before they
take twenty times the memory of their JSON."""
MAX_DEPTH = 80
"""Levels of lists and objects within each other; real cards have about eight."""
MAX_KEPT_CHARS = 900_000
"""Characters of JSON that a card may keep of another format: its YAML file has to be readable (`yaml_files.MAX_CHARS`), and
an export holds them twice. So too with `MAX_MARKS` (not half of them) and `MAX_DEPTH` (16 levels less)."""
ID_CHARS = 64
SAFE_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{ID_CHARS - 1}}}")
SURROGATE = re.compile("[\ud800-\udfff]")

Json = dict[str, JsonValue]


def read_bounded(path: Path, limit: int) -> bytes:
    """A whole file of at most `limit` bytes; ExchangeError if it is none, unreadable or larger."""
    try:
        if not path.is_file():
            raise ExchangeError(f"{path}: is no file; name a card file (.json or .png)")
        with path.open("rb") as f:
            data = f.read(limit + 1)
    except OSError as e:
        raise ExchangeError(f"{path}: cannot be read ({e.strerror}); check the path and its permissions") from e
    if len(data) > limit:
        raise ExchangeError(f"{path}: has more than {limit:,} bytes; a card is smaller, make its image or its texts smaller")
    return data


def marks(data: bytes) -> int:
    """How many values some JSON has at most: its opening brackets, or its commas."""
    return max(data.count(b"[") + data.count(b"{"), data.count(b","))


def parse_json(data: bytes, where: str, notes: Notes) -> Json:
    """The JSON object in some bytes; ExchangeError names what is wrong with it.

    Repaired, with a warning: a byte order mark, halves of characters, keys that stand twice (the last counts).
    """
    if len(data) > MAX_JSON_BYTES:
        raise ExchangeError(f"{where}: the card has more than {MAX_JSON_BYTES:,} bytes; shorten its texts or its lorebook")
    if marks(data) > MAX_MARKS:
        raise ExchangeError(f"{where}: the card has more than {MAX_MARKS:,} values; shorten its lorebook")
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
        notes.add("byte_order_mark", "card", "passed over the byte order mark before the JSON")
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=lambda pairs: _object(pairs, notes), parse_constant=_no_number, parse_float=_finite
        )
    except UnicodeDecodeError as e:
        raise ExchangeError(f"{where}: the card is not UTF-8 (byte {e.start}); export it anew from where it came") from e
    except RecursionError as e:
        raise ExchangeError(f"{where}: the card's JSON is nested too deep; a card is a few levels") from e
    except ValueError as e:
        raise ExchangeError(f"{where}: the card is not valid JSON ({e}); mend it there or export it anew") from e
    if not isinstance(value, dict):
        raise ExchangeError(f"{where}: holds JSON but no object; a card begins with {{")
    return as_json(value, where, notes)


def _object(pairs: list[tuple[str, Any]], notes: Notes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            notes.add("duplicate_key", SURROGATE.sub("�", key)[:60], "stands twice in one object; the last one counts")
        found[key] = value
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number


def read_mapping(path: Path, notes: Notes) -> Json:
    """A YAML file of fields as JSON values; ExchangeError (or YamlError) names the file and the fix."""
    value = read_bounded_yaml(path)
    if not isinstance(value, dict):
        raise ExchangeError(f"{path}: holds no fields; write one 'field: value' a line")
    return as_json(value, str(path), notes)


def read_bounded_yaml(path: Path) -> object:
    """The content of a YAML file, once its size is known to be that of a card."""
    read_bounded(path, 4 * MAX_CHARS)
    return read_yaml(path)


def as_json(value: Mapping[Any, Any], where: str, notes: Notes) -> Json:
    """Values from JSON or YAML as JSON values: dates and keys that are no text become text, with a warning."""
    plain = _plain(value, where, notes, 0)
    assert isinstance(plain, dict)
    return plain


def _plain(value: Any, where: str, notes: Notes, depth: int) -> JsonValue:
    if depth > MAX_DEPTH:
        raise ExchangeError(f"{where}: is nested more than {MAX_DEPTH} levels deep; a card is a few levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Mapping):
        made = {_key(k, where, notes): _plain(v, where, notes, depth + 1) for k, v in value.items()}
        if len(made) < len(value):
            raise ExchangeError(f"{where}: two keys of one object are '{_twice(value, where)[:60]}' as text, and one value would be lost; rename one")
        return made
    if isinstance(value, list):
        return [_plain(v, where, notes, depth + 1) for v in value]
    if isinstance(value, str):
        return _text(value, notes)
    if isinstance(value, float) and not isfinite(value):
        notes.add("not_json_value", where, f"{value} became a text")
        return str(value)
    if isinstance(value, int) and value.bit_length() > 10_000:
        raise ExchangeError(f"{where}: holds a number of more than 3,000 digits; remove it")
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (date, datetime)):
        return str(value)
    notes.add("not_json_value", where, f"a {type(value).__name__} became a text")
    return _text(str(value), notes)


def _key(key: Any, where: str, notes: Notes) -> str:
    if isinstance(key, str):
        return _text(key, notes)
    if isinstance(key, int) and key.bit_length() > 10_000:
        raise ExchangeError(f"{where}: holds a number of more than 3,000 digits; remove it")
    notes.add("not_json_value", str(key)[:60], "a key that is no text became one")
    return str(key)


def _twice(value: Mapping[Any, Any], where: str) -> str:
    """The first key that two keys of an object become."""
    counts = Counter(_key(k, where, Notes()) for k in value)
    return counts.most_common(1)[0][0]


def _text(text: str, notes: Notes) -> str:
    if text.isascii():
        return text
    mended = SURROGATE.sub("�", text)
    if mended != text:
        notes.add("broken_unicode", mended[:20], "halves of characters became �")
    return mended


def overlay(base: Mapping[str, JsonValue], kept: Mapping[str, JsonValue]) -> Json:
    """`base` with what `kept` holds laid over it: objects key by key, everything else as a whole."""
    merged = dict(base)
    for key, value in kept.items():
        under = merged.get(key)
        merged[key] = overlay(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


def beyond(found: Mapping[str, JsonValue], expected: Mapping[str, JsonValue]) -> Json:
    """What `found` holds that `expected` has not, or has otherwise; laid over `expected` it gives all of `found`."""
    rest: Json = {}
    for key, value in found.items():
        known = expected.get(key)
        if key in expected and isinstance(value, dict) and isinstance(known, dict):
            if inner := beyond(value, known):
                rest[key] = inner
        elif key not in expected or not _same(value, known):
            rest[key] = value
    return rest


def _same(value: JsonValue, other: JsonValue) -> bool:
    """True if both are the same JSON: 1, 1.0 and true are three values."""
    if type(value) is type(other) and isinstance(value, (str, int)):  # most are; a card may have 200,000 of them
        return value == other
    return canonical_json(value) == canonical_json(other)


def check_keepable(value: Json, where: str) -> None:
    """ExchangeError if these values are too many to be kept in a card's extensions and written back."""
    text = canonical_json(value)
    if len(text) > MAX_KEPT_CHARS:
        raise ExchangeError(f"{where}: holds more than {MAX_KEPT_CHARS:,} characters; shorten its lorebook, or take pictures out of its assets")
    if max(text.count("[") + text.count("{"), text.count(",")) > MAX_MARKS // 2 - 1000:
        raise ExchangeError(f"{where}: holds more than {MAX_MARKS // 2 - 1000:,} values; shorten its lorebook")
    if _depth(value) > MAX_DEPTH - 16:
        raise ExchangeError(f"{where}: is nested more than {MAX_DEPTH - 16} levels deep; a card is a few levels")


def _depth(value: JsonValue) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max((_depth(v) for v in inner if isinstance(v, (dict, list))), default=0)


def object_in(values: Mapping[str, JsonValue], name: str) -> Json:
    """The object under a name, as a copy; empty if there is none or something else."""
    found = values.get(name)
    return dict(found) if isinstance(found, dict) else {}


def safe_id(wanted: str, taken: Collection[str], notes: Notes, prefix: str) -> str:
    """`wanted` if it is an id and free, else one made of its letters and digits if it is ASCII, else c01, c02, ..."""
    used = {t.casefold() for t in taken}  # some file systems know no case
    if SAFE_ID.fullmatch(wanted) and wanted.casefold() not in used:
        return wanted
    made = re.sub(r"[^A-Za-z0-9]+", "-", wanted).strip("-")[:ID_CHARS].strip("-") if wanted.isascii() else ""
    if not made or made.casefold() in used:
        made = next(made for n in range(1, len(used) + 2) if (made := f"{prefix}{n:02d}") not in used)
    code = "id_taken" if SAFE_ID.fullmatch(wanted) else "id_made"
    notes.add(code, "id", f"'{wanted[:60]}' cannot be used as an id here; it is {made}")  # type: ignore[arg-type]
    return made


def safe_name(name: str, notes: Notes) -> str:
    """A name that can stand before a message: on one line, without what a transcript uses for other things."""
    mended = " ".join("".join(" " if (not c.isprintable() and c != "\u200d") or c in "<>:" else c for c in name).split())
    if mended != name:
        notes.add("name_mended", "name", f"'{name[:60]}' became '{mended[:60]}'")
    return mended

"""The texts of cards by field, and how the linter compares them."""

import unicodedata
from collections.abc import Iterable, Iterator

from pydantic import BaseModel


def fields(card: BaseModel, *, without: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Every text of a card as (field, text), e.g. ("speakers.a.knows.2", "..."), ids and `without` left out."""
    yield from _walk("", card.model_dump(mode="json", exclude={"id", "extensions", *without}))


def _walk(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _walk(f"{path}.{key}" if path else str(key), part)
    elif isinstance(value, list):
        for number, part in enumerate(value, 1):
            yield from _walk(f"{path}.{number}", part)
    elif isinstance(value, str):
        yield path, value


def core(text: str) -> str:
    """Letters and digits only, NFKC, case folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum())


def runs(texts: Iterable[str], n: int) -> set[str]:
    """All runs of n characters within one of the texts (`core` of each)."""
    return {plain[i : i + n] for plain in map(core, texts) for i in range(len(plain) - n + 1)}


def alike(left: set[str], right: set[str]) -> float:
    """Jaccard similarity, 0 to 1."""
    return len(left & right) / len(left | right) if left or right else 0.0

"""The card files of a folder as a list to filter, those that are broken too."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anthrolab.cards.authoring import open_card
from anthrolab.cards.yaml_edit import load
from anthrolab.errors import AnthrolabError
from anthrolab.files import read_text

ANY = "any"
AGES = (6, 110)


@dataclass(frozen=True)
class Listed:
    """A card file in the list: what it is called there and what the filters look at. age: None where it has none."""

    path: Path
    label: str
    text: str
    age: int | None
    status: str
    categories: frozenset[str]


def listed_cards(folder: Path, kind: str) -> list[Listed]:
    """All card files of a kind, those that are broken too, with ⚠ before their names."""
    categories = _categories(folder)
    found = []
    for path in sorted((folder / kind).glob("*.yaml")):
        try:
            draft = open_card(path)
        except AnthrolabError:
            found.append(Listed(path, f"⚠ {path.stem}: cannot be read", path.stem, None, "", frozenset()))
            continue
        card = load(draft.text)
        age, of, facts = card.get("age"), card.get("category"), card.get("hard_facts")
        parts = [card.get(name) for name in ("name", "title", "gender", "age", "category", "occupation", "relationship", "as_of")]
        label = f"{'⚠ ' if draft.problems() else ''}{path.stem}  {' · '.join(str(p) for p in parts if p and not isinstance(p, list))}"
        found.append(
            Listed(
                path, label, draft.text.lower(), age if isinstance(age, int) else None,
                str(facts.get("relationship_status", "")) if isinstance(facts, dict) else "",
                frozenset([of]) if isinstance(of, str) else frozenset(categories.get(path.stem, ())),
            )
        )  # fmt: skip
    return found


def chosen(cards: list[Listed], text: str = "", ages: tuple[int, int] = AGES, category: str = ANY, status: str = ANY) -> list[Listed]:
    """The cards that have every word of `text` somewhere in them, and age, category and status where they are asked for.

    A card without an age passes the full range only; a persona has the categories of the scenarios it plays in.
    """
    words = text.lower().split()
    return [
        c
        for c in cards
        if all(word in c.text for word in words)
        and (tuple(ages) == AGES or (c.age is not None and ages[0] <= c.age <= ages[1]))
        and (category == ANY or category in c.categories)
        and (status == ANY or status == c.status)
    ]


def _categories(folder: Path) -> Mapping[str, set[str]]:
    """The categories that each persona plays in, as far as bindings and scenarios can be read."""
    played: dict[str, set[str]] = {}
    try:
        bindings = open_card(folder / "bindings.yaml").value(("bindings",))
    except AnthrolabError:
        return played
    for binding in bindings if isinstance(bindings, list) else []:
        try:
            category = load(read_text(folder / "scenarios" / f"{binding['scenario']}.yaml"))["category"]
            for side in ("persona_a", "persona_b"):
                played.setdefault(binding[side], set()).add(category)
        except (AnthrolabError, KeyError, TypeError, ValueError):
            continue  # the list warns of the broken card itself
    return played

"""Which rules a message could break, from its single characters and pairs of characters, in about a microsecond.

Most messages of a chat break nothing; only those with a trigger of a rule are read by its patterns. A trigger is a
word without which the rule's patterns cannot match; longer words count by their first two characters, but for rules
whose triggers are plain names.
"""

import re
from collections.abc import Collection, Mapping
from operator import add


class Prefilter:
    """A table from trigger to rules; rules are bits of an integer, in the order of the mapping."""

    def __init__(self, triggers: Mapping[str, str], whole: Collection[str] = ()) -> None:
        """`triggers` maps the name of a rule to its words, separated by blanks; those of the rules in `whole` count only
        where they stand in full."""
        self.bits = {name: 1 << i for i, name in enumerate(triggers)}
        self._short: dict[str, int] = {}
        self._long: dict[str, list[tuple[str, int]]] = {}
        for name, words in triggers.items():
            for word in words.lower().split():
                if len(word) > 2 and name in whole:
                    self._long.setdefault(word[:2], []).append((word, self.bits[name]))
                    self._short.setdefault(word[:2], 0)
                else:
                    self._short[word[:2]] = self._short.get(word[:2], 0) | self.bits[name]
        characters = "".join(key for key in self._short if len(key) == 1)
        self._pairs = frozenset(key for key in self._short if len(key) == 2)
        # A class of characters finds them several times faster than a set does.
        self._characters = re.compile(f"[{re.escape(characters)}]" if characters else "(?!)")

    def rules(self, text: str) -> int:
        """The bits of all rules with a trigger in `text`; 0 for most messages."""
        lower = text.lower()
        mask = 0
        # Sets meet in C; only what they share is looked at one by one.
        for pair in self._pairs.intersection(map(add, lower, lower[1:])):
            mask |= self._short[pair]
            for word, bit in self._long.get(pair, ()):
                if word in lower:
                    mask |= bit
        for character in self._characters.findall(lower):
            mask |= self._short[character]
        return mask

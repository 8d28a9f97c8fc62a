"""Which rules a message could break, from its single characters and pairs of characters, in about a microsecond.

Most messages of a chat break nothing; only those with a trigger of a rule are read by its patterns. A trigger is a
word without which the rule's patterns cannot match; longer words count by their first two characters.
"""

from collections.abc import Mapping
from operator import add


class Prefilter:
    """A table from trigger to rules; rules are bits of an integer, in the order of the mapping."""

    def __init__(self, triggers: Mapping[str, str]) -> None:
        """`triggers` maps the name of a rule to its words, separated by blanks."""
        self.bits = {name: 1 << i for i, name in enumerate(triggers)}
        self._characters: dict[str, int] = {}
        self._pairs: dict[str, int] = {}
        for name, words in triggers.items():
            for word in words.lower().split():
                table, key = (self._characters, word) if len(word) == 1 else (self._pairs, word[:2])
                table[key] = table.get(key, 0) | self.bits[name]

    def rules(self, text: str) -> int:
        """The bits of all rules with a trigger in `text`; 0 for most messages."""
        lower = text.lower()
        mask = 0
        pair = self._pairs.get
        for two in map(add, lower, lower[1:]):
            mask |= pair(two, 0)
        if not self._characters.keys().isdisjoint(lower):
            for one in lower:
                mask |= self._characters.get(one, 0)
        return mask

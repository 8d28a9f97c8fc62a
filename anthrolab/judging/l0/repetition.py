"""L0-05: an exact copy of an own earlier message or of the partner's message directly before."""

from anthrolab.runtime.text import normalise

EXEMPT_CHARACTERS = 3
"""What people really repeat (嗯嗯, 哈哈哈): normalised texts of at most this many characters never count."""


class Repetition:
    """Reads one dialogue message by message, the opener included."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, int]] = {"a": {}, "b": {}}
        self._last: tuple[str, str] = ("", "")

    def add(self, index: int, speaker: str, text: str) -> str | None:
        """Take in the next message; say of what it is a copy, or None."""
        if len(text) <= EXEMPT_CHARACTERS and text.isascii():
            self._last = (speaker, "")
            return None
        same = normalise(text)
        said_by, before = self._last
        self._last = (speaker, same)
        if len(same) <= EXEMPT_CHARACTERS:
            return None
        own = self._seen[speaker]
        earlier = own.setdefault(same, index)
        if earlier != index:
            return f"{text} (copy of the own message {earlier})"
        if said_by != speaker and same == before:
            return f"{text} (copy of the partner's message directly before)"
        return None

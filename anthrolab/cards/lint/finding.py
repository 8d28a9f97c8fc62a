"""What the linter says."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing to mend: the card's id, the field, and what is wrong with the way out."""

    card: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.card}: {self.field}: {self.message}"

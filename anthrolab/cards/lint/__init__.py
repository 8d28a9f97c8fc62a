"""The card linter: what is wrong with cards that are valid one by one.

`lint` reads a whole library. What a gate could not test is a matter of the gate: see `judging/testable.py`.
"""

from anthrolab.cards.library import Library
from anthrolab.cards.lint import agreement, copies, secrets
from anthrolab.cards.lint.finding import Finding

__all__ = ["Finding", "lint"]


def lint(library: Library) -> list[Finding]:
    """All findings, by card and field."""
    found = [*copies.find(library), *secrets.find(library), *agreement.find(library)]
    return sorted(found, key=lambda f: (f.card, f.field, f.message))

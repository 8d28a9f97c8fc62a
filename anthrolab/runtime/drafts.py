"""What became of an unsent draft: kept, revised, replaced or withdrawn when a message came in before it was due.

The paper asks a model to keep, revise or replace it (section 4.3) and leaves open how the three are told apart;
here the texts decide, compared as the scheduler compares them (`text.normalise`).
"""

from difflib import SequenceMatcher
from typing import Literal

from anthrolab.runtime.text import normalise

Action = Literal["new", "keep", "revise", "replace", "withdraw", "silent"]
"""`new`, `silent`: decided without an unsent draft; the other four: with one."""

Interruption = Literal["waiting", "typing"]
"""Whether the partner's message came while the draft merely waited for its time, or while it was being typed."""

REVISED = 0.5
"""From this similarity on (difflib's ratio of the normalised texts, 0 to 1) a new text is the old one revised."""


COMPARED = 400
"""Characters that are compared; the comparison takes quadratic time."""


def action_of(previous: str | None, content: str, silent: bool) -> Action:
    """What a decision makes of the speaker's unsent draft (`previous`: its text, None if there was none).

    A draft that is kept may get another time.

    >>> action_of("周末去不去打球", "周末还去不去打球啊", False)
    'revise'
    """
    if previous is None:
        return "silent" if silent else "new"
    if silent:
        return "withdraw"
    before, after = normalise(previous) or previous, normalise(content) or content
    if before == after:
        return "keep"
    before, after = before[:COMPARED], after[:COMPARED]
    if SequenceMatcher(None, before, after, autojunk=False).ratio() >= REVISED:
        return "revise"
    return "replace"

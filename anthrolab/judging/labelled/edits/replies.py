"""Edits of replies: contracts broken, by whom, and read all the same."""

import random

from anthrolab.judging.labelled.items import Broken
from anthrolab.judging.labelled.making import Case, Edit
from anthrolab.runtime.dialogue import other

_ERRORS = (
    "role is missing", "role is '客服', not '{own}'", "response is missing or no object", "response.content is missing",
    "response.end is 'false', not true or false", "response.timestamp is '马上', not YYYY-MM-DDTHH:MM:SS",
    "response.timestamp is missing", "no JSON object in the reply", "the JSON breaks off", "the reply is empty",
)  # fmt: skip
_LABELS = ("a code fence around the JSON", "end is true, so its text is not sent", "text before the JSON", "timestamp clipped")


def broken_reply(case: Case, rng: random.Random) -> Edit | None:
    """A reply of the evaluated person breaks the contract; the messages stay."""
    after = _silent_ask(case, rng)
    if after is None:
        return None
    error = rng.choice(_ERRORS).format(own=case.own.name)
    return Edit("broken_reply", [Broken(after=after, speaker=case.role, error=error)], after)


def partner_broken_reply(case: Case, rng: random.Random) -> Edit | None:
    """A reply of the partner breaks the contract: not the evaluated person's fault."""
    mirrored = Case(case.dialogue.model_copy(update={"evaluated_role": other(case.role)}), case.partner, case.own, case.scenario)
    after = _silent_ask(mirrored, rng)
    if after is None:
        return None
    error = rng.choice(_ERRORS).format(own=case.partner.name)
    return Edit("partner_broken_reply", [Broken(after=after, speaker=mirrored.role, error=error)])


def recovered_reply(case: Case, rng: random.Random) -> Edit | None:
    """A bent reply was read all the same: a label, no error."""
    after = rng.randrange(len(case.dialogue.messages))
    return Edit("recovered_reply", [Broken(after=after, speaker=case.role, recovered=rng.choice(_LABELS))])


def _silent_ask(case: Case, rng: random.Random) -> int | None:
    """A message after which the evaluated person did not write the next one, so that an error takes nothing away."""
    messages = case.dialogue.messages
    free = [n for n in range(len(messages)) if n + 1 == len(messages) or messages[n + 1].speaker != case.role]
    return rng.choice(free) if free else None

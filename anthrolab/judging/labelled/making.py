"""Making a labelled set: banks of lines and computed edits, applied to gold dialogues by a seed.

The same seed, banks, cards and gold dialogues give the same items.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anthrolab.cards.library import Library
from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.judging.labelled.bank import Bank, Entry, Spoken, spoken
from anthrolab.judging.labelled.items import AnyOp, Fails, Insert, Labelled, LabelledError, Replace, applied
from anthrolab.runtime.dialogue import Dialogue, Speaker, other

RULED = ("L0-01", "L0-02", "L0-03", "L0-04", "L0-05", "L0-06", "L0-08")
"""The constraints that the gate decides by rules."""

READ_CPS, TYPE_CPS = 8, 3
"""Characters a second at which an inserted line's wait lets its speaker read and type."""

# What asks something, told apart without the judge's own lists: a set made by them would hold only what they can see.
_MAY_ASK = re.compile(r"[?？吗咩]|什么|怎么|哪|几|谁|啥|咋|多少|多久|多大|么[子斯样]|爪子|有甚|(\w{1,2})[不没]\1|有没有|(?:[呢没不吧么伐]|没[有得])(?:\W|$)")
_ASKS = re.compile(r"[?？]|[吗没不]\W*$")
_ASKS_YOU = re.compile(r"(?=.*[你您])(?!.*[我呢谁]).*(?:什么|怎么|哪|几[点号天]|啥|咋|多少|(\w{1,2})[不没]\1|有没有)")


@dataclass(frozen=True)
class Case:
    """A gold dialogue from one role's side, with its cards."""

    dialogue: Dialogue
    own: Persona
    partner: Persona
    scenario: Scenario

    @property
    def role(self) -> Speaker:
        """The evaluated side."""
        return self.dialogue.evaluated_role

    def own_positions(self) -> list[int]:
        """Positions of the evaluated turns."""
        return self.dialogue.turns()


@dataclass(frozen=True)
class Edit:
    """What an edit did: the ops, where the fault is (position in the edited dialogue; None for the whole dialogue)."""

    name: str
    ops: Sequence[AnyOp]
    fault: int | None = None
    also: tuple[str, ...] = ()


def said(case: Case, position: int) -> str:
    """The text of a message."""
    return case.dialogue.messages[position].content


def may_ask(text: str) -> bool:
    """A message that could be taken for a question."""
    return bool(_MAY_ASK.search(text))


def asks(text: str) -> bool:
    """A message that surely asks the partner something: by its end, or short, with a question word and a you."""
    return bool(_ASKS.search(text) or (len(text) <= 15 and _ASKS_YOU.match(text)))


def say(case: Case, after: int, text: str) -> Insert:
    """A message of the evaluated person after another, with time to type it."""
    after = min(after, len(case.dialogue.messages) - 1)
    return Insert(after=after, speaker=case.role, content=text, wait_s=5 + len(text) // 3)


Computed = Callable[[Case, random.Random], Edit | None]
"""A named edit that needs no bank; None where it does not fit the dialogue."""


def cases_of(gold: Mapping[str, Dialogue], library: Library) -> list[Case]:
    """Both roles of every gold dialogue."""
    found = []
    for key, dialogue in gold.items():
        binding = library.bindings[key]
        people: dict[Speaker, Persona] = {
            "a": library.personas[binding.persona_a], "b": library.personas[binding.persona_b],
        }  # fmt: skip
        roles: tuple[Speaker, ...] = ("a", "b")
        for role in roles:
            as_role = dialogue.model_copy(update={"evaluated_role": role})
            found.append(Case(as_role, people[role], people[other(role)], library.scenarios[binding.scenario]))
    return found


def make_from_bank(bank: Bank, cases: Sequence[Case], seed: int, *, fails: int, holds: int, turn_scope: bool) -> list[Labelled]:
    """`fails` positives and `holds` look-alike negatives of one id, each entry used as evenly as it goes.

    LabelledError if an entry fits no dialogue.
    """
    items = []
    for kind, entries, count in (("p", bank.fails, fails), ("n", bank.holds, holds)):
        order = list(range(len(entries)))
        random.Random(f"{seed}/{bank.id}/{kind}").shuffle(order)
        for number in range(count if entries else 0):
            entry = entries[order[number % len(order)]]
            rng = random.Random(f"{seed}/{bank.id}/{kind}/{number}")
            case = _fitting(entry, cases, rng, bank.id)
            edit = _with_lines(entry, case, rng)
            items.append(_item(f"{bank.id}-{kind}{number + 1:03d}-s{seed}", bank, case, edit, seed, kind == "p", turn_scope))
    return items


def make_computed(
    target: str, edits: Iterable[Computed], cases: Sequence[Case], seed: int, *, count: int, positive: bool, turn_scope: bool,
    siblings: Sequence[str] = (),
) -> list[Labelled]:  # fmt: skip
    """`count` items of one id from computed edits, taken in turn; LabelledError if one of them fits no dialogue."""
    bank = Bank(id=target, siblings=list(siblings), fails=[Entry(lines=["-"])])
    kind = "p" if positive else "n"
    items: list[Labelled] = []
    chosen = list(edits)
    for number in range(count):
        rng = random.Random(f"{seed}/{target}/computed/{kind}/{number}")
        made = chosen[number % len(chosen)]
        tried = rng.sample(list(cases), len(cases))
        found = next(((case, edit) for case in tried if (edit := made(case, rng)) is not None), None)
        if found is None:
            raise LabelledError(f"{target}: no gold dialogue is fit for the edit {getattr(made, '__name__', made)}")
        items.append(_item(f"{target}-c{kind}{number + 1:03d}-s{seed}", bank, *found, seed, positive, turn_scope))
    return items


def _fitting(entry: Entry, cases: Sequence[Case], rng: random.Random, bank_id: str) -> Case:
    fit = [c for c in cases if entry.when.fits(c.dialogue, c.own, c.partner, c.scenario) and _has_room(entry, c)]
    if not fit:
        raise LabelledError(f"bank {bank_id}: {entry.lines[0]!r:.40} fits no gold dialogue; loosen its 'when'")
    return rng.choice(fit)


def _has_room(entry: Entry, case: Case) -> bool:
    if entry.how == "spread":
        return len(case.dialogue.messages) >= 8
    if entry.how == "questions":
        return any(asks(said(case, i)) for i in case.own_positions())
    return True


def _with_lines(entry: Entry, case: Case, rng: random.Random) -> Edit:
    lines = spoken(entry, case.own, case.partner, rng)
    if entry.how == "insert":
        return _insert(entry, lines, case, rng)
    if entry.how == "spread":
        return _spread(entry, lines, case, rng)
    positions = case.own_positions()
    if entry.how == "questions":
        positions = [i for i in positions if may_ask(said(case, i))]
    ops: list[AnyOp] = [Replace(at=at, content=lines[n % len(lines)].content) for n, at in enumerate(positions)]
    return Edit(entry.how, ops, None, tuple(entry.also))


def _insert(entry: Entry, lines: Sequence[Spoken], case: Case, rng: random.Random) -> Edit:
    after = rng.choice(_places(case, lines, 1, len(case.dialogue.messages) - 1))
    ops = list(_inserts(lines, after, case.role))
    at = entry.fails_at or max(n for n, line in enumerate(lines, 1) if line.own)
    return Edit("insert", ops, after + at, tuple(entry.also))


def _spread(entry: Entry, lines: Sequence[Spoken], case: Case, rng: random.Random) -> Edit:
    """The lines up to the first own one early, the rest late."""
    cut = next(n for n, line in enumerate(lines, 1) if line.own)
    count = len(case.dialogue.messages)
    early = rng.choice(_places(case, lines[:cut], 1, max(2, count // 3)))
    late = rng.choice(_places(case, lines[cut:], max(early + 3, 2 * count // 3), count - 1)) + cut
    at = entry.fails_at or max(n for n, line in enumerate(lines, 1) if line.own)
    fault = early + at if at <= cut else late + at - cut
    ops: list[AnyOp] = [*_inserts(lines[:cut], early, case.role), *_inserts(lines[cut:], late, case.role)]
    return Edit("spread", ops, fault, tuple(entry.also))


def _places(case: Case, lines: Sequence[Spoken], first: int, last: int) -> list[int]:
    """Messages after which the lines can stand without making four of one speaker in a row; all, if there is none."""
    who = [m.speaker for m in case.dialogue.messages]
    new = [case.role if line.own else other(case.role) for line in lines]
    good = [k for k in range(first, last + 1) if _longest_row(who[: k + 1][-3:] + new + who[k + 1 : k + 4]) <= 3]
    return good or list(range(first, last + 1))


def _longest_row(who: Sequence[Speaker]) -> int:
    best = row = 0
    for n, speaker in enumerate(who):
        row = row + 1 if n and who[n - 1] == speaker else 1
        best = max(best, row)
    return best


def _inserts(lines: Sequence[Spoken], after: int, role: Speaker) -> Iterator[Insert]:
    read = 0
    for n, line in enumerate(lines):
        wait = line.wait_s if line.wait_s is not None else 4 + read // READ_CPS + len(line.content) // TYPE_CPS
        yield Insert(after=after + n, speaker=role if line.own else other(role), content=line.content, wait_s=wait)
        read = len(line.content)


def _item(item_id: str, bank: Bank, case: Case, edit: Edit, seed: int, positive: bool, turn_scope: bool) -> Labelled:
    claimed = [*RULED, *bank.siblings] if positive else [*RULED, *bank.siblings, bank.id]
    spared = {*edit.also, *bank.also, *([bank.id] if positive else [])}
    holds = [i for i in dict.fromkeys(claimed) if i not in spared]
    fails = []
    if positive:
        message = edit.fault if bank.id.startswith("L0") else None
        fails = [Fails(id=bank.id, turn=_turn(case, edit) if turn_scope else None, message=message)]
    return Labelled(
        id=item_id, gold=case.dialogue.binding or "", role=case.role, edit=edit.name, seed=seed, ops=list(edit.ops), fails=fails, holds=holds
    )


def _turn(case: Case, edit: Edit) -> int:
    """The evaluated turn (from 1) that the fault is at, in the edited dialogue."""
    if edit.fault is None:
        raise LabelledError(f"{edit.name}: a turn checkbox needs the message that fails it")
    draft = Labelled(id="draft", gold=case.dialogue.binding or "", role=case.role, edit=edit.name, seed=0, ops=list(edit.ops))
    return applied(draft, {draft.gold: case.dialogue}).turns().index(edit.fault) + 1

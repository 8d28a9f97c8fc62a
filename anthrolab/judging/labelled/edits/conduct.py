"""Edits of who speaks, of whom, and how long the chat goes on."""

import random

from anthrolab.judging.labelled.edits.copies import TWINS
from anthrolab.judging.labelled.items import AnyOp, Drop, Insert, Replace
from anthrolab.judging.labelled.making import Case, Edit, said, say
from anthrolab.runtime.text import normalise


def name_swapped(case: Case, rng: random.Random) -> Edit | None:
    """The partner is called by the speaker's own name."""
    own = case.own.name[-2:] if len(case.own.name) > 2 else case.own.name
    text = rng.choice((f"{own} 你先听我讲", f"{own}，你到时候记得带伞", f"{own}！你吃饭没有", f"{own} 你那边现在几度"))
    after = rng.randrange(2, len(case.dialogue.messages))
    return Edit("name_swapped", [say(case, after, text)], after + 1)


def answers_itself(case: Case, rng: random.Random) -> Edit | None:
    """A question to the partner, answered by the speaker as if the partner had asked."""
    asked, reply = rng.choice((
        ("你那天去了没有？", "是的 我去了"), ("你们单位放几天假？", "好的谢谢 放三天"), ("你腿还疼不疼？", "没事 我不疼了"),
        ("你几点下班？", "收到 我六点下"), ("你吃过了吗？", "是的呀 我吃过了"), ("那你同意不同意？", "好的 我同意"),
    ))  # fmt: skip
    after = rng.randrange(2, len(case.dialogue.messages))
    ops: list[AnyOp] = [say(case, after, asked), Insert(after=after + 1, speaker=case.role, content=reply, wait_s=8)]
    return Edit("answers_itself", ops, after + 2)


def partner_called_by_name(case: Case, rng: random.Random) -> Edit | None:
    """The partner is called by the partner's name."""
    given = case.partner.name[-2:] if len(case.partner.name) > 2 else case.partner.name
    after = rng.randrange(2, len(case.dialogue.messages))
    return Edit("partner_called_by_name", [say(case, after, rng.choice((f"{given} 你先听我讲", f"{given}！", f"{given}，慢慢说")))])


def catchphrase_in_each(case: Case, rng: random.Random) -> Edit | None:
    """One catchphrase in four own messages running."""
    phrases = [c for c in case.own.expression_habits.catchphrases if len(c) >= 2]
    positions = case.own_positions()
    if not phrases or len(positions) < 4:
        return None
    phrase, first = rng.choice(phrases), rng.randrange(len(positions) - 3)
    run = positions[first : first + 4]
    ops: list[AnyOp] = [
        Replace(at=i, content=text if phrase in (text := said(case, i)) else f"{phrase} {text}") for i in run
    ]
    return Edit("catchphrase_in_each", ops, run[-1], ("L0-05",))


def cut_short(case: Case, rng: random.Random) -> Edit | None:
    """Only the first few messages: the chat is over before it went anywhere."""
    return _keep(case, rng.choice((4, 5, 6)), "cut_short")


def circle(case: Case, rng: random.Random) -> Edit | None:
    """The second half says what the first half said, in nearly the same words."""
    positions = case.own_positions()
    sources = [t for i in positions if len(normalise(t := said(case, i))) >= 8]
    targets = positions[len(positions) // 2 :]
    if len(sources) < 2 or len(targets) < 4:
        return None
    ops: list[AnyOp] = [
        Replace(at=at, content=sources[n % 2].rstrip("。！!？?～ ") + TWINS[n % len(TWINS)]) for n, at in enumerate(targets)
    ]
    return Edit("circle", ops, None, ("L0-05",))


def one_word_left(case: Case, rng: random.Random) -> Edit | None:
    """The evaluated person says one thing and nothing else; the partner talks on."""
    positions = case.own_positions()
    if len(case.dialogue.messages) - len(positions) < 7:
        return None
    kept = rng.choice(positions[:2])
    return Edit("one_word_left", [Drop(at=i) for i in reversed(positions) if i != kept])


def partner_gone(case: Case, rng: random.Random) -> Edit | None:
    """The partner's messages are gone but for one at most; the evaluated person talks alone."""
    theirs = [i for i, m in enumerate(case.dialogue.messages) if m.speaker != case.role and not m.opener]
    if len(case.own_positions()) < 10:
        return None
    return Edit("partner_gone", [Drop(at=i) for i in reversed(theirs)])


def _keep(case: Case, count: int, name: str) -> Edit | None:
    messages = case.dialogue.messages
    if len(messages) <= count + 4 or not any(m.speaker == case.role for m in messages[1:count]):
        return None
    return Edit(name, [Drop(at=i) for i in range(len(messages) - 1, count - 1, -1)])

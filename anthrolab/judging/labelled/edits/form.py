"""Edits of when messages come and how they are cut up."""

import random

from anthrolab.judging.labelled.items import AnyOp, Insert, Replace, Retime
from anthrolab.judging.labelled.making import Case, Edit, said


def _characters(text: str) -> int:
    return len("".join(text.split()))


def typed_too_fast(case: Case, rng: random.Random) -> Edit | None:
    """A long message one second after the one before it."""
    long = [i for i in case.own_positions() if _characters(said(case, i)) >= 16]
    if not long:
        return None
    at = rng.choice(long)
    return Edit("typed_too_fast", [Retime(at=at, gap_s=rng.choice((0, 1)))], at)


def sent_before_the_one_above(case: Case, rng: random.Random) -> Edit | None:
    """A message that carries an earlier time than the one above it."""
    late = [i for i in case.own_positions() if i >= 3]
    if not late:
        return None
    at = rng.choice(late)
    return Edit("sent_before_the_one_above", [Retime(at=at, gap_s=-rng.randint(20, 90))], at)


def short_and_quick(case: Case, rng: random.Random) -> Edit | None:
    """A word or two within two seconds, as people answer."""
    spots = [k for k, m in enumerate(case.dialogue.messages[:-1]) if m.speaker != case.role]
    if not spots:
        return None
    after = rng.choice(spots)
    return Edit("short_and_quick", [Insert(after=after, speaker=case.role, content=rng.choice(("啊？", "对", "嗯", "哦哦", "咋")), wait_s=2)])


def several_in_one(case: Case, rng: random.Random) -> Edit | None:
    """Five messages' worth of own sentences in one message."""
    texts = [said(case, i).rstrip("。！!？?～ ") for i in case.own_positions()]
    at = rng.choice(case.own_positions())
    picked = sorted(texts, key=len, reverse=True)[:7]
    rng.shuffle(picked)
    text = "。".join(picked) + "。"
    if _characters(text) <= 70:
        return None
    return Edit("several_in_one", [Replace(at=at, content=text)], at, ("L0-05",))


def chopped(case: Case, rng: random.Random) -> Edit | None:
    """One thought in seven messages within seconds."""
    long = [i for i in case.own_positions() if 12 <= _characters(said(case, i)) <= 60]
    if not long:
        return None
    at = rng.choice(long)
    text = "".join(said(case, at).split())
    size = -(-len(text) // 7)
    parts = [text[i : i + size] for i in range(0, len(text), size)]
    if len(parts) < 6:
        return None
    ops: list[AnyOp] = [Replace(at=at, content=parts[0])]
    ops += [Insert(after=at + n, speaker=case.role, content=part, wait_s=3) for n, part in enumerate(parts[1:])]
    return Edit("chopped", ops, at + len(parts) - 1, ("L0-05",))


def three_in_a_row(case: Case, rng: random.Random) -> Edit | None:
    """Three short messages in a row, as people send them."""
    messages = case.dialogue.messages
    spots = [
        k for k in range(1, len(messages))
        if all(m.speaker != case.role for m in (messages[k - 1], *messages[k : k + 2]))
    ]  # fmt: skip
    if not spots:
        return None
    after = rng.choice(spots)
    parts = rng.choice((("等等", "我看一眼", "还真是"), ("不对", "我想想啊", "应该是礼拜四"), ("你莫急", "听我讲完", "还有一桩"), ("啊", "忘了", "锅上还炖着")))
    return Edit("three_in_a_row", [Insert(after=after + n, speaker=case.role, content=p, wait_s=5) for n, p in enumerate(parts)])

"""Edits that are computed from a dialogue and its cards: broken contracts, copies, times, typing habits, length, names.

Each is a function of a case and a random generator that returns an `Edit`, or None where the dialogue is not fit for it.
The first words of each docstring say what the edit does; its name stands in the item.
"""

import random
from collections.abc import Mapping, Sequence

from anthrolab.judging.calibration.labelled import AnyOp, Broken, Drop, Insert, Replace, Retime
from anthrolab.judging.calibration.making import Case, Computed, Edit
from anthrolab.judging.rules.signals import is_real_question, letters
from anthrolab.runtime.dialogue import other
from anthrolab.runtime.text import is_farewell, normalise

_ERRORS = (
    "role is missing", "role is '客服', not '{own}'", "response is missing or no object", "response.content is missing",
    "response.end is 'false', not true or false", "response.timestamp is '马上', not YYYY-MM-DDTHH:MM:SS",
    "response.timestamp is missing", "no JSON object in the reply", "the JSON breaks off", "the reply is empty",
)  # fmt: skip
_LABELS = ("a code fence around the JSON", "end is true, so its text is not sent", "text before the JSON", "timestamp clipped")
_TWINS = ("[捂脸]", "哈", "啊", "～", "呢", "！")


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


def own_message_again(case: Case, rng: random.Random) -> Edit | None:
    """An own message once more, word for word, punctuation aside."""
    early = [i for i in case.own_positions() if len(normalise(_text(case, i))) > 5 and not is_farewell(_text(case, i))]
    late = [k for k in range(1, len(case.dialogue.messages)) if early and k > early[0] + 1]
    if not late:
        return None
    after = rng.choice(late)
    copied = _text(case, rng.choice([i for i in early if i < after]))
    text = copied.rstrip("。！!？?～~ ") + rng.choice(("", "", "！", "。", "~"))
    return Edit("own_message_again", [_say(case, after, text)], after + 1)


def partners_last_message(case: Case, rng: random.Random) -> Edit | None:
    """The partner's last message, word for word, as the answer to it."""
    spots = [k for k, m in enumerate(case.dialogue.messages) if m.speaker != case.role and len(normalise(m.content)) > 5]
    if not spots:
        return None
    after = rng.choice(spots)
    return Edit("partners_last_message", [_say(case, after, _text(case, after))], after + 1)


def short_word_again(case: Case, rng: random.Random) -> Edit | None:
    """A word of at most three characters again and again, as people do."""
    word = rng.choice(("嗯嗯", "哈哈哈", "好", "行", "对啊", "是吧", "可以", "晓得"))
    first, last = _two_spots(case, rng)
    return Edit("short_word_again", [_say(case, first, word), _say(case, last + 1, word)])


def echo_with_change(case: Case, rng: random.Random) -> Edit | None:
    """Some words of the partner's last message taken up as a question, not the whole of it."""
    spots = [k for k, m in enumerate(case.dialogue.messages) if m.speaker != case.role and len(normalise(m.content)) > 7]
    if not spots:
        return None
    after = rng.choice(spots)
    words = _text(case, after).strip()
    return Edit("echo_with_change", [_say(case, after, words[: max(3, len(words) // 2)].rstrip("，, ") + "？")])


def own_words_grown(case: Case, rng: random.Random) -> Edit | None:
    """An own earlier message taken up again with something new behind it."""
    early = [i for i in case.own_positions() if 4 < len(normalise(_text(case, i))) < 16]
    late = [k for k in range(1, len(case.dialogue.messages)) if early and k > early[0] + 3]
    if not late:
        return None
    after = rng.choice(late)
    words = _text(case, rng.choice([i for i in early if i < after])).rstrip("。！!？?")
    more = rng.choice((" 我刚才是这么说的 这会儿又不敢定了", "，我不是随口一说啊", " 这话你先莫跟别人讲", "，你记得我讲过没"))
    return Edit("own_words_grown", [_say(case, after, words + more)])


def near_copy(case: Case, rng: random.Random) -> Edit | None:
    """An own earlier message with a particle or an emoji more: nothing new is said."""
    early = [i for i in case.own_positions() if len(normalise(_text(case, i))) >= 10]
    late = [k for k in range(1, len(case.dialogue.messages)) if early and k > early[0] + 2]
    if not late:
        return None
    after = rng.choice(late)
    text = _text(case, rng.choice([i for i in early if i < after])).rstrip("。！!？?～ ") + rng.choice(_TWINS)
    return Edit("near_copy", [_say(case, after, text)], after + 1, ("L0-05",))


def question_again(case: Case, rng: random.Random) -> Edit | None:
    """A question once more, after the partner has answered it."""
    messages = case.dialogue.messages
    asked = [i for i in case.own_positions() if is_real_question(_text(case, i)) and len(normalise(_text(case, i))) >= 6]
    spots = [(i, k) for i in asked for k in range(i + 3, len(messages)) if any(m.speaker != case.role for m in messages[i + 1 : k])]
    if not spots:
        return None
    question, after = rng.choice(spots)
    text = _text(case, question).rstrip("？?。 ") + rng.choice(("？", "啊", "呀？", "？？"))
    return Edit("question_again", [_say(case, after, text)], after + 1, ("L0-05",))


def typed_too_fast(case: Case, rng: random.Random) -> Edit | None:
    """A long message one second after the one before it."""
    long = [i for i in case.own_positions() if letters(_text(case, i)) >= 16]
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
    texts = [_text(case, i).rstrip("。！!？?～ ") for i in case.own_positions()]
    at = rng.choice(case.own_positions())
    picked = sorted(texts, key=len, reverse=True)[:7]
    rng.shuffle(picked)
    text = "。".join(picked) + "。"
    if letters(text) <= 70:
        return None
    return Edit("several_in_one", [Replace(at=at, content=text)], at, ("L0-05",))


def chopped(case: Case, rng: random.Random) -> Edit | None:
    """One thought in seven messages within seconds."""
    long = [i for i in case.own_positions() if 12 <= letters(_text(case, i)) <= 60]
    if not long:
        return None
    at = rng.choice(long)
    text = "".join(_text(case, at).split())
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
    spots = [k for k in range(1, len(messages)) if messages[k].speaker != case.role and messages[k - 1].speaker != case.role]
    if not spots:
        return None
    after = rng.choice(spots)
    parts = rng.choice((("等等", "我看一眼", "还真是"), ("不对", "我想想啊", "应该是礼拜四"), ("你莫急", "听我讲完", "还有一桩"), ("啊", "忘了", "锅上还炖着")))
    return Edit("three_in_a_row", [Insert(after=after + n, speaker=case.role, content=p, wait_s=5) for n, p in enumerate(parts)])


def name_swapped(case: Case, rng: random.Random) -> Edit | None:
    """The partner is called by the speaker's own name."""
    own = case.own.name[-2:] if len(case.own.name) > 2 else case.own.name
    text = rng.choice((f"{own} 你先听我讲", f"{own}，你到时候记得带伞", f"{own}！你吃饭没有", f"{own} 你那边现在几度"))
    after = rng.randrange(2, len(case.dialogue.messages))
    return Edit("name_swapped", [_say(case, after, text)], after + 1)


def answers_itself(case: Case, rng: random.Random) -> Edit | None:
    """A question to the partner, answered by the speaker as if the partner had asked."""
    asked, reply = rng.choice((
        ("你那天去了没有？", "是的 我去了"), ("你们单位放几天假？", "好的谢谢 放三天"), ("你腿还疼不疼？", "没事 我不疼了"),
        ("你几点下班？", "收到 我六点下"), ("你吃过了吗？", "是的呀 我吃过了"), ("那你同意不同意？", "好的 我同意"),
    ))  # fmt: skip
    after = rng.randrange(2, len(case.dialogue.messages))
    ops: list[AnyOp] = [_say(case, after, asked), Insert(after=after + 1, speaker=case.role, content=reply, wait_s=8)]
    return Edit("answers_itself", ops, after + 2)


def partner_called_by_name(case: Case, rng: random.Random) -> Edit | None:
    """The partner is called by the partner's name."""
    given = case.partner.name[-2:] if len(case.partner.name) > 2 else case.partner.name
    after = rng.randrange(2, len(case.dialogue.messages))
    return Edit("partner_called_by_name", [_say(case, after, rng.choice((f"{given} 你先听我讲", f"{given}！", f"{given}，慢慢说")))])


def catchphrase_in_each(case: Case, rng: random.Random) -> Edit | None:
    """One catchphrase in four own messages running."""
    phrases = [c for c in case.own.expression_habits.catchphrases if len(c) >= 2]
    positions = case.own_positions()
    if not phrases or len(positions) < 4:
        return None
    phrase, first = rng.choice(phrases), rng.randrange(len(positions) - 3)
    run = positions[first : first + 4]
    ops: list[AnyOp] = [
        Replace(at=i, content=text if phrase in (text := _text(case, i)) else f"{phrase} {text}") for i in run
    ]
    return Edit("catchphrase_in_each", ops, run[-1], ("L0-05",))


def cut_short(case: Case, rng: random.Random) -> Edit | None:
    """Only the first few messages: the chat is over before it went anywhere."""
    return _keep(case, rng.choice((4, 5, 6)), "cut_short")


def circle(case: Case, rng: random.Random) -> Edit | None:
    """The second half says what the first half said, in nearly the same words."""
    positions = case.own_positions()
    sources = [t for i in positions if len(normalise(t := _text(case, i))) >= 8]
    targets = positions[len(positions) // 2 :]
    if len(sources) < 2 or len(targets) < 4:
        return None
    ops: list[AnyOp] = [
        Replace(at=at, content=sources[n % 2].rstrip("。！!？?～ ") + _TWINS[n % len(_TWINS)]) for n, at in enumerate(targets)
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


def _text(case: Case, position: int) -> str:
    return case.dialogue.messages[position].content


def _say(case: Case, after: int, text: str) -> Insert:
    after = min(after, len(case.dialogue.messages) - 1)
    return Insert(after=after, speaker=case.role, content=text, wait_s=5 + len(text) // 3)


def _two_spots(case: Case, rng: random.Random) -> tuple[int, int]:
    count = len(case.dialogue.messages)
    first = rng.randrange(1, count // 2)
    return first, rng.randrange(first + 2, count)


COMPUTED_FAILS: Mapping[str, Sequence[Computed]] = {
    "L0-04": (broken_reply,),
    "L0-05": (own_message_again, partners_last_message),
    "D2.3": (near_copy,),
    "D3.3": (catchphrase_in_each,),
    "D5.1": (several_in_one, chopped),
    "D5.3": (typed_too_fast, sent_before_the_one_above),
    "E1.1": (question_again,),
    "E1.3": (name_swapped, answers_itself),
    "E5.2": (one_word_left, partner_gone),
    "E5.4": (cut_short, circle),
}
"""Edits after which an id must fail."""

COMPUTED_HOLDS: Mapping[str, Sequence[Computed]] = {
    "L0-04": (partner_broken_reply, recovered_reply),
    "L0-05": (short_word_again, echo_with_change, own_words_grown),
    "D5.1": (three_in_a_row,),
    "D5.3": (short_and_quick,),
    "E1.3": (partner_called_by_name,),
}
"""Edits that only look as if it failed."""

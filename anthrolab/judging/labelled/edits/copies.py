"""Edits that say something again: word for word, nearly, or only some of it."""

import random

from anthrolab.judging.labelled.making import Case, Edit, asks, said, say
from anthrolab.runtime.text import is_farewell, normalise

TWINS = ("[捂脸]", "哈", "啊", "～", "呢", "！")


def own_message_again(case: Case, rng: random.Random) -> Edit | None:
    """An own message once more, word for word, punctuation aside."""
    early = [i for i in case.own_positions() if len(normalise(said(case, i))) > 5 and not is_farewell(said(case, i))]
    late = [k for k in range(1, len(case.dialogue.messages)) if early and k > early[0] + 1]
    if not late:
        return None
    after = rng.choice(late)
    copied = said(case, rng.choice([i for i in early if i < after]))
    text = copied.rstrip("。！!？?～~ ") + rng.choice(("", "", "！", "。", "~"))
    return Edit("own_message_again", [say(case, after, text)], after + 1)


def partners_last_message(case: Case, rng: random.Random) -> Edit | None:
    """The partner's last message, word for word, as the answer to it."""
    spots = [k for k, m in enumerate(case.dialogue.messages) if m.speaker != case.role and len(normalise(m.content)) > 5]
    if not spots:
        return None
    after = rng.choice(spots)
    return Edit("partners_last_message", [say(case, after, said(case, after))], after + 1)


def short_word_again(case: Case, rng: random.Random) -> Edit | None:
    """A word of at most three characters again and again, as people do."""
    word = rng.choice(("嗯嗯", "哈哈哈", "好", "行", "对啊", "是吧", "可以", "晓得"))
    first, last = _two_spots(case, rng)
    return Edit("short_word_again", [say(case, first, word), say(case, last + 1, word)])


def echo_with_change(case: Case, rng: random.Random) -> Edit | None:
    """Some words of the partner's last message taken up as a question, not the whole of it."""
    spots = [k for k, m in enumerate(case.dialogue.messages) if m.speaker != case.role and len(normalise(m.content)) > 7]
    if not spots:
        return None
    after = rng.choice(spots)
    words = said(case, after).strip()
    return Edit("echo_with_change", [say(case, after, words[: max(3, len(words) // 2)].rstrip("，, ") + "？")])


def own_words_grown(case: Case, rng: random.Random) -> Edit | None:
    """An own earlier message taken up again with something new behind it."""
    early = [i for i in case.own_positions() if 4 < len(normalise(said(case, i))) < 16]
    late = [k for k in range(1, len(case.dialogue.messages)) if early and k > early[0] + 3]
    if not late:
        return None
    after = rng.choice(late)
    words = said(case, rng.choice([i for i in early if i < after])).rstrip("。！!？?")
    more = rng.choice((" 我刚才是这么说的 这会儿又不敢定了", "，我不是随口一说啊", " 这话你先莫跟别人讲", "，你记得我讲过没"))
    return Edit("own_words_grown", [say(case, after, words + more)])


def near_copy(case: Case, rng: random.Random) -> Edit | None:
    """An own earlier message with a particle or an emoji more: nothing new is said."""
    early = [i for i in case.own_positions() if len(normalise(said(case, i))) >= 10]
    late = [k for k in range(1, len(case.dialogue.messages)) if early and k > early[0] + 2]
    if not late:
        return None
    after = rng.choice(late)
    text = said(case, rng.choice([i for i in early if i < after])).rstrip("。！!？?～ ") + rng.choice(TWINS)
    return Edit("near_copy", [say(case, after, text)], after + 1, ("L0-05",))


def question_again(case: Case, rng: random.Random) -> Edit | None:
    """A question once more, after the partner has answered it."""
    messages = case.dialogue.messages
    asked = [i for i in case.own_positions() if asks(said(case, i)) and len(normalise(said(case, i))) >= 6]
    spots = [(i, k) for i in asked for k in range(i + 3, len(messages)) if any(m.speaker != case.role for m in messages[i + 1 : k])]
    if not spots:
        return None
    question, after = rng.choice(spots)
    words = said(case, question).rstrip("？?。 ")
    text = words + rng.choice(("？", "？？") if words.endswith(("吗", "呀", "啊", "呢")) else ("？", "啊", "呀？", "？？"))
    return Edit("question_again", [say(case, after, text)], after + 1, ("L0-05",))


def _two_spots(case: Case, rng: random.Random) -> tuple[int, int]:
    count = len(case.dialogue.messages)
    first = rng.randrange(1, count // 2)
    return first, rng.randrange(first + 2, count)

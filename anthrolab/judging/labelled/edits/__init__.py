"""Edits that are computed from a dialogue and its cards. Each is a function of a case and a random generator that returns
an `Edit`, or None where the dialogue is not fit for it; its name stands in the item."""

from collections.abc import Mapping, Sequence

from anthrolab.judging.labelled.edits import conduct, copies, form, replies
from anthrolab.judging.labelled.making import Computed

COMPUTED_FAILS: Mapping[str, Sequence[Computed]] = {
    "L0-04": (replies.broken_reply,),
    "L0-05": (copies.own_message_again, copies.partners_last_message),
    "D2.3": (copies.near_copy,),
    "D3.3": (conduct.catchphrase_in_each,),
    "D5.1": (form.several_in_one, form.chopped),
    "D5.3": (form.typed_too_fast, form.sent_before_the_one_above),
    "E1.1": (copies.question_again,),
    "E1.3": (conduct.name_swapped, conduct.answers_itself),
    "E5.2": (conduct.one_word_left, conduct.partner_gone),
    "E5.4": (conduct.cut_short, conduct.circle),
}
"""Edits after which an id must fail."""

COMPUTED_HOLDS: Mapping[str, Sequence[Computed]] = {
    "L0-04": (replies.partner_broken_reply, replies.recovered_reply),
    "L0-05": (copies.short_word_again, copies.echo_with_change, copies.own_words_grown),
    "D5.1": (form.three_in_a_row,),
    "D5.3": (form.short_and_quick,),
    "E1.3": (conduct.partner_called_by_name,),
}
"""Edits that only look as if it failed."""

"""Token lengths: what the template puts around messages is counted, and no sample falls out of the histogram."""

from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.loop.sft.token_lengths import PARTS, length_histogram, longer_than, token_lengths
from tests.test_sft_samples import make_sample


def count(messages: Sequence[Mapping[str, str]]) -> int:
    """One token a character, and three around each message."""
    return sum(len(m["content"]) + 3 for m in messages)


def test_prompt_and_completion_are_counted_with_their_template() -> None:
    sample = make_sample(system="四个字啊", user="六个字的东西")
    row = token_lengths([sample], count).row(0, named=True)
    long = len(sample.completion) + 3
    assert row == {"id": sample.id, "category": "Sport", "source": "gold", "prompt": 4 + 6 + 6, "completion": long, "total": 16 + long}


@settings(deadline=None)
@given(st.lists(st.integers(0, 300), max_size=30), st.integers(1, 70))
def test_every_sample_stands_in_one_bin_of_each_part(lengths: list[int], width: int) -> None:
    frame = token_lengths([make_sample(i, user="字" * n) for i, n in enumerate(lengths)], count)
    bins = length_histogram(frame, width)
    for part in PARTS:
        own = bins.filter(part=part)
        assert own["samples"].sum() == len(lengths)
        for n in frame[part]:
            assert own.filter(tokens=n // width * width)["samples"].item() == sum(m // width == n // width for m in frame[part])
        starts = own["tokens"].to_list()
        assert starts == list(range(starts[0], starts[-1] + 1, width)) if starts else not lengths


def test_samples_that_would_be_cut_are_counted() -> None:
    frame = token_lengths([make_sample(i, user="字" * n) for i, n in enumerate((0, 100, 200))], count)
    middle = frame["total"][1]
    assert longer_than(frame, middle) == (1, 3) and longer_than(frame, middle - 1) == (2, 3) and longer_than(frame, 9999) == (0, 3)
    assert longer_than(token_lengths([], count), 10) == (0, 0)

"""The samples of a training: read, thinned out evenly if wanted, in token ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anthrolab.files import FileError, content_hash
from anthrolab.loop.sft.samples import Sample, SftError, read_samples
from anthrolab.training.chat_template import stop_ids
from anthrolab.training.settings import SFTSettings, TrainingError
from anthrolab.training.tokens import Encoded, encode

FILES = ("train", "held_out")


@dataclass(frozen=True)
class Data:
    """`train` and `held_out` as samples and in tokens, in the same order; `hashes`: the content of both files."""

    train: list[Sample]
    held_out: list[Sample]
    hashes: dict[str, str]


def read_data(settings: SFTSettings) -> Data:
    """The samples of the settings' data folder; TrainingError if a file is missing or train.jsonl is empty.

    A pair of personas in both files would make the held-out numbers worthless, so it stops here too.
    """
    rows: dict[str, list[Sample]] = {}
    hashes = {}
    for name in FILES:
        path = settings.data / f"{name}.jsonl"
        try:
            rows[name] = read_samples(path)
            hashes[name] = content_hash(path.read_bytes())
        except (FileError, SftError) as e:
            raise TrainingError(f"{e} (data: {settings.data}; `anthrolab sft data` makes such a folder)") from e
    if not rows["train"]:
        raise TrainingError(f"{settings.data / 'train.jsonl'}: holds no samples; make the data again")
    both = {s.pair for s in rows["train"]} & {s.pair for s in rows["held_out"]}
    if both:
        raise TrainingError(f"{settings.data}: the pair {min(both)} stands in train.jsonl and held_out.jsonl; split the data by pairs")
    return Data(spread(rows["train"], settings.limit), evenly(rows["held_out"], settings.held_out_samples), hashes)


def spread(samples: Sequence[Sample], limit: int | None) -> list[Sample]:
    """At most `limit` samples: whole runs of one speaker in one dialogue, so that what their prompts share is paid once, taken
    from every category and side in turn as long as they have some. The last run taken may be cut."""
    if limit is None or limit >= len(samples):
        return list(samples)
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample.dialogue_id, sample.speaker), []).append(sample)
    kinds: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name in sorted(groups, key=content_hash):  # an order of its own: that of a file may follow the categories
        kinds.setdefault((groups[name][0].category, name[1]), []).append(name)
    turns = sorted(kinds, key=lambda kind: (kind[1], kind[0]))
    taken: list[Sample] = []
    while len(taken) < limit:
        for kind in turns:
            if kinds[kind]:
                taken += groups[kinds[kind].pop()][: limit - len(taken)]
    return taken


def evenly(samples: Sequence[Sample], count: int) -> list[Sample]:
    """At most `count` single samples from all over the file."""
    if count >= len(samples):
        return list(samples)
    return [samples[i * len(samples) // count] for i in range(count)]


def encode_all(tokenizer: Any, samples: Sequence[Sample], max_length: int) -> list[Encoded]:
    """All samples in tokens."""
    stops = stop_ids(tokenizer)
    return [encode(tokenizer, sample, stops, max_length) for sample in samples]



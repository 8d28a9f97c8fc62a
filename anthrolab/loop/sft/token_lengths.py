"""How long samples are in tokens: to be looked at before a training run is paid for."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from anthrolab.loop.sft.samples import Sample

CountTokens = Callable[[Sequence[Mapping[str, str]]], int]
"""Tokens of messages as the model is trained on them, with its chat template around them.

    def count(messages):
        return len(tokenizer.apply_chat_template(list(messages), return_dict=False))
"""

PARTS = ("prompt", "completion", "total")


def token_lengths(samples: Sequence[Sample], count: CountTokens) -> pl.DataFrame:
    """One row a sample: id, category, source and the tokens of prompt, completion and both (total).

    The completion's are the total's less the prompt's, so what the template puts between them counts as completion.
    """
    rows = []
    for s in samples:
        prompt, completion = s.messages()
        before, total = count(prompt), count([*prompt, *completion])
        rows.append((s.id, s.category, s.source, before, total - before, total))
    schema = {"id": pl.String, "category": pl.String, "source": pl.String, **dict.fromkeys(PARTS, pl.Int64)}
    return pl.DataFrame(rows, schema=schema, orient="row")


def length_histogram(lengths: pl.DataFrame, width: int = 64) -> pl.DataFrame:
    """Counts of samples by length: part, tokens (the bin's least, a multiple of `width`), samples; empty bins between the
    first and the last of a part have 0."""
    frames = []
    for part in PARTS:
        bins = (lengths[part] // width * width).value_counts(name="samples").rename({part: "tokens"})
        if bins.is_empty():
            continue
        first, last = bins["tokens"].min(), bins["tokens"].max()
        whole = pl.DataFrame({"tokens": pl.int_range(first, last + 1, width, eager=True)})  # type: ignore[operator,arg-type]
        filled = whole.join(bins, on="tokens", how="left").sort("tokens")
        frames.append(filled.select(pl.lit(part).alias("part"), "tokens", pl.col("samples").fill_null(0).cast(pl.Int64)))
    schema = {"part": pl.String, "tokens": pl.Int64, "samples": pl.Int64}
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema)


def longer_than(lengths: pl.DataFrame, limit: int) -> tuple[int, int]:
    """How many samples have more than `limit` tokens in all and would be cut off, and how many samples there are."""
    return int((lengths["total"] > limit).sum()), lengths.height

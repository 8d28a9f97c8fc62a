"""Samples as bytes of JSONL and Parquet files, and files that are touched only where their content is new."""

import json
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import polars as pl

from anthrolab.files import write_atomic
from anthrolab.loop.sft.samples import Sample

_MESSAGES = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))
SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "id": pl.String, "prompt": _MESSAGES, "completion": _MESSAGES, "dialogue_id": pl.String, "ask": pl.Int64,
    "speaker": pl.String, "binding": pl.String, "scenario": pl.String, "category": pl.String, "pair": pl.String,
    "directed": pl.String, "source": pl.String, "round": pl.Int64, "neutralised": pl.Boolean, "recovered": pl.String,
}  # fmt: skip
"""The columns of a Parquet file of samples, those of a JSONL line in their order."""


def as_jsonl(samples: Sequence[Sample]) -> bytes:
    """One JSON object a line, UTF-8."""
    return "".join(json.dumps(s.row(), ensure_ascii=False) + "\n" for s in samples).encode("utf-8")


def as_parquet(samples: Sequence[Sample]) -> bytes:
    """A Parquet file; the same samples give the same bytes under one version of polars."""
    out = BytesIO()
    pl.DataFrame([s.row() for s in samples], schema=SCHEMA, orient="row").write_parquet(out)
    return out.getvalue()


def write_if_new(path: Path, content: bytes) -> None:
    """Write a whole file, unless it has this content already."""
    if not path.is_file() or path.read_bytes() != content:
        write_atomic(path, content)

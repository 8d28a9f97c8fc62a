"""The ledger: what a judge answered for every checkbox of every case, in two parquet files.

`cases.parquet` has one row per planned case: system, case_id, binding, role, category, valid
(null = planned but not done or not judged) and, where cases were sampled more than once, sample (absent or null = 0).
`checkboxes.parquet` has one row per checkbox of a valid case: system, case_id, scope, turn_index (from 1;
null for a dialogue), dimension, checkbox (from 1), passed (null = the judge did not assess it), sample.
It repeats category, role and valid of the case for readers of that file alone; here the cases file decides.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from anthrolab.cards.scenario import CATEGORIES
from anthrolab.errors import AnthrolabError
from anthrolab.files import read_text, write_parquet

LOCAL_DIMENSIONS = ("D1", "D2", "D3", "D4", "D5")
GLOBAL_DIMENSIONS = ("E1", "E2", "E3", "E4", "E5")
DIMENSIONS = LOCAL_DIMENSIONS + GLOBAL_DIMENSIONS
SCOPES = ("turn", "dialogue")

CASES_FILE = "cases.parquet"
CHECKBOXES_FILE = "checkboxes.parquet"
RUBRIC_FILE = "rubric.json"
"""Beside a ledger of ours: name, hash and weights of the rubric that it was judged under."""

DIALOGUE = 2**16 - 1
"""Stands for the turn of a dialogue card, so that the card comes after the turns."""

Types = dict[str, pl.DataType]
_CASE_KEY = ("system", "case_id", "sample")
_CASE_TYPES: Types = {
    "system": pl.String(),
    "case_id": pl.String(),
    "binding": pl.String(),
    "role": pl.String(),
    "category": pl.Enum(CATEGORIES),
    "valid": pl.Boolean(),
    "sample": pl.UInt16(),
}
_BOX_TYPES: Types = {
    "sample": pl.UInt16(),
    "scope": pl.Enum(SCOPES),
    "turn_index": pl.UInt16(),
    "dimension": pl.Enum(DIMENSIONS),
    "checkbox": pl.UInt16(),
    "passed": pl.Boolean(),
}
_MAY_BE_NULL = ("binding", "role", "valid", "turn_index", "passed")


class LedgerError(AnthrolabError):
    """A ledger that breaks the format; the message names the file, the column and the fix."""


@dataclass(frozen=True, init=False)
class Ledger:
    """A ledger that keeps the format: two polars frames, checked when it is made.

    cases: one row per planned case in the given order; columns case (row number from 0), system, case_id,
        binding, role, category (Enum of CATEGORIES), valid, sample.
    checkboxes: one row per checkbox in the given order; columns case (row number in `cases`), system and
        case_id (Enums, which keep a large ledger small; cast them to String before joining other frames),
        sample, scope, turn_index, dimension, checkbox, passed. Join on `case` for the case's other columns.
    """

    cases: pl.DataFrame
    checkboxes: pl.DataFrame

    def __init__(
        self,
        cases: pl.DataFrame | pl.LazyFrame,
        checkboxes: pl.DataFrame | pl.LazyFrame,
        folder: Path | None = None,
    ) -> None:
        """Check two frames with the columns of the module's docstring; other columns are left out.

        Raises LedgerError (which names the files as of `folder`) on a missing column, a wrong type, an
        unknown category, scope or dimension, a case or checkbox given twice, a checkbox of an unknown case,
        and a turn index or dimension that does not fit the scope.
        """
        folder = folder or Path()
        checked = _checked_cases(cases.lazy(), folder / CASES_FILE)
        object.__setattr__(self, "cases", checked)
        object.__setattr__(
            self, "checkboxes", _checked_checkboxes(checkboxes.lazy(), checked, folder / CHECKBOXES_FILE)
        )

    @property
    def systems(self) -> list[str]:
        """The systems in the order of their first appearance in the cases."""
        return self.cases["system"].unique(maintain_order=True).to_list()


def read_ledger(folder: Path | str) -> Ledger:
    """The checked ledger in a folder; LedgerError names the file, the column and the fix."""
    folder = Path(folder)
    for name in (CASES_FILE, CHECKBOXES_FILE):
        if not (folder / name).is_file():
            raise LedgerError(
                f"{folder / name}: no such file; a ledger folder holds {CASES_FILE} and {CHECKBOXES_FILE}"
            )
    # glob=False, since the name of a folder may hold brackets
    cases, checkboxes = (pl.scan_parquet(folder / n, glob=False) for n in (CASES_FILE, CHECKBOXES_FILE))
    return Ledger(cases, checkboxes, folder)


def read_weights(folder: Path | str) -> dict[str, float] | None:
    """The weights of the rubric that a ledger was judged under; None if its folder does not say."""
    path = Path(folder) / RUBRIC_FILE
    if not path.exists():
        return None
    try:
        weights = json.loads(read_text(path))["weights"]
        return {str(dimension): float(weight) for dimension, weight in weights.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise LedgerError(f"{path}: weights cannot be read ({e!r}); judge the run again, or remove the file") from e


def write_ledger(
    folder: Path | str, cases: pl.DataFrame | pl.LazyFrame, checkboxes: pl.DataFrame | pl.LazyFrame
) -> Ledger:
    """Check a ledger and write its two files, each whole or not at all; returns the ledger as written.

    The columns category, role and valid of the checkboxes file are filled from the cases.
    """
    folder = Path(folder)
    ledger = Ledger(cases, checkboxes, folder)
    of_case = ledger.cases.select("case", "category", "role", "valid")
    boxes = ledger.checkboxes.join(of_case, on="case", how="left", maintain_order="left")
    order = ["system", "case_id", "sample", "category", "role", "valid", *list(_BOX_TYPES)[1:]]
    # the cases go last: where the cases file is new, so are its checkboxes
    _write(folder / CHECKBOXES_FILE, boxes.select(order))
    _write(folder / CASES_FILE, ledger.cases.drop("case"))
    return ledger


def _write(path: Path, frame: pl.DataFrame) -> None:
    """Write a frame as parquet with plain types, which every reader of the format knows."""
    write_parquet(path, frame.cast({pl.Enum: pl.String, pl.UInt16: pl.Int32}))


def card_key() -> pl.Expr:
    """A number for every score card: the case, then in 16 bits the turn (DIALOGUE for the dialogue card)."""
    return pl.col("case").cast(pl.UInt64) * 2**16 + pl.col("turn_index").fill_null(DIALOGUE)


def card_dimension_key() -> pl.Expr:
    """A number for every dimension of every card: the card, then the place in DIMENSIONS in 4 bits."""
    return card_key() * 16 + pl.col("dimension").to_physical()


def _checked_cases(raw: pl.LazyFrame, file: Path) -> pl.DataFrame:
    frame = _typed(raw, _CASE_TYPES, file)
    fix = "in two rows; keep one row per case, and number several samples of a case in the column 'sample'"
    _refuse(frame, pl.struct(_CASE_KEY).is_duplicated(), file, _CASE_KEY, fix)
    return frame.with_row_index("case")


def _checked_checkboxes(raw: pl.LazyFrame, cases: pl.DataFrame, file: Path) -> pl.DataFrame:
    names: Types = {c: pl.Enum(cases[c].unique(maintain_order=True)) for c in ("system", "case_id")}
    # one number in place of three columns makes the join several times as fast
    system = pl.col("system").cast(names["system"]).to_physical().cast(pl.UInt64)
    case_id = pl.col("case_id").cast(names["case_id"]).to_physical()
    key = ((system * cases["case_id"].n_unique() + case_id) * 2**16 + pl.col("sample")).alias("key")
    frame = (
        _typed(raw, names | _BOX_TYPES, file)
        .lazy()
        .with_columns(key)
        .join(cases.lazy().select("case", key), on="key", how="left", maintain_order="left")
        .select("case", *_CASE_KEY, *list(_BOX_TYPES)[1:])
        .collect()
    )
    _refuse(frame, pl.col("case").is_null(), file, _CASE_KEY, f"no case of {CASES_FILE}; add it or drop its boxes")
    turn = pl.col("scope") == "turn"
    local = pl.col("dimension").to_physical() < len(LOCAL_DIMENSIONS)
    _refuse(frame, turn != local, file, ("scope", "dimension"), "no pair; a turn has D1-D5, a dialogue E1-E5")
    counted = pl.col("turn_index").fill_null(0).is_between(1, DIALOGUE - 1)
    placed = pl.when(turn).then(counted).otherwise(pl.col("turn_index").is_null())
    _refuse(frame, ~placed, file, ("scope", "turn_index"), "no pair; turns count from 1, a dialogue has null")
    _refuse(frame, pl.col("checkbox") < 1, file, ("checkbox",), "too low; checkboxes count from 1")
    box = frame.select(box=card_dimension_key() * 2**16 + pl.col("checkbox"))["box"]
    # the rows of a ledger written in order are told apart without a hash table
    if not (box > box.shift(1)).all() and box.n_unique() < box.len():
        columns = (*_CASE_KEY, "turn_index", "dimension", "checkbox")
        _refuse(frame, box.is_duplicated(), file, columns, "in two rows; keep one row per checkbox")
    return frame


def _refuse(frame: pl.DataFrame, wrong: pl.Expr | pl.Series, file: Path, columns: tuple[str, ...], why: str) -> None:
    rows = frame.lazy().filter(wrong).select(columns).head(1).collect()
    if rows.height:
        found = ", ".join(f"{name} {value!r}" for name, value in rows.row(0, named=True).items())
        raise LedgerError(f"{file}: {found}: {why}")


def _typed(raw: pl.LazyFrame, types: Types, file: Path) -> pl.DataFrame:
    """The columns in their narrow types; LedgerError for a column or a value that does not fit its type."""
    try:
        schema = raw.collect_schema()
        for name, wanted in types.items():
            if name not in schema and name != "sample":
                raise LedgerError(f"{file}: column {name!r} is missing; the file has only: {', '.join(schema)}")
            if name in schema and not _readable(schema[name], wanted):
                raise LedgerError(f"{file}: column {name!r} is {schema[name]}; store it as {_stored(wanted)}")
        sample = pl.col("sample").fill_null(0) if "sample" in schema else pl.lit(0).alias("sample")
        raw = raw.with_columns(sample)
        casts = (pl.col(name).cast(wanted, strict=False) for name, wanted in types.items())
        frame = raw.select(casts).collect(engine="streaming")
        for name, wanted in types.items():
            # the cast leaves a null where a value does not fit, and cuts a fraction off
            fractions = schema.get(name, wanted).is_float()
            if frame[name].null_count() or fractions:
                value, cast = pl.col(name), pl.col(name).cast(wanted, strict=False)
                bad = cast.is_null() & value.is_not_null() if name in _MAY_BE_NULL else cast.is_null()
                if fractions:
                    bad = bad | (value != cast)
                found = raw.filter(bad).select(value).head(1).collect()
                if found.height:
                    raise LedgerError(f"{file}: column {name!r} has {found.item()!r}; {_allowed(name, wanted)}")
    except pl.exceptions.ComputeError as e:
        raise LedgerError(f"{file}: cannot be read as parquet ({str(e).splitlines()[0]}); write it anew") from e
    return frame


def _readable(stored: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether a stored type can hold the wanted one; pandas stores whole numbers with nulls as floats."""
    if stored == pl.Null:
        return True
    if isinstance(wanted, pl.UInt16):
        return stored.is_numeric()
    if isinstance(wanted, pl.Boolean):
        return stored == pl.Boolean
    return stored in (pl.String, pl.Categorical, pl.Enum)


def _stored(wanted: pl.DataType) -> str:
    return {pl.UInt16(): "a whole number", pl.Boolean(): "a boolean"}.get(wanted, "text")


def _allowed(name: str, wanted: pl.DataType) -> str:
    if name in ("system", "case_id"):
        return f"it must be one of {CASES_FILE}, and never null"
    if isinstance(wanted, pl.Enum):
        return f"it must be one of {', '.join(wanted.categories)}"
    return f"it must be {_stored(wanted)} from 0 to {2**16 - 1}"

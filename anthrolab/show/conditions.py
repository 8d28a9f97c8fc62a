"""Table 6: corpus and runtime configuration, the paper's beside ours; and the provenance of a run."""

import json
import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from anthrolab.bench.plan import planned_cases
from anthrolab.bench.settings import Pace
from anthrolab.cards.scenario import CATEGORIES
from anthrolab.show.measured import Measured
from anthrolab.show.tables import PrintedTable, plain_table

_PAPER = {
    "Personas": "55 role cards",
    "Scenarios": "50 scenario cards",
    "Bindings": "50, expanded into 100 evaluated-role cases per system",
    "Categories": "12",
    "Duration horizon": "8, 10, 15, 20 or 25 virtual minutes",
    "Evaluated role": "only the tested system's persona is scored",
    "Partner": "a fixed reference model, not named",
    "Judge": "Qwen3.5-397B at zero temperature, for L0, local and holistic cards",
    "Tested systems": "16 systems and variants",
    "Samples per case": "not said; the counts fit one",
    "Older messages": "summarised; by which model is not said",
    "Pace beyond the scheduler": "not said",
    "Longest dialogue": "not said; 11 to 17 evaluated turns a case",
}


def conditions_table(measured: Sequence[Measured]) -> PrintedTable:
    """Table 6 with one column for the paper and one for each run; counts of ours are of what was planned or used."""
    columns = {"Item": list(_PAPER), "AnthroDial (paper)": list(_PAPER.values())}
    for run in dict.fromkeys(m.run for m in measured):
        ours = [m for m in measured if m.run == run]
        columns[f"Run {run} (here)"] = [_ours(ours)[item] for item in _PAPER]
    return plain_table(
        "table6", "Table 6. Corpus and runtime configuration", "Our cards are counted over the dialogues that were had.",
        pl.DataFrame(columns),
    )  # fmt: skip


def _ours(measured: Sequence[Measured]) -> dict[str, str]:
    one = measured[0]
    settings, dialogues = one.manifest["settings"], one.dialogues.values()
    personas = {p.persona for d in dialogues for p in d.speakers.values() if p.persona}
    horizons = sorted({d.horizon_minutes for d in dialogues if d.horizon_minutes})
    categories = [c for c in CATEGORIES if c in one.ledger.cases["category"].cast(pl.String)]
    cases = planned_cases(settings)
    bindings = {case.rsplit("-", 1)[0] for case in cases}
    sampling = f"seed {settings['seed']}"
    return {
        "Personas": f"{len(personas)} role cards",
        "Scenarios": f"{len({d.scenario for d in dialogues if d.scenario})} scenario cards",
        "Bindings": f"{len(bindings)}, giving {len(cases)} evaluated-role cases",
        "Categories": str(len(categories)),
        "Duration horizon": f"{', '.join(map(str, horizons)) or 'none'} virtual minutes",
        "Evaluated role": "only the tested system's persona is scored",
        "Partner": one.partner if "chats" in settings else f"{one.partner} ({settings['partner'].get('policy', 'chat')} policy)",
        "Judge": "; ".join(m.judge_label for m in measured),
        "Tested systems": f"{one.system} ({settings['system'].get('policy', 'chat')} policy)",
        "Samples per case": f"{settings['samples']}, {sampling}",
        "Older messages": _summarised(settings.get("summary", "none")).split(":")[0],
        "Pace beyond the scheduler": _pace(settings["limits"]).in_words,
        "Longest dialogue": f"{settings['limits']['max_messages']} messages, opener included",
    }


def provenance_table(run: str, measured: Sequence[Measured]) -> PrintedTable:
    """What a run was made with: settings, seeds, content hashes and versions out of its manifest."""
    manifest = measured[0].manifest
    settings = manifest["settings"]
    rows: list[tuple[str, str]] = [
        ("Tested system", _flat(settings["system"])),
        ("Reference partner", _flat(settings["partner"])),
        ("Limits", _flat(settings["limits"])),
        ("Older messages", _summarised(settings.get("summary", "none"))),
        ("Seed", str(settings["seed"])),
        ("Samples per case", str(settings["samples"])),
        ("Cases", ", ".join(planned_cases(settings))),
        *((f"Content hash: {name}", _hashes(value)) for name, value in manifest["hashes"].items()),
        ("Content hash: code", ", ".join(manifest["code"])),
        ("Versions", " | ".join(_flat(v) for v in manifest["versions"])),
        ("Dialogues", _flat(manifest["counts"])),
    ]
    for m in measured:
        judged = manifest["judges"][m.judge]
        asked = f"; {_flat({'params': judged['params'], 'model': judged['system']['model']})}" if "params" in judged else ""
        named = f"identity {judged['identity']}, rubric {judged['rubric_name']} ({judged['rubric']}){asked}"
        rows.append((f"Judge: {m.judge_label}", named))
    frame = pl.DataFrame(rows, schema={"Item": pl.String, "Value": pl.String}, orient="row")
    return plain_table(f"provenance-{run}", f"Run {run}", "", frame)


def _pace(limits: dict[str, Any]) -> Pace:
    return Pace(
        limits.get("min_gap_s", 0), tuple(limits.get("follow_up_delays", ())), limits.get("typing_chars_per_minute", 0)
    )


def _summarised(summary: str | dict[str, Any]) -> str:
    """What became of messages older than the window."""
    if isinstance(summary, dict):
        return f"summarised by a model: {_flat(summary)}"
    return "quoted by rules where they matter" if summary == "rules" else "not shown"


def _hashes(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "; ".join(value)


def _flat(value: dict[str, Any]) -> str:
    """Settings in one line; what a URL says before an @ (a name, a password) is left out."""
    parts = [f"{k}: {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}" for k, v in value.items() if v not in (None, {}, [])]
    return re.sub(r"://[^/@\s]*@", "://", "; ".join(parts))

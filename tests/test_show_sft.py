"""A training in figures, coloured tokens and a notebook."""

from pathlib import Path

import pytest

pytest.importorskip("trl")

import nbformat

from anthrolab.show.notebooks import run_notebooks
from anthrolab.show.sft import gates_table, lengths_figure, loss_figure, masked_html, result_table
from anthrolab.show.tables import as_html
from anthrolab.training.checkpoints import read_log
from anthrolab.training.preflight import Gate, Shown
from anthrolab.training.sft import Trained
from tests.training_for_tests import settings


def test_the_trained_tokens_and_no_others_are_marked_and_all_is_escaped() -> None:
    page = masked_html([Shown("d<1>/0", ["<b>", "\n", "好", "<end_of_turn>"], [False, False, True, True])])
    assert page.count("<mark") == 2
    assert ">&lt;b&gt;</span>" in page and ">好</mark>" in page and ">&lt;end_of_turn&gt;</mark>" in page
    assert "\u23ce\n</span>" in page
    assert "d&lt;1&gt;/0</b>: 2 of 4 tokens are trained" in page


def test_the_lengths_of_prompts_and_completions_are_two_histograms() -> None:
    figure = lengths_figure([(100, 30), (1300, 50)], 4096)
    assert [list(trace.x) for trace in figure.data] == [[100, 1300], [30, 50]]
    assert not figure.layout.shapes, "nothing is near the limit"
    assert lengths_figure([(100, 30), (1300, 50)], 1400).layout.shapes[0].x0 == 1400


def test_the_loss_curve_has_every_step_and_the_held_out_loss() -> None:
    rows = [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.5}]
    training, held_out = loss_figure(rows, 2.2, 1.7).data
    assert (list(training.x), list(training.y)) == ([1, 2], [2.0, 1.5])
    assert (list(held_out.x), list(held_out.y)) == ([0, 2], [2.2, 1.7])
    assert len(loss_figure(rows).data) == 1


def test_a_failed_gate_is_a_row_with_its_fix() -> None:
    table = gates_table([Gate("stop token", False, "none <x>", "end the turn"), Gate("truncation", True, "0 of 3")])
    assert table.frame["Passed"].to_list() == ["NO", "yes"]
    assert "none &lt;x&gt;" in as_html(table) and "end the turn" in as_html(table)


def test_a_training_without_held_out_samples_says_so(tmp_path: Path) -> None:
    manifest = {
        "settings": {"base": "b"}, "base": "b:1", "samples": {"train": 3, "held_out": 0}, "steps": 1, "training_seconds": 61.0, "tokens": 12345,
        "held_out_loss_before": None, "held_out_loss_after": None,
    }  # fmt: skip
    table = result_table(Trained(tmp_path, tmp_path / "tuned", [{"step": 1, "loss": 2.0}], manifest))
    values = dict(zip(table.frame["What"], table.frame["Value"], strict=True))
    assert values["Time in steps"] == "1 min 1 s"
    assert values["Tokens through the model"] == "12,345"
    assert values["Held-out loss, before and after"] == "–"


def test_notebook_07_trains_headless_and_shows_what_it_did(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    lines: list[str] = []
    given = {
        "data": chosen.data, "base": chosen.base, "limit": 0, "max_steps": 3, "lora_rank": 4, "learning_rate": 0.01, "overfit_steps": 0,
        "token_budget": 900, "gguf": "false",
    }  # fmt: skip
    (made,) = run_notebooks(["07"], tmp_path / "tuned", [f"{k}={v}" for k, v in given.items()], progress=lines.append)
    text = "\n".join(lines)
    assert "16 samples, 4177 tokens, 1680 of them trained" in text
    assert "step 3 of 3: loss" in text
    assert "gates failed: 0 of 7" in text
    assert (tmp_path / "tuned" / "merged" / "model.safetensors").exists()
    assert len(read_log(tmp_path / "tuned" / "log.jsonl")) == 3
    outputs = str(nbformat.read(made, as_version=4))
    assert "<mark" in outputs and "template round trip" in outputs and "Held-out loss" in outputs

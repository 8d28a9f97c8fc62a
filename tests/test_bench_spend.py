"""What a run costs: summed from its logs, printed, and held below a limit over several commands."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anthrolab.bench.effort import Effort
from anthrolab.bench.run import generate
from anthrolab.bench.spend import cost_so_far, read_spend
from anthrolab.bench.store import Run, RunError
from anthrolab.cli import app
from anthrolab.models.calls import CallLog, CallLogError
from anthrolab.models.client import Reply, Request
from anthrolab.models.scripted import Answer, Call, reply_body, serve
from anthrolab.models.spend import Meter
from anthrolab.models.systems import Prices
from anthrolab.show.spend import spend_table, troubles_by_side
from tests.test_bench_run import decide, write_systems
from tests.test_models_spend import system

PRICES = Prices(input=1000.0, output=2000.0)


def logged(run: Run) -> None:
    """Three calls of the tested side (one reused, one drawn twice) and one of the partner, whose server counts nothing."""
    meter = Meter()
    log = CallLog(run.calls / "b01-a-0.jsonl")
    tested, partner = meter.toll(system(), "tested"), meter.toll(system(name="other"), "partner")

    def add(toll: object, text: str, reply: Reply, **more: bool) -> None:
        log.add(Request("m", prompt=text, toll=toll), "id", reply, 0.5, **more)  # type: ignore[arg-type]

    add(tested, "1", Reply("好", prompt_tokens=10, completion_tokens=5, cached_tokens=8))
    add(tested, "2", Reply("好", prompt_tokens=10, completion_tokens=5, failed=("timeout", "length"), redrawn=(10, 7)))
    add(tested, "3", Reply("好", prompt_tokens=99, completion_tokens=99), reused=True)
    add(partner, "4", Reply("好"))


def test_a_run_is_summed_by_side_and_system(tmp_path: Path) -> None:
    run = Run(tmp_path / "r")
    logged(run)
    tested, partner = read_spend(run)
    assert (tested.side, tested.system, partner.side, partner.system) == ("tested", "dear", "partner", "other")
    assert (tested.usage.calls, tested.usage.prompt_tokens, tested.usage.cached_tokens, tested.usage.completion_tokens) == (2, 20, 8, 10)
    assert (tested.reused, tested.redrawn, tested.seconds) == (1, (10, 7), 1.0)
    assert (partner.usage.calls, partner.usage.uncounted) == (1, 1)
    assert troubles_by_side([tested, partner]) == {"tested": Counter(timeout=1, length=1), "partner": Counter()}
    assert tested.cost(PRICES) == pytest.approx((30 * 1000 + 17 * 2000) / 1e6) == cost_so_far(run, {"dear": PRICES, "other": PRICES})
    assert tested.cost(None) is None and read_spend(Run(tmp_path / "none")) == []


def test_the_table_says_what_is_known_and_what_is_not(tmp_path: Path) -> None:
    run = Run(tmp_path / "r")
    logged(run)
    manifest = {"settings": {"system": {"name": "dear", "prices": PRICES.model_dump()}, "seed": 0}, "judges": {}}
    table = spend_table({"r": (manifest, read_spend(run))})
    assert table is not None
    dear, other = table.frame.iter_rows(named=True)
    assert (dear["Calls"], dear["Reused"], dear["USD"], dear["Failed attempts"]) == ("2", "1", "0.0640", "length 1, timeout 1")
    assert other["USD"] == "–" and "uncounted" in other["Prompt tokens"]
    assert spend_table({}) is None


def test_a_damaged_log_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path / "r")
    logged(run)
    path = run.calls / "b01-a-0.jsonl"
    path.write_text("{}\n" + path.read_text("utf-8"), encoding="utf-8")
    with pytest.raises(CallLogError, match="line 1"):
        read_spend(run)


def priced(call: Call) -> Answer:
    body = reply_body(call, decide(call))
    body["usage"] = {"prompt_tokens": 1000, "completion_tokens": 100}
    return Answer(body)


def test_the_limit_holds_over_commands_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    prices = {"input": 1.0, "output": 2.0}  # 0.0012 USD a call; at most about 0.01
    with serve(priced) as server:
        systems = write_systems(tmp_path / "systems.yaml", server.url, prices=prices, concurrency=8)
        run, said = Run(tmp_path / "r"), list[str]()

        def have(limit: float | None) -> dict[str, int]:
            effort = Effort(max_cost=limit)
            return generate(run.path, "toy", cases=3, max_messages=12, systems_file=systems, effort=effort, progress=said.append)

        for limit in (0.02, 0.03):
            counts = have(limit)
            assert counts["done"] < 3
            assert cost_so_far(run, {"toy": Prices(**prices)}) <= limit
            assert cost_so_far(run, {"toy": Prices(**prices)}) == pytest.approx(0.0012 * len(server.calls)), "a call is not on record"
            assert "over_budget" in (run.path / "failures.jsonl").read_text("utf-8")
        assert have(None)["done"] == 3
    assert any("over_budget" in line and "--max-cost 0.03" in line for line in said)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-cost", "-1"], "--max-cost -1.0: USD, at least 0"),
        (["--max-cost", "1"], "toy has no prices"),
        (["--deadline", "0"], "--deadline 0: minutes, more than 0"),
    ],
)
def test_what_cannot_be_held_is_one_clear_line(tmp_path: Path, options: list[str], message: str) -> None:
    with serve(decide) as server:
        systems = write_systems(tmp_path / "systems.yaml", server.url)
        args = ["run", "--system", "toy", "--cases", "1", "--run", str(tmp_path / "r"), "--systems", str(systems), *options]
        result = CliRunner().invoke(app, args)
        assert len(server.calls) == 0
    assert message in f"{result.exception} {result.output}"


def test_an_effort_that_is_none_is_refused() -> None:
    with pytest.raises(RunError):
        Effort(max_cost=float("nan"))
    with pytest.raises(RunError):
        Effort(deadline_s=float("inf"))



def test_what_another_systems_calls_have_cost_counts_too(tmp_path: Path) -> None:
    run = Run(tmp_path / "r")
    logged(run)  # 0.064 USD of dear, and a call of other that nobody counted
    judge = system(name="judge", prices=Prices(input=1.0, output=1.0).model_dump())
    run.write_manifest(
        {
            "run": "r", "hashes": {}, "counts": {}, "judges": {},
            "settings": {"system": {"name": "dear", "prices": PRICES.model_dump()}, "partner": {"name": "other", "prices": PRICES.model_dump()}},
        }
    )  # fmt: skip

    async def begun() -> float:
        async with Effort(max_cost=1.0).engine(run, judge) as engine:
            return engine.meter.spent

    assert asyncio.run(begun()) == pytest.approx(0.064)
    run.write_manifest({**run.manifest(), "settings": {"system": {"name": "dear", "prices": PRICES.model_dump()}, "partner": {"name": "other"}}})
    with pytest.raises(RunError, match=r"holds calls of other \(partner\), which has no prices"):
        Effort(max_cost=1.0).engine(run, judge)

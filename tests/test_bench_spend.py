"""What a run costs: summed from its logs, printed, and held below a limit over several commands."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anthrolab.bench.effort import Effort
from anthrolab.bench.judge import judge_run
from anthrolab.bench.run import generate
from anthrolab.bench.spend import cost_so_far, read_spend
from anthrolab.bench.store import Run, RunError
from anthrolab.cli import app
from anthrolab.models.calls import CallLog, CallLogError
from anthrolab.models.client import Reply, Request
from anthrolab.models.scripted import Answer, Call, reply_body, serve
from anthrolab.models.spend import Meter
from anthrolab.models.systems import Prices
from anthrolab.show.report import write_report
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


def test_an_attempt_without_a_reply_is_remembered_by_the_next_command(tmp_path: Path) -> None:
    """A server that hangs may have charged for it: three commands under one limit must not spend it three times."""
    with serve(lambda _call: Answer(hang=True)) as server:
        prices = {"input": 1.0, "output": 2.0}
        systems = write_systems(tmp_path / "systems.yaml", server.url, prices=prices, timeout_s=0.2)
        for _ in range(3):
            generate(tmp_path / "r", "toy", cases=3, systems_file=systems, effort=Effort(max_cost=0.03), progress=lambda _line: None)
        sent = len(server.calls)
        assert 1 <= sent <= 4, "about 0.01 USD at most a call"
    (tested, *_), charged = read_spend(Run(tmp_path / "r")), cost_so_far(Run(tmp_path / "r"), {"toy": Prices(**prices)})
    assert tested.usage.calls == 0 and 0 < charged <= 0.03


def test_a_run_whose_call_logs_are_gone_has_no_known_cost(tmp_path: Path) -> None:
    with serve(priced) as server:
        systems = write_systems(tmp_path / "systems.yaml", server.url, prices={"input": 1.0, "output": 2.0})
        generate(tmp_path / "r", "toy", cases=1, max_messages=4, systems_file=systems, progress=lambda _line: None)
        (tmp_path / "r" / "calls").rename(tmp_path / "elsewhere")
        with pytest.raises(RunError, match="calls is gone"):
            generate(tmp_path / "r", "toy", cases=2, max_messages=4, systems_file=systems, effort=Effort(max_cost=1.0))


def test_a_run_of_picked_cases_says_that_it_is_no_score(tmp_path: Path) -> None:
    with serve(decide) as server:
        systems = write_systems(tmp_path / "systems.yaml", server.url)
        run = tmp_path / "r"
        for cases in (["b03-a", "b01-b"], 3):
            generate(run, "toy", cases=cases, max_messages=4, systems_file=systems, progress=lambda _line: None)
    manifest = Run(run).manifest()
    assert manifest["picked"] is True and set(manifest["settings"]["cases"][:2]) == {"b03-a", "b01-b"}
    judge_run(run, progress=lambda _line: None)
    page = write_report([run], tmp_path / "out").read_text("utf-8")
    assert "its cases were picked from a file" in page

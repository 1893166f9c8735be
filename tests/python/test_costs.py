"""The costs of a machine: when they are measured, where they are kept, and what happens when that fails."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from homing import costs
from homing.errors import UserError


@pytest.fixture
def two_nodes(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name, text in {
        "sys/devices/system/node/has_cpu": "0-1",
        "sys/devices/system/node/online": "0-1",
        "etc/machine-id": "0123456789abcdef",
        "proc/cpuinfo": "model name\t: Some CPU\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def meter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """A program in place of homing-costs."""
    program = tmp_path / "homing-costs"
    program.write_text(f"#!/bin/sh\necho run >>{tmp_path}/runs\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(costs, "find_binary", lambda name: str(program))
    return program


@pytest.mark.parametrize(
    ("text", "count"), [("0", 1), ("0-3", 4), ("0,2,4-5", 4), ("", 1), ("junk", 1), ("0-", 1)]
)
def test_nodes_with_cpus(text: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "sys/devices/system/node/has_cpu"
    path.parent.mkdir(parents=True)
    path.write_text(text + "\n")
    assert costs.nodes_with_cpus(str(tmp_path)) == count


GOOD = "local_ns = 90\nremote_ns = 1.5e2\nmove_call_us = 40\nmove_page_us = 0\n"


@pytest.mark.parametrize("text", [GOOD, GOOD + "cache_kib = 1024\n", GOOD.replace("1.5e2", "90")])
def test_costs_that_the_library_takes(text: str, tmp_path: Path) -> None:
    (tmp_path / "costs").write_text(text)
    costs.check_costs("--costs", str(tmp_path / "costs"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "is not TOML"),
        ("a = " + "[" * 5000, "is not TOML"),
        ("\udcff", "is not TOML"),
        ("", "local_ns, remote_ns, move_call_us, move_page_us must be stated"),
        (GOOD + "cash_kib = 1\n", "unknown key cash_kib"),
        (GOOD.replace("90", "'90'"), "local_ns must be a number"),
        (GOOD.replace("90", "true"), "local_ns must be a number"),
        (GOOD.replace("90", "nan"), "local_ns must be a number"),
        (GOOD.replace("90", "-1"), "local_ns must be a number"),
        (GOOD.replace("40", "2e12"), "move_call_us must be a number"),
        (GOOD.replace("90", "0"), "local_ns must be above 0"),
        (GOOD.replace("90", "151"), "remote_ns not below it"),
    ],
)
def test_costs_that_it_would_not_take(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "costs").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UserError, match=said) as raised:
        costs.check_costs("--costs", str(tmp_path / "costs"))
    assert raised.value.message.startswith(f"--costs {tmp_path}/costs: ")


def test_measured_once_and_kept(
    two_nodes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    meter(tmp_path, monkeypatch, f"echo '{GOOD}'")
    monkeypatch.delenv("HOMING_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = costs.costs_file(str(two_nodes))
    assert Path(path).read_text() == GOOD + "\n"
    assert "measuring" in capfd.readouterr().err
    assert costs.costs_file(str(two_nodes)) == path
    assert (tmp_path / "runs").read_text() == "run\n"
    assert [entry.name for entry in Path(path).parent.iterdir()] == [Path(path).name]


def test_another_machine_has_another_file(two_nodes: Path) -> None:
    first = costs.machine_id(str(two_nodes))
    (two_nodes / "proc/cpuinfo").write_text("model name\t: Another CPU\n")
    second = costs.machine_id(str(two_nodes))
    (two_nodes / "sys/devices/system/node/online").write_text("0-7\n")
    assert len({first, second, costs.machine_id(str(two_nodes))}) == 3


def test_a_damaged_file_is_measured_again(
    two_nodes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meter(tmp_path, monkeypatch, f"echo '{GOOD}'")
    monkeypatch.delenv("HOMING_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = Path(costs.costs_file(str(two_nodes)))
    path.write_text("local_ns = [")
    assert Path(costs.costs_file(str(two_nodes))).read_text() == GOOD + "\n"
    assert (tmp_path / "runs").read_text() == "run\nrun\n"


def test_one_node_is_never_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meter(tmp_path, monkeypatch, "echo 'local_ns = 90'")
    monkeypatch.delenv("HOMING_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert costs.costs_file(str(tmp_path / "empty")) == ""
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("script", ["echo no luck >&2; exit 3", "kill -9 $$"])
def test_a_measurement_that_fails_is_said_and_leaves_nothing(
    script: str,
    two_nodes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    meter(tmp_path, monkeypatch, script)
    monkeypatch.delenv("HOMING_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert costs.costs_file(str(two_nodes)) == ""
    assert "the distance tables serve" in capfd.readouterr().err
    assert not list(tmp_path.glob("cache/homing/*"))


def test_where_the_cache_cannot_be_written_this_run_has_its_own(
    two_nodes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    meter(tmp_path, monkeypatch, f"echo '{GOOD}'")
    (tmp_path / "file").write_text("")
    (tmp_path / "run").mkdir()
    monkeypatch.delenv("HOMING_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    path = Path(costs.costs_file(str(two_nodes), instead=str(tmp_path / "run")))
    assert path.parent == tmp_path / "run"
    assert path.read_text() == GOOD + "\n"
    said = capfd.readouterr().err
    assert said.count("the cache is not used") == 1
    assert f"{tmp_path}/file is no folder" in said

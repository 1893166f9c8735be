"""Simulated machines, the parts without a program: machine files, the model of time, families, counts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing import cli
from homing.errors import UserError
from homing.report.results import Results, read_results
from homing.simulate import cc, machines
from homing.simulate.check import relevant
from homing.simulate.counts import joined_counts
from homing.simulate.description import Distribution, Wishes, costs, description, parse_distributions
from homing.simulate.machine_command import draw
from homing.simulate.machines import (
    Cache,
    cache_problem,
    changed,
    find,
    names,
    read,
    size,
)
from homing.simulate.on_machine import unmet
from homing.simulate.sweep import caches
from homing.simulate.time_model import Calibration, estimate, parse_calibration, relative_time
from tests.python.record_writer import four_node_run
from tests.python.test_simulated_places import default_placements

TREE = Path(__file__).resolve().parents[2]
tomllib = machines.tomllib

GOOD = {
    "nodes": 4,
    "cpus_per_node": 2,
    "memory_per_node": "1GiB",
    "page": "8KiB",
    "line": 64,
    "private": {"size": "1MiB", "ways": 2},
}


def write(folder: Path, **more: Any) -> str:
    """A machine file; None takes a key out."""
    values = {key: value for key, value in {**GOOD, **more}.items() if value is not None}
    tables = [key for key, value in values.items() if isinstance(value, dict)]
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items() if key not in tables]
    for key in tables:
        lines += [f"[{key}]", *(f"{name} = {json.dumps(value)}" for name, value in values[key].items())]
    path = folder / "mine.toml"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


# --- machines -----------------------------------------------------


def test_the_machines_that_come_with_homing() -> None:
    shapes = {name: (find(name).nodes, find(name).cpu_count) for name in names()}
    assert shapes == {
        "sf15k": (4, 16),
        "wildfire": (2, 32),
        "origin2000-16": (8, 16),
        "origin2000-128": (64, 128),
        "istanbul": (4, 24),
        "nehalem-ep": (2, 8),
        "nehalem-ex": (4, 32),
        "epyc-nps4": (8, 128),
        "xeon-snc2": (4, 72),
        "grace-2": (2, 144),
    }


@pytest.mark.parametrize("name", ["m\udcfcller", "\U0001f40c"])
def test_a_machine_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.toml"
    os.rename(write(tmp_path), path)
    wishes = Wishes(distributions=(Distribution(name, 0),))
    told = tomllib.loads(description(read(str(path)), wishes).encode().decode())
    assert told["name"] == told["distributions"][0]["area"] == name.replace("\udcfc", "?")
    machine = json.loads(told["fact"])["machine"]
    assert machine["name"] == machine["title"] == told["name"]


@pytest.mark.parametrize("name", names())
def test_every_machine_can_be_drawn_and_told(name: str) -> None:
    machine = find(name)
    assert any(name in line for line in draw(machine))
    told = tomllib.loads(description(machine, Wishes(placements=default_placements(machine))))
    assert len(told["cpu_nodes"]) == machine.cpu_count
    assert len(told["distances"]) == machine.nodes
    assert tomllib.loads(costs(machine))["remote_ns"] >= machine.local_ns
    for a in range(machine.nodes):
        assert machine.distances[a][a] == 10
        for b in range(machine.nodes):
            assert machine.distances[a][b] == machine.distances[b][a]


def test_a_hypercube_has_a_hop_for_each_bit() -> None:
    distances = find("origin2000-16").distances
    assert distances[0][1] == 17  # the same router
    assert distances[0][2] == 22 and distances[0][6] == 27


@pytest.mark.parametrize(
    ("more", "line", "reason"),
    [
        ({"nodes": 0}, ":1", "nodes: must be a whole number from 1 to 64, not 0"),
        ({"nodes": None}, "", "nodes: is missing"),
        ({"page": "5KiB"}, ":4", "page: must be a power of two"),
        ({"page": "4MiB"}, ":4", "page: must be from 4KiB to 2MiB"),
        ({"line": 32}, ":5", "line: must be a whole number from 64"),
        ({"memory_per_node": "much"}, ":3", "memory_per_node: 'much' is no size"),
        ({"nosuch": 1}, ":6", "nosuch: is not a key"),
        ({"private": {"size": "1MiB", "ways": 3}}, ":7", "private.size: 1MiB in 3 ways"),
        ({"private": {"ways": 2}}, ":6", "private.size: is missing"),
        ({"distances": [[10, 20], [20, 10]]}, ":6", "distances: must be 4 rows of 4"),
        ({"time": {"ratio": 2, "m": [0.9, 0.1]}}, ":11", "time.m: must be [least, most]"),
        ({"topology": "ring"}, ":6", "topology: must be hypercube"),
    ],
)
def test_a_bad_machine_file_gets_line_key_and_reason(
    tmp_path: Path, more: dict[str, Any], line: str, reason: str
) -> None:
    path = write(tmp_path, **more)
    with pytest.raises(UserError) as error:
        read(path)
    assert error.value.message.startswith(f"{path}{line}: {reason}")


def test_what_is_no_toml_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("nodes = = 3\n")
    with pytest.raises(UserError, match=r"bad\.toml: not TOML: .*line 1"):
        read(str(tmp_path / "bad.toml"))
    with pytest.raises(UserError, match="No such file"):
        read(str(tmp_path / "none.toml"))
    with pytest.raises(UserError, match="there is no machine sf16k: one of epyc-nps4"):
        find("sf16k")


def test_a_machine_of_hwloc() -> None:
    machine = find(str(TREE / "tests" / "hwloc" / "two_sockets_four_nodes.xml"))
    assert machine.nodes == 4
    assert machine.cpu_count >= 4
    assert not cache_problem(machine.private.bytes, machine.private.ways, machine.line)
    told = tomllib.loads(description(machine, Wishes(placements=default_placements(machine))))
    assert sorted(set(told["cpu_nodes"])) == [0, 1, 2, 3]


@given(st.integers(0, 2**40), st.sampled_from(["", "K", "M", "KiB", "MiB", "GiB", "kB"]))
def test_sizes(value: int, unit: str) -> None:
    scale = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[unit[:1].upper()]
    assert size(f"{value}{unit}") == value * scale


def test_the_users_own_caches_and_pages() -> None:
    machine = find("sf15k")
    assert changed(machine, "2MiB", "1MiB:16", "8MiB:16").shared == Cache(8 << 20, 16, 4)
    assert changed(machine, None, "1048576:16", None).private == Cache(1 << 20, 16)
    assert changed(find("istanbul"), None, None, "0").shared is None
    for page, cache, reason in (
        ("3KiB", None, "--page-size 3KiB"),
        ("4MiB", None, "--page-size 4MiB"),
        (None, "8MiB", "must be SIZE:WAYS"),
        (None, "8MiB:3", "must be a power of two"),
        (None, "8MiB:0", "from 4KiB to 1TiB, in 1 to 4096 ways"),
        (None, "8MiB:99999", "in 1 to 4096 ways"),
        (None, "2048TiB:16", "from 4KiB to 1TiB"),
        ("9" * 5000, None, "must be a size"),
        # The sign of Kelvin is a "K" where case does not count.
        ("64\N{KELVIN SIGN}iB", None, "must be a size"),
    ):
        with pytest.raises(UserError, match=reason):
            changed(machine, page, cache, None)


def test_the_sweep_has_the_machines_own_cache() -> None:
    for name in names():
        machine = find(name)
        found = caches(machine)
        assert machine.private in found and len(found) >= 6
        assert all(not cache_problem(one.bytes, one.ways, machine.line) for one in found)


# --- time -----------------------------------------------------


@given(st.floats(0, 1), st.floats(1.01, 10), st.floats(0.01, 1))
def test_calibration_gives_back_what_was_measured(m: float, ratio: float, fraction: float) -> None:
    time = relative_time(m, ratio, fraction)
    least, most = Calibration(time, fraction).m(ratio)
    assert least == most
    assert relative_time(least, ratio, fraction) == pytest.approx(time, rel=1e-6)


def test_the_ratios_of_table_1() -> None:
    """Facts: one m a program explains the paper's eleven ratios to 0.04 rms."""
    table = {
        0.17: [(1.12, 0.751), (1.08, 0.359), (1.04, 0.062)],
        0.84: [(1.58, 0.724), (1.43, 0.485), (1.15, 0.110)],
        0.79: [(1.58, 0.679), (1.15, 0.314)],
        0.23: [(1.18, 0.771), (1.00, 0.043), (1.01, 0.036)],
    }
    errors = [relative_time(m, 2, fraction) - time for m, pairs in table.items() for time, fraction in pairs]
    assert len(errors) == 11
    assert (sum(one * one for one in errors) / len(errors)) ** 0.5 < 0.045


def test_time_is_a_range_with_its_model_and_error() -> None:
    stated = {"ratio": 2.0, "m": [0.1, 0.5], "migration_call_us": 50, "migration_page_us": 2}
    time = estimate(stated, 0.5, 10, 1000)
    assert time["model"] == "T = 1 + m (R - 1) f"
    assert time["relative"] == [1.05, 1.25]
    assert time["migration_seconds"] == pytest.approx(10 * 50e-6 + 1000 * 2e-6)
    assert time["error"] == 0.04
    for text in ("1.5", "0.5:0.5", "1.5:0", "1.5:1.5", "x:y"):
        with pytest.raises(UserError, match="must be TIME:FRACTION"):
            parse_calibration(text)


# --- the compiler's front -----------------------------------------------------


def test_sources_and_output_are_found() -> None:
    job = cc.parse(["-O2", "-o", "a.f90", "-I", "x.c", "a.c", "b.o", "-lm", "-x", "c", "data"])
    assert [job.arguments[at] for at in job.sources] == ["a.c", "data"]
    assert job.output_name == "a.f90"
    assert job.links and job.compiles
    assert not cc.parse(["-c", "a.c"]).links
    assert not cc.parse(["-E", "a.c"]).compiles
    assert cc.parse(["-MMD", "-MF", "d", "a.c"]).links
    assert cc.parse(["-oprogram", "a.c"]).output_name == "program"


def test_families() -> None:
    names = {
        "gcc": "gcc",
        "/usr/bin/g++-12": "gcc",
        "x86_64-linux-gnu-gfortran-12": "gcc",
        "clang-19": "clang",
        "clang++": "clang",
        "flang-new-19": "flang",
    }
    assert {name: cc.family(name) for name in names} == names
    with pytest.raises(UserError, match="neither GCC"):
        cc.family("tcc")


@pytest.mark.parametrize(
    "flag", ["-flto", "-flto=auto", "-static", "-fsanitize=address", "-fprofile-generate"]
)
def test_what_drops_accesses_is_refused(flag: str) -> None:
    with pytest.raises(UserError) as error:
        cc.refuse(["-O2", flag, "a.c"])
    assert error.value.message.startswith(f"{flag}: ")
    cc.refuse(["-O2", "-fsanitize=thread", "-shared"])


def test_the_exam_is_about_flags_that_matter() -> None:
    words = [
        "-O3",
        "-fopenmp",
        "-DX",
        "-I",
        "-O1",
        "-march=native",
        "--param",
        "a=1",
        "-ffast-math",
        "a.c",
        "-lm",
    ]
    assert relevant(words) == ["-O3", "-march=native", "--param", "a=1", "-ffast-math"]


def test_distributions() -> None:
    assert [(one.area, one.cycle) for one in parse_distributions("u=block,v*=cyclic,w=cyclic(4)")] == [
        ("u", 0),
        ("v*", 1),
        ("w", 4),
    ]
    assert parse_distributions(None) == ()
    for text in ("u", "u=diagonal", "u=block(2)", "u=cyclic(0)"):
        with pytest.raises(UserError, match="--distribute"):
            parse_distributions(text)


def test_a_distribution_of_an_array_that_is_not_there(tmp_path: Path) -> None:
    found = read_results([str(four_node_run().write(tmp_path / "r"))])
    wanted = parse_distributions("zzz=block,heap@*=cyclic,/main_mem?=block,/x[y]/=block")
    assert unmet(wanted, found) == [
        f"--distribute {name}: there is no array {name}; there are /main_mem/, heap@cg+0x1234"
        for name in ("zzz", "/x[y]/")
    ]
    assert unmet(wanted, Results()) == []


def process_counts(misses: list[list[int]], pages: int, m: float = 0.5) -> dict[str, Any]:
    total = sum(map(sum, misses))
    remote = total - misses[0][0] - misses[1][1]
    stated = {"ratio": 2.0, "m": [0.0, m], "migration_call_us": 50.0, "migration_page_us": 2.0}
    return {
        "run": {
            "accesses": 10,
            "misses": misses,
            "invalidation_misses": 1,
            "upgrades": 0,
            "shared_hits": 0,
            "oracle_remote_misses": 1,
        },
        "areas": [{"name": "a", "total_misses": total, "share": 1.0}],
        "moved_pages": pages,
        "move_calls": 1,
        "moved_bytes": 4096 * pages,
        "balancing": None,
        "time": estimate(stated, remote / total, 1, pages),
    }


def test_counts_of_several_processes_are_added() -> None:
    local, remote = process_counts([[1, 0], [0, 1]], 1), process_counts([[0, 6], [0, 0]], 100)
    joined = joined_counts([local, remote])
    assert joined is not None
    assert joined["run"]["misses"] == [[1, 6], [0, 1]]
    assert joined["run"]["remote_fraction"] == 0.75
    assert [one["share"] for one in joined["areas"]] == [0.25, 0.75]
    assert joined["moved_pages"] == 101
    assert joined["balancing"] is None
    did = {"scans": 2, "hint_faults": 9, "moved_pages": 4}
    balanced = joined_counts([{**local, "balancing": did}, {**remote, "balancing": did}])
    assert balanced is not None and balanced["balancing"] == {"scans": 4, "hint_faults": 18, "moved_pages": 8}
    assert joined["time"]["relative"] == [1.0, 1.375]
    assert joined["time"]["migration_seconds"] == pytest.approx(2 * 50e-6 + 101 * 2e-6)
    for other in (process_counts([[1, 0], [0, 1]], 1, m=0.9), {**local, "time": None}):
        mixed = joined_counts([local, other])
        assert mixed is not None and mixed["time"] is None
    assert joined_counts([]) is None


def test_hwlocs_synthetic_notation() -> None:
    machine = find("pack:2 numa:2 l3:2 core:4 pu:2")
    assert (machine.nodes, machine.cpus[0]) == (4, 16)
    assert machine.shared is not None and machine.shared.cpus == 8
    assert find("numa:3 core:5").cpu_count == 15
    for text, reason in (
        ("numa:x", "'numa:x' is not"),
        ("core:4 pu:2", "needs a level numa"),
        ("numa:99", "at most"),
        ("pack:99999999999 numa:2", "'pack:99999999999': must be 1 to 4096 of pack"),
        ("numa:2 core:" + "9" * 5000, "must be 1 to 4096 of core"),
        ("numa:0 core:1", "'numa:0': must be 1 to 4096 of numa"),
    ):
        with pytest.raises(UserError, match=reason):
            find(text)


# --- what is said ------------------------------------------------


def test_a_described_machines_costs_are_called_so(tmp_path: Path) -> None:
    """Not by the file in the run's temporary folder."""
    for path, said in (
        ("/tmp/homing-run-a_b1/costs.toml", "stated by the machine's description"),
        ("/tmp/homing-run-a_b1/2/costs.toml", "stated by the machine's description"),
        ("/home/user/costs.toml", "stated in /home/user/costs.toml"),
    ):
        writer = four_node_run()
        writer.fact("costs", f"stated in {path}")
        (process,) = read_results([str(writer.write(tmp_path / "r"))]).processes
        assert process.record.facts["costs"] == said


@pytest.mark.parametrize("columns", ["0", "-1", "x"])
def test_machines_are_listed_whatever_columns_says(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for words in (["machine"], ["machine", "sf15k"]):
        assert cli.main(words) == 0
        assert "sf15k" in capsys.readouterr().out

"""Machines that hwloc describes: what is taken from its XML, what is left unknown, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homing.errors import UserError
from homing.simulate.description import Wishes, description
from homing.simulate.hwloc_import import read_hwloc
from homing.simulate.machine_command import draw
from homing.simulate.machines import Cache, Machine, cache_problem, changed
from homing.simulate.places import RUNTIMES, placement
from tests.python.hwloc_files import L2, beside_hbm, cores, element, matrix, node, two_nodes, write


def check(machine: Machine) -> None:
    """It can be drawn, and simulated."""
    assert draw(machine)
    numbers = [cpu for cpus in machine.node_cpus for cpu in cpus]
    assert len(numbers) == len(set(numbers)) == machine.cpu_count
    assert not cache_problem(machine.private.bytes, machine.private.ways, machine.line)
    assert sorted(cpu for group in machine.cache_groups for cpu in group) == sorted(numbers)
    placements = {one: placement({}, machine, one) for one in RUNTIMES}
    assert description(machine, Wishes(placements=placements))


def test_nodes_cpus_caches_and_memory(tmp_path: Path) -> None:
    machine = read_hwloc(write(tmp_path, two_nodes(), matrix([10, 21, 21, 10])))
    check(machine)
    assert machine.cpus == (4, 4) and machine.memory == (1 << 30,) * 2
    assert machine.distances == ((10, 21), (21, 10))
    assert machine.private == Cache(1 << 20, 16)
    # 20 ways would leave sets that are no power of two: the size is kept.
    assert machine.shared == Cache(35 << 20, 35, 4)
    assert machine.sockets == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert machine.remarks == ()


def test_nodes_that_share_cpus_count_them_once(tmp_path: Path) -> None:
    machine = read_hwloc(write(tmp_path, beside_hbm()))
    check(machine)
    assert machine.cpu_count == 64 and machine.cpus == (16,) * 4
    assert machine.memory == (1 << 30,) * 4, "the nodes of ordinary memory, not those of HBM"
    assert "nodes 4 (HBM), 5 (HBM), 6 (HBM) and 7 (HBM) without CPUs" in machine.remarks[0]
    assert machine.private.ways == 16 and machine.shared is not None and machine.shared.ways == 16
    assert machine.shared.bytes == 4 << 20, "a cache on the memory's side is none of a CPU"


@pytest.mark.parametrize("subtype", ["HBM", "NVM", "CXL-DRAM", "GPUMemory", "MCDRAM"])
def test_the_node_of_ordinary_memory_has_the_cpus(tmp_path: Path, subtype: str) -> None:
    nodes = node(0, 0xFF, 4 << 30, subtype=subtype) + node(1, 0xF) + node(2, 0xF0)
    machine = read_hwloc(write(tmp_path, nodes + cores(0, 8)))
    assert machine.cpus == (4, 4) and machine.memory == (1 << 30,) * 2
    assert f"node 0 ({subtype}) without CPUs" in machine.remarks[0]
    same = read_hwloc(write(tmp_path, node(0, 0xFF, subtype=subtype) + node(1, 0xFF, 7 << 30) + cores(0, 8)))
    assert same.cpus == (8,) and same.memory == (7 << 30,)


@pytest.mark.parametrize(
    ("associativity", "ways", "remark"),
    [
        ("0", 16, "the associativity of the private cache is not known: 16 ways are assumed"),
        (None, 16, "the associativity of the private cache is not known: 16 ways are assumed"),
        ("-1", 64, "the private cache is fully associative: 64 ways stand for it"),
        ("1", 1, None),
        ("8", 8, None),
    ],
)
def test_associativity(tmp_path: Path, associativity: str | None, ways: int, remark: str | None) -> None:
    cache = {"cache_size": 1 << 20} | ({"cache_associativity": associativity} if associativity else {})
    machine = read_hwloc(write(tmp_path, node(0, 0xF) + cores(0, 4, **cache)))
    assert machine.private == Cache(1 << 20, ways)
    assert [one for one in machine.remarks if "associati" in one] == ([remark] if remark else [])


@pytest.mark.parametrize(("associativity", "ways"), [("0", 30), ("-1", 120)])
def test_the_ways_that_are_told_are_those_that_are_taken(
    tmp_path: Path, associativity: str, ways: int
) -> None:
    """15 MiB in 16 ways would be no power of two of sets."""
    cache = {"cache_size": 15 << 20, "cache_associativity": associativity}
    machine = read_hwloc(write(tmp_path, node(0, 0xF) + cores(0, 4, **cache)))
    assert machine.private == Cache(15 << 20, ways)
    (remark,) = [one for one in machine.remarks if "associati" in one]
    assert f"{ways} ways" in remark


def test_memory_that_is_not_told_is_unknown(tmp_path: Path) -> None:
    nodes = node(0, 0x3, None) + node(1, 0xC, 0) + node(2, 0x30)
    pages = '<page_type size="65536" count="1024"/><page_type size="2097152" count="2"/>'
    nodes += node(3, 0xC0, None).replace("></object>", f">{pages}</object>")
    machine = read_hwloc(write(tmp_path, nodes + cores(0, 8)))
    check(machine)
    assert machine.memory == (None, None, 1 << 30, (64 << 20) + (4 << 20))
    assert "the memory of nodes 0 and 1 is not known: it is never full" in machine.remarks
    assert machine.page == 65536
    assert any("memory unknown" in line for line in draw(machine))


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (matrix([10, 21, 31, 10]), ((10, 21), (31, 10))),
        (matrix([10, 31, 21, 10], indexes="1 0"), ((10, 21), (31, 10))),  # by <indexes>, not by order
        (matrix([10, 21, 31, 10], "101 102", indexing="gp"), ((10, 21), (31, 10))),
        (matrix([80, 160, 240, 80], name="mine", kind=6), ((10, 20), (30, 10))),  # of other units
        (matrix([10, 0, 255, 10]), ((10, 20), (254, 10))),
        # Bandwidths, hops, and what is not between nodes, are no latencies.
        (matrix([90, 30, 30, 90], kind=9, name="NUMABandwidth"), None),
        (matrix([0, 1, 1, 0], kind=36), None),
        (matrix([10, 90, 90, 10], type="Package"), None),
        (matrix([10, 21]), None),  # too few
        (matrix([10, 21, 21, 10], indexes="7 9"), None),  # of other nodes
        (matrix([9, 9, 9, 9], kind=9, name="X") + matrix([10, 17, 17, 10]), ((10, 17), (17, 10))),
        (matrix([10, 40, 40, 10], kind=6, name="user") + matrix([10, 17, 17, 10]), ((10, 17), (17, 10))),
    ],
)
def test_distances(tmp_path: Path, table: str, expected: tuple[tuple[float, ...], ...] | None) -> None:
    nodes = node(0, 0xF, gp_index=101) + node(1, 0xF0, gp_index=102)
    machine = read_hwloc(write(tmp_path, nodes + cores(0, 8), table))
    assert machine.distances == (expected or ((10, 20), (20, 10)))
    assert (expected is None) == any("no latencies" in one for one in machine.remarks)


def test_distances_of_some_nodes(tmp_path: Path) -> None:
    nodes = "".join(node(at, 0x3 << 2 * at) for at in range(3))
    machine = read_hwloc(write(tmp_path, nodes + cores(0, 6), matrix([10, 15, 15, 10], "0 2")))
    assert machine.distances == ((10, 20, 15), (20, 10, 20), (15, 20, 10))
    assert "4 distances are missing: 20 is assumed for them" in machine.remarks


def test_a_file_of_hwloc_1(tmp_path: Path) -> None:
    def core(cpu: int) -> str:
        unit = element("PU", 1 << cpu, os_index=cpu)
        cache = {"depth": 2, "cache_type": 0, "cache_size": 262144, "cache_associativity": 8}
        instructions = element("Cache", 1 << cpu, unit, depth=1, cache_type=2, cache_size=1 << 30)
        return element("Cache", 1 << cpu, element("Core", 1 << cpu, instructions), **cache)

    sockets = [
        element("NUMANode", 3 << 2 * at, element("Socket", 3 << 2 * at, core(2 * at) + core(2 * at + 1)),
                os_index=at, local_memory=2 << 30)
        for at in range(2)
    ]  # fmt: skip
    values = "".join(f'<latency value="{value}"/>' for value in ("1.000000", "2.100000", "2.1", "1.0"))
    distances = f'<distances nbobjs="2" relative_depth="1" latency_base="10.000000">{values}</distances>'
    path = tmp_path / "old.xml"
    path.write_text(f"<topology>{element('Machine', 15, *sockets, distances)}</topology>")
    machine = read_hwloc(str(path))
    check(machine)
    assert machine.distances == ((10, 21), (21, 10)) and machine.cpus == (2, 2)
    assert machine.private == Cache(262144, 8) and machine.shared is None
    assert machine.sockets == ((0, 1), (2, 3))
    path.write_text(f"<topology>{element('Machine', 3, core(0), core(1))}</topology>")
    assert read_hwloc(str(path)).cpus == (2,), "one node is not written down"


def test_cores_that_differ(tmp_path: Path) -> None:
    performance = cores(0, 6, 2, cache_size=1280 << 10, cache_associativity=10)
    efficient = element("L2Cache", 0xF000, cores(12, 4), cache_size=2 << 20, cache_associativity=16)
    chip = element("L3Cache", 0xFFFF, performance, efficient, cache_size=24 << 20, cache_associativity=12)
    machine = read_hwloc(write(tmp_path, node(0, 0xFFFF) + chip))
    check(machine)
    assert machine.private == Cache(1280 << 10, 10)
    assert machine.shared == Cache(24 << 20, 12, 16)
    assert machine.cores[:2] == ((0, 1), (2, 3)) and machine.cores[-1] == (15,)


def test_one_cache_of_several_nodes_is_divided(tmp_path: Path) -> None:
    inside = "".join(element("Group", 0xF << 4 * at, node(at, 0xF << 4 * at), cores(4 * at, 4, **L2))
                     for at in range(2))  # fmt: skip
    shared = element("L3Cache", 0xFF, inside, cache_size=32 << 20, cache_associativity=16)
    machine = read_hwloc(write(tmp_path, shared))
    check(machine)
    assert machine.shared == Cache(16 << 20, 16, 4)
    assert machine.cache_groups == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert any("is divided" in one for one in machine.remarks)
    assert changed(machine, None, None, "0").cache_groups == tuple((cpu,) for cpu in range(8))


def test_numbers_that_are_not_in_order(tmp_path: Path) -> None:
    machine = read_hwloc(write(tmp_path, node(2, 0x55) + node(5, 0xAA) + cores(0, 8)))
    check(machine)
    assert machine.node_cpus == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert "nodes are numbered anew: 0 is node 2, 1 is node 5" in machine.remarks


BOMB = "".join(f'<!ENTITY e{at + 1} "{f"&e{at};" * 10}">' for at in range(9))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((",0x000000f0", ",0x0x10"), "cpuset is '0x00000000,0x00000000,0x0x10', which is no set of hwloc"),
        ((",0x000000f0", ",0x0\\0"), "which is no set of hwloc"),
        (('local_memory="1073741824"', 'local_memory="1717\U0001f60060"'), "NUMANode: local_memory is "),
        (('local_memory="1073741824"', 'local_memory="1e99"'), "NUMANode: local_memory is '1e99'"),
        (('cache_size="1048576"', 'cache_size="-4"'), "L2Cache: cache_size is '-4'"),
        (('os_index="3"', 'os_index="three"'), "PU: os_index is 'three'"),
        (('os_index="3"', 'os_index="99999"'), "PU: os_index is 99999; CPUs have numbers below 65536"),
        (('os_index="3"', ""), "PU: os_index is missing"),
        (('cache_associativity="16"', f'cache_associativity="{"9" * 5000}"'), "cache_associativity is '999"),
        (('<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-0"?>'), "unknown encoding"),
        (('<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-7"?>'), "not an XML file of hwloc"),
        (('<?xml version="1.0"?>', '<?xml version="1.0" encoding="rot13"?>'), "not an XML file of hwloc"),
        (("</topology>", ""), "not an XML file of hwloc: no element found"),
        (("topology", "topologydiff"), "there is no topology in it"),
        (('type="NUMANode"', 'type="Misc"'), None),
        (('type="PU"', 'type="Misc"'), None),
        (("<topology", f'<!DOCTYPE topology [<!ENTITY e0 "lol">{BOMB}]><topology'), "declares an entity"),
        (
            ("<topology", '<!DOCTYPE topology [<!ENTITY x SYSTEM "file:///etc/passwd">]><topology'),
            "declares an entity",
        ),
        (("<topology", '<!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology'), None),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, change: tuple[str, str], reason: str | None) -> None:
    path = Path(write(tmp_path, two_nodes()))
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change))
    if reason is None:
        check(read_hwloc(str(path)))
        return
    with pytest.raises(UserError) as error:
        read_hwloc(str(path))
    assert error.value.status == 2
    assert error.value.message.startswith(f"{path}: ") and reason in error.value.message
    assert "\n" not in error.value.message and len(error.value.message) < 250


def test_too_many_nodes_is_said(tmp_path: Path) -> None:
    nodes = "".join(node(at, 1 << at) for at in range(64))
    assert read_hwloc(write(tmp_path, nodes + cores(0, 64))).nodes == 64
    path = Path(write(tmp_path, nodes + node(64, 1 << 64) + cores(0, 65)))
    with pytest.raises(UserError, match="has 65 NUMA nodes with CPUs; 64 can be simulated"):
        read_hwloc(str(path))


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.xml")
    (tmp_path / "folder.xml").mkdir()
    (tmp_path / "link.xml").symlink_to("/dev/zero")
    for name in ("pipe.xml", "folder.xml", "link.xml", "none.xml"):
        with pytest.raises(UserError, match=name):
            read_hwloc(str(tmp_path / name))
    with open(tmp_path / "huge.xml", "wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(UserError, match="too large: more than 16 MiB"):
        read_hwloc(str(tmp_path / "huge.xml"))


def test_a_deep_file_does_not_overflow_the_stack(tmp_path: Path) -> None:
    path = write(tmp_path, '<object type="Group">' * 20000 + two_nodes() + "</object>" * 20000)
    assert read_hwloc(path).cpu_count == 8


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.data())
def test_damaged_descriptions_end_in_a_machine_or_a_line(tmp_path: Path, data: st.DataObject) -> None:
    whole = write(tmp_path, two_nodes(), matrix([10, 21, 21, 10]))
    text = bytearray(Path(whole).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    Path(whole).write_bytes(text)
    try:
        check(read_hwloc(whole))
    except UserError as error:
        assert error.status == 2 and "\n" not in error.message

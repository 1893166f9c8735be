"""OMP_PLACES, OMP_PROC_BIND and the runtimes' own variables on a described machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homing.simulate import machines, places
from homing.simulate.description import Wishes, description
from homing.simulate.machines import (
    Cache,
    Machine,
    TimeModel,
    find,
)

tomllib = machines.tomllib


def default_placements(machine: Machine) -> dict[str, places.Placement]:
    return {one: places.placement({}, machine, one) for one in places.RUNTIMES}


def placed(machine: Machine, runtime: str = places.GCC, **environment: str) -> list[list[int]]:
    found = places.placement(environment, machine, runtime)
    assert not found.remarks, found.remarks
    return [list(place) for place in found.places]


def small(count: int = 512, **more: Any) -> Machine:
    time = TimeModel(1, (0, 1), 0, 0)
    cache = Cache(4096, 1)
    one = Machine("m", "", (count,), (1 << 30,), ((10.0,),), 4096, 64, cache, None, 1, 1, 1, time)
    return replace(one, **more)


@pytest.mark.parametrize("runtime", places.RUNTIMES)
def test_places_by_name_and_by_list(runtime: str) -> None:
    machine = find("epyc-nps4")
    assert len(placed(machine, runtime)) == 128
    assert len(placed(machine, runtime, OMP_PLACES="numa_domains")) == 8
    two = placed(machine, runtime, OMP_PLACES="LL_Caches(2)")
    assert two == [list(range(8)), list(range(8, 16))]
    for text, expected in (
        ("{0:4:2},{16}:2:16", [[0, 2, 4, 6], [16], [32]]),
        # What counts on is the place, by one where no stride is stated.
        ("{0:4}:4", [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]]),
        ("{0:4}:4:4", [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]),
        ("{0,1}:2:-1,{6}", None),
        ("{9}:3:-4", [[9], [5], [1]]),
        ("{9:3:-4}", [[1, 5, 9]]),
        # OpenMP 5.1's abbreviations.
        ("0,4,8", [[0], [4], [8]]),
        ("0:2", [[0], [1]]),
        ("4:3:8 , {7}", [[4], [12], [20], [7]]),
        (" { 0 , 1 } : 2 : 2 ", [[0, 1], [2, 3]]),
    ):
        if expected is not None:
            assert placed(machine, runtime, OMP_PLACES=text) == expected, text


def test_what_is_taken_out_of_places() -> None:
    machine = find("epyc-nps4")
    assert placed(machine, OMP_PLACES="{0,!1,1}") == [[0]]
    assert placed(machine, OMP_PLACES="{0}:3:1,!{1}") == [[0], [2]]
    assert placed(machine, OMP_PLACES="0:3,!1") == [[0], [2]]
    # libomp takes everything else.
    assert placed(small(4), places.LLVM, OMP_PLACES="!{1},0") == [[0, 2, 3], [0]]


@pytest.mark.parametrize(
    "text",
    [
        "{0",
        "boards",
        "cores,threads",
        "0-1",
        "{0},{1},",
        "",
        "{}",
        "{0:2,}",
        "{-1}",
        "{1}:2:x",
        "cores(",
        "é",
    ],
)
@pytest.mark.parametrize("runtime", places.RUNTIMES)
def test_a_value_that_cannot_be_read_is_said_and_as_good_as_none(runtime: str, text: str) -> None:
    machine = find("sf15k")
    found = places.placement({"OMP_PLACES": text}, machine, runtime)
    assert len(found.remarks) == 1
    assert found.remarks[0].startswith(f"OMP_PLACES={text}: ") and runtime in found.remarks[0]
    # libgomp leaves threads unbound, libomp takes cores.
    assert found.bindings == (("even",) if runtime == places.GCC else ("spread",))
    assert found.places == tuple((cpu,) for cpu in range(machine.cpu_count))


def test_cpus_that_are_not_there_are_left_out_and_said() -> None:
    machine = find("sf15k")
    for runtime in places.RUNTIMES:
        found = places.placement({"OMP_PLACES": "{14:4},{20},3"}, machine, runtime)
        assert found.places == ((14, 15), (3,))
        assert found.remarks == (
            "OMP_PLACES={14:4},{20},3: sf15k has no CPU 16, 17, 20: left out, 2 of 3 places remain",
        )
        none = places.placement({"OMP_PLACES": "{99}"}, machine, runtime)
        assert "sf15k has none of these CPUs" in none.remarks[0]


@given(st.integers(1, 64), st.integers(1, 4), st.integers(0, 60), st.sampled_from(places.RUNTIMES))
def test_listed_places_hold_the_cpus_of_their_interval(
    count: int, stride: int, first: int, runtime: str
) -> None:
    found = placed(small(), runtime, OMP_PLACES=f"{{{first}:{count}:{stride}}}")
    assert found == [[first + stride * at for at in range(count)]]


@given(st.text("{}:,!0123456789- +", max_size=20), st.sampled_from(places.RUNTIMES))
def test_whatever_is_written_ends_in_places_of_cpus_that_are_there(text: str, runtime: str) -> None:
    for name in ("OMP_PLACES", "GOMP_CPU_AFFINITY", "OMP_PROC_BIND"):
        found = places.placement({name: text}, small(8), runtime)
        assert found.places and all(place and set(place) <= set(range(8)) for place in found.places)
        assert found.bindings


def test_binding() -> None:
    def bindings(runtime: str = places.GCC, **environment: str) -> tuple[str, ...]:
        return places.placement(environment, find("sf15k"), runtime).bindings

    assert bindings() == ("even",)
    assert bindings(OMP_PROC_BIND=" close , SPREAD ") == ("close", "spread")
    assert bindings(OMP_PROC_BIND="MASTER") == ("primary",)
    assert bindings(OMP_PROC_BIND="false", OMP_PLACES="{0}") == ("even",)
    # What "true" is, and places without a policy, is for the runtime to say.
    for stated in ({"OMP_PROC_BIND": "True"}, {"OMP_PLACES": "cores"}):
        assert bindings(**stated) == ("close",)
        assert bindings(places.LLVM, **stated) == ("spread",)
    for wrong in ("near", "close,foo", "", "true,close"):
        found = places.placement({"OMP_PROC_BIND": wrong}, find("sf15k"), places.GCC)
        assert found.bindings == ("even",)
        assert found.remarks[0].startswith(f"OMP_PROC_BIND={wrong}: libgomp ignores it")


def test_the_runtimes_own_variables() -> None:
    machine = find("sf15k")
    for runtime, binding in ((places.GCC, "close"), (places.LLVM, "turns")):
        found = places.placement({"GOMP_CPU_AFFINITY": "3, 4-8:2 15"}, machine, runtime)
        assert found == places.Placement(((3,), (4,), (6,), (8,), (15,)), (binding,))
        wrong = places.placement({"GOMP_CPU_AFFINITY": "0_1"}, machine, runtime)
        assert wrong.bindings == ("even",) and "'0_1' is neither a CPU" in wrong.remarks[0]
    both = {"GOMP_CPU_AFFINITY": "1", "OMP_PLACES": "{0}"}
    assert places.placement(both, machine, places.GCC).places == ((0,),)
    llvm = places.placement(both, machine, places.LLVM)
    assert llvm.places == ((1,),) and "libomp goes by GOMP_CPU_AFFINITY" in llvm.remarks[0]
    intel = places.placement({"KMP_AFFINITY": "compact"}, machine, places.LLVM)
    assert intel.bindings == ("even",)
    assert intel.remarks[0].startswith("KMP_AFFINITY=compact is not used on a described machine")


def test_cpus_with_other_numbers_than_their_neighbours() -> None:
    # Two nodes, even and odd numbers, two CPUs a core (0 and 4, ...), and one number that is missing.
    ids = ((0, 4, 2), (1, 5, 3, 7))
    machine = small(
        cpus=(3, 4),
        memory=(1 << 30,) * 2,
        distances=((10.0, 20.0), (20.0, 10.0)),
        cpu_ids=ids,
        cores=((0, 4), (2,), (1, 5), (3, 7)),
    )
    assert placed(machine, OMP_PLACES="cores") == [[0, 4], [1, 5], [2], [3, 7]]
    assert placed(machine, places.LLVM, OMP_PLACES="cores") == [[0, 4], [2], [1, 5], [3, 7]]
    assert placed(machine, OMP_PLACES="threads(3)") == [[0], [1], [2]]
    assert placed(machine, OMP_PLACES="numa_domains") == [[0, 2, 4], [1, 3, 5, 7]]
    assert placed(machine) == [[0], [4], [2], [1], [5], [3], [7]]
    told = tomllib.loads(description(machine, Wishes(placements=default_placements(machine))))
    assert told["cpu_nodes"] == [0, 1, 0, 1, 0, 1, -1, 1]

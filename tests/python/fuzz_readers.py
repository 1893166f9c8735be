"""Everything that reads what others wrote, for the fuzzer (fuzzing.py): sound examples, and how one input is
read."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from homing.errors import UserError
from tests.python.fuzz_mutations import (
    Mutate,
    mutate_elf,
    mutate_facts,
    mutate_json,
    mutate_record,
    mutate_text,
)

TREE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Reader:
    """seeds: sound examples. read: reads one input, with a folder for its file. refused: further kinds of
    refusal. short: inputs in the short run of `make test`. pattern: names of files that can be examples."""

    name: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], object]
    mutate: Mutate
    refused: tuple[type[BaseException], ...] = ()
    short: int = 100
    pattern: str = ""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        yield


def _write(folder: Path, name: str, data: bytes) -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


@cache
def _built(name: str, *flags: str) -> bytes:
    source = {
        "c": "double field[1000]; static int other[100];\n"
        "static inline int f(int i) { return other[i] + 1; }\n"
        "struct s { int a; double b[3]; } pair;\n"
        "int main(void) { int n = 0; for (int i = 0; i < 100; i++) n += f(i) + (int)field[i]; return n; }\n",
        "f90": "program p\n real :: a(100)\n common /blk/ x(10), y\n save\n a = 1\n x(1) = a(2)\n"
        " print *, x(1), y\nend program\n",
    }[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"source.{name}"
        path.write_text(source)
        compiler = "gcc" if name == "c" else "gfortran"
        command = [compiler, "-g", *flags, "-o", f"{folder}/out", str(path)]
        subprocess.run(command, check=True, capture_output=True)
        return Path(folder, "out").read_bytes()


def _elf_seeds() -> list[bytes]:
    return [
        _built("c", "-O1"),
        _built("c", "-O2", "-gdwarf-4", "-gz"),
        _built("c", "-O2", "-gsplit-dwarf"),
        _built("f90", "-O1"),
    ]


def _record_seeds() -> list[bytes]:
    from tests.python.record_writer import four_node_run

    runs = [four_node_run(), four_node_run(ended=False), four_node_run(rank=3, program="/bin/true")]
    return [one.bytes()[: 200 << 10] for one in runs]


def _read_record(data: bytes, folder: Path) -> None:
    from homing.report.json import to_json
    from homing.report.results import read_results
    from homing.report.summary import print_summary

    path = _write(folder, "record", data)
    with _quiet():
        results = read_results([path], strict=True, budget=2.0)
        json.dumps(to_json(results), allow_nan=False)
        print_summary(results, "stdout")


def _read_elf(data: bytes, folder: Path) -> None:
    from homing.elf import read_elf

    read_elf(_write(folder, "program", data))


def _read_dwarf(data: bytes, folder: Path) -> None:
    from homing.record_rows import Area
    from homing.report.sources import Sources

    path = _write(folder, "program", data)
    sources = Sources()
    for offset in (0, 0x1000, 0x1040, 0x1130, 0x1150, 0x4000):
        sources.frames(path, offset)
    for name, offset, kind in (("field", 0, "static"), ("other", 0x4060, "static"), ("/blk/", 0, "static")):
        sources.declared(Area(1, 0, 8000, kind, name, path, 4096, 0.0, (), offset=offset))
    sources.remarks()


def _hwloc_seeds() -> list[bytes]:
    from tests.python import hwloc_files

    machines = (
        hwloc_files.describe(hwloc_files.two_nodes(), hwloc_files.matrix([10, 21, 21, 10])),
        hwloc_files.describe(hwloc_files.beside_hbm()),
    )
    files = sorted((TREE / "tests" / "hwloc").glob("*.xml"))
    return [*(machine.encode() for machine in machines), *(path.read_bytes() for path in files)]


def _read_hwloc(data: bytes, folder: Path) -> None:
    from homing.simulate import machines

    _describe(machines.find(_write(folder, "machine.xml", data)))


def _describe(machine: Any) -> None:
    from homing.simulate.description import Wishes, costs, description

    description(machine, Wishes())
    costs(machine)


def _machine_seeds() -> list[bytes]:
    return [path.read_bytes() for path in sorted((TREE / "simulator/machines").glob("*.toml"))]


def _read_machine(data: bytes, folder: Path) -> None:
    from homing.simulate import machines

    _describe(machines.find(_write(folder, "machine.toml", data)))


def _read_synthetic(data: bytes, folder: Path) -> None:
    from homing.simulate import machines

    text = _text(data)
    if ":" in text and not text.endswith((".xml", ".toml")) and "/" not in text:
        _describe(machines.find(text))


def _read_costs(data: bytes, folder: Path) -> None:
    from homing.costs import check_costs

    check_costs("--costs", _write(folder, "costs.toml", data))


def _read_options(data: bytes, folder: Path) -> None:
    from homing import environment
    from homing.options import check_environment, parse_size
    from homing.simulate import machines
    from homing.simulate.description import parse_distributions
    from homing.simulate.time_model import parse_calibration

    text = _text(data).replace("\0", "")
    parse_size(text)
    table = _table()
    for option in table:
        with contextlib.suppress(UserError):
            option.check(text)
        with contextlib.suppress(UserError):
            check_environment(table, {option.env: text})
    names = ("PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "OMP_PLACES", "OMP_PROC_BIND")
    variables = dict.fromkeys(names, text)
    environment.job_rank(variables)
    environment.expand_name(text, 1, variables)
    environment.bind_threads(dict(variables))
    machine = _sf15k()
    for read in (
        lambda: parse_calibration(text),
        lambda: parse_distributions(text),
        lambda: machines.changed(machine, text, None, None),
        lambda: machines.changed(machine, None, text, None),
        lambda: machines.changed(machine, None, None, text),
    ):
        with contextlib.suppress(UserError):
            read()


@cache
def _table() -> Any:
    from homing.options import load_options

    return load_options()


@cache
def _sf15k() -> Any:
    from homing.simulate import machines

    return machines.find("sf15k")


def _read_places(data: bytes, folder: Path) -> None:
    from homing.simulate import places

    text = _text(data)
    there = set(range(_sf15k().cpu_count))
    for name in places.VARIABLES:
        for runtime in places.RUNTIMES:
            found = places.placement({name: text}, _sf15k(), runtime)
            assert found.bindings and found.places
            assert all(place and there.issuperset(place) for place in found.places)


_COUNTS = {
    "run": {"remote_fraction": 0.5, "remote_misses": 10, "total_misses": 20},
    "areas": [{"name": "u", "remote_fraction": 0.5, "remote_misses": 10, "total_misses": 20}],
    "time": None,
}


def _read_expression(data: bytes, folder: Path) -> None:
    from homing.simulate.expressions import Expression

    tree = Expression.parse(_text(data))
    with contextlib.suppress(KeyError):  # the counts here are not whole
        tree.judge(_COUNTS)


def _read_cc(data: bytes, folder: Path) -> None:
    from unittest import mock

    from homing.simulate import cc, check

    text = _text(data)
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    name = words[0] if words and words[0] in ("gcc", "g++", "gfortran", "clang", "flang-new") else "gcc"
    response = _write(folder, "response", data)
    with (
        mock.patch.object(cc, "run", lambda words, verbose=False: 0),
        mock.patch.object(cc, "find_compiler", lambda name: f"/usr/bin/{name}"),
        mock.patch.object(cc, "_inlined", lambda clang: "x.bc"),
        mock.patch.object(cc, "_beside", lambda compiler, tool: tool),
        mock.patch.object(check, "examine", lambda *_: None),
        mock.patch.object(cc, "find_callbacks", lambda: "/callbacks"),
    ):
        for arguments in (words[1:], [f"@{response}"]):
            with contextlib.suppress(UserError):
                cc.compile_with(name, arguments)
                check.relevant(arguments)


def _facts_seeds() -> list[bytes]:
    files = {
        "sys/devices/system/node/online": "0-1",
        "sys/devices/system/cpu/online": "0-3",
        "sys/devices/system/node/node0/cpulist": "0-1",
        "sys/devices/system/node/node1/cpulist": "2-3",
        "sys/devices/system/node/node0/distance": "10 20",
        "sys/devices/system/node/node1/distance": "20 10",
        "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 4096 kB\nNode 0 MemFree: 1024 kB\n",
        "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 4096 kB\nNode 1 MemFree: 1024 kB\n",
        "proc/self/status": "Seccomp:\t2\nCapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3\n"
        "Mems_allowed_list:\t0-1\n",
        "proc/self/limits": "Max open files            1024     524288    files\n",
        "proc/self/cgroup": "0::/a\n",
        "proc/cpuinfo": "model name\t: CPU\nflags\t\t: fpu hypervisor\nvendor_id\t: GenuineIntel\n",
        "proc/meminfo": "MemTotal: 1 kB\nHugePages_Total:       0\nHugepagesize:       2048 kB\n",
        "proc/sys/kernel/osrelease": "6.1.0-18-amd64",
        "proc/sys/kernel/numa_balancing": "1",
        "proc/sys/kernel/perf_event_paranoid": "2",
        "proc/sys/kernel/perf_event_mlock_kb": "516",
        "proc/sys/vm/max_map_count": "65530",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/bus/event_source/devices/cpu/type": "4",
        "sys/bus/event_source/devices/cpu/events/mem-loads": "event=0xcd,umask=0x1,ldlat=3",
        "sys/fs/cgroup/memory.max": "max",
        "sys/fs/cgroup/a/memory.max": "1000000",
    }
    return [json.dumps(files).encode()]


def _read_facts(data: bytes, folder: Path) -> None:
    from homing.costs import machine_id, nodes_with_cpus
    from homing.doctor import diagnose, to_json
    from homing.machine_facts import read_facts

    with tempfile.TemporaryDirectory(dir=folder) as root:
        for name, text in json.loads(data).items():
            path = Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(str(text).encode("utf-8", "surrogatepass"))
        facts = read_facts(root, {})
        json.dumps(to_json(diagnose(facts), facts))
        nodes_with_cpus(root)
        machine_id(root)


def _counts_seeds() -> list[bytes]:
    phase = dict.fromkeys(
        ("accesses", "unknown_home_misses", "invalidation_misses", "upgrades", "untracked_misses"), 3
    )
    example = {
        "version": 1,
        "machine": {"nodes": 2, "cpus": 2, "cpus_per_node": 1},
        "cache": {"kib": 1024, "ways": 16, "line": 64, "coherent": True},
        "self_test": {"nodes_verified": 2, "mismatches": 0},
        "pages": 10,
        "phases": [{**phase, "phase": 1, "misses": [[1, 2], [3, 4]], "run_oracle_remote": 1}],
        "oracle": [{"first_phase": 1, "last_phase": 1, "misses": 10, "remote": 2}],
    }
    return [json.dumps(example).encode()]


def _read_counts(data: bytes, folder: Path) -> None:
    from homing.lab.counts import parse

    parse(_text(data))


def _fortran_seeds() -> list[bytes]:
    return [_FORTRAN.encode(), *_examples("*.f90")]


def _fixed_seeds() -> list[bytes]:
    return [_FIXED.encode(), *_examples("*.f")]


def _c_seeds() -> list[bytes]:
    return [_C.encode(), *_examples("*.c")]


def _examples(pattern: str) -> list[bytes]:
    texts = [text for folder in ("examples", "tests/translate") for text in examples(TREE / folder, pattern)]
    return [text for text in texts if b"homing" in text]


def examples(folder: Path, pattern: str) -> list[bytes]:
    """What the small files of a folder hold, and of those in it."""
    texts = [path.read_bytes() for path in sorted(folder.rglob(pattern)) if path.is_file()]
    return [text for text in texts if len(text) < 3000]


_FORTRAN = """program jacobi
  implicit none
  integer, parameter :: n = 64
  integer :: i, j, k
  real(8) :: a(0:n + 1, 0:n + 1), b(0:n + 1, 0:n + 1)
  !$homing distribute a(*, block), b(*, block)
  a = 0; b = 1
  do k = 1, 10
    !$omp parallel do private(i)
    !$homing on home(a(:, j))
    do j = 1, n
      do i = 1, n
        a(i, j) = (b(i - 1, j) + b(i + 1, j) + b(i, j - 1) + b(i, j + 1))*0.25d0
      end do
    end do
  end do
  print *, sum(a)
end program jacobi
"""
_FIXED = """      program p
      integer i
      real*8 a(100)
c$homing distribute a(block)
c$omp parallel do
c$homing on home(a(i))
      do 10 i = 1, 100
        a(i) = i
 10   continue
      end
"""
_C = """#include <stdio.h>
double a[100], b[100];
#pragma homing distribute a[block], b[block]
int main(void) {
    int i;
    #pragma omp parallel for
    #pragma homing on home(a[i])
    for (i = 1; i < 99; i++)
        a[i] = b[i - 1] + b[i + 1];
    printf("%g\\n", a[5]);
    return 0;
}
"""


#: In place of the system's headers, which take most of the time that a small C file takes to parse.
_HEADERS = {
    "stdio.h": "int printf(const char *, ...);\n",
    "stdlib.h": "#define NULL ((void *)0)\ntypedef unsigned long size_t;\nvoid *malloc(size_t);\n"
    "void *calloc(size_t, size_t);\nvoid free(void *);\nint atoi(const char *);\nvoid exit(int);\n",
    "math.h": "double fabs(double);\ndouble sqrt(double);\ndouble sin(double);\n",
    "omp.h": "int omp_get_thread_num(void);\nint omp_get_max_threads(void);\n",
}


def _translate(ending: str) -> Callable[[bytes, Path], None]:
    def read(data: bytes, folder: Path) -> None:
        from homing.translate.translation import TARGETS, Options, translate

        path = _write(folder, f"source{ending}", data)
        target = TARGETS[len(data) % len(TARGETS)]
        headers = folder / "headers"
        if not headers.exists():
            headers.mkdir()
            for name, text in _HEADERS.items():
                (headers / name).write_text(text)
        flags = (f"-isystem{headers}",)
        phases = target == "upm" and len(data) % 3 == 0
        with _quiet():
            translate([path], Options(target, phases=phases, flags=flags, processes=1))

    return read


def _translation_error() -> tuple[type[BaseException], ...]:
    from homing.translate.positions import TranslationError

    return (TranslationError,)


_CC = [
    b"gcc -O2 -fopenmp -g -c a.c -o a.o",
    b"clang -O3 -march=native -I include -DX='a b' a.c b.c -o program -lm -Wl,-rpath,/x",
    b"flang-new -fopenmp -module-dir mods -c x.f90",
    b"gfortran -J mods -x f95 - -o program -MD -MF deps -MT target",
    b"g++ -std=c++20 --param a=b -Xlinker -z x.cc @more -E",
]
_EXPRESSIONS = [
    b"remote_fraction > 10%",
    b'area.u.remote_fraction > 0.1 and not (total_misses < 1e3 or area."u v".remote_misses >= 5)',
    b"home_share.0 != 1 or any_area.remote_fraction == 0",
]
_PLACES = [b"{0:4}:4:4,{1,2},!{3}", b"threads(4)", b"numa_domains", b"{0:2:2}:3:1,{7}", b"0,4,8", b"0:4"]
_SYNTHETIC = [b"numa:4 core:8", b"pack:2 numa:2 core:8 pu:2", b"numa:2(memory=1GB) l2:1(size=1MB) pu:4"]
_OPTIONS = [
    b"64KiB", b"include=a*,exclude=b?", b"1.58:0.724", b"a=block,b=cyclic(4)", b"8MiB:2", b"%p.%r%%", b"1",
    b"on", b"auto", b"0.5", b"{0:4},{4:4}", b"true,close",
]  # fmt: skip


def readers() -> dict[str, Reader]:
    """All readers by name."""
    wrong = _translation_error()
    found = [
        Reader("records", _record_seeds, _read_record, mutate_record, short=150),
        Reader("elf", _elf_seeds, _read_elf, mutate_elf, short=500),
        Reader("dwarf", _elf_seeds, _read_dwarf, mutate_elf, short=40),
        Reader("hwloc", _hwloc_seeds, _read_hwloc, mutate_text, short=200, pattern="*.xml"),
        Reader("machine", _machine_seeds, _read_machine, mutate_text, short=200, pattern="*.toml"),
        Reader("synthetic", lambda: _SYNTHETIC, _read_synthetic, mutate_text, short=200),
        Reader("costs", lambda: [_COSTS], _read_costs, mutate_text, short=300),
        Reader("options", lambda: _OPTIONS, _read_options, mutate_text, short=30),
        Reader("places", lambda: _PLACES, _read_places, mutate_text, short=300),
        Reader("expressions", lambda: _EXPRESSIONS, _read_expression, mutate_text, short=500),
        Reader("cc", lambda: _CC, _read_cc, mutate_text, short=100),
        Reader("facts", _facts_seeds, _read_facts, mutate_facts, short=60),
        Reader("counts", _counts_seeds, _read_counts, mutate_json, short=300),
        Reader("fortran", _fortran_seeds, _translate(".f90"), mutate_text, wrong, short=25, pattern="*.f90"),
        Reader("fixed", _fixed_seeds, _translate(".f"), mutate_text, wrong, short=15, pattern="*.f"),
        Reader("c", _c_seeds, _translate(".c"), mutate_text, wrong, short=25, pattern="*.c"),
    ]
    return {one.name: one for one in found}


_COSTS = b"local_ns = 90\nremote_ns = 1.5e2\nmove_call_us = 40\nmove_page_us = 0\ncache_kib = 1024\n"

"""A fuzzer of everything that reads what others wrote (test_fuzz.py runs it).

    python -m tests.python.fuzzing READER [--count N] [--seconds S] [--seed N]

Each input is a mutated example: bytes, words and lines, numbers, nesting, values of JSON, the parts of an ELF
file. A reader may answer, or refuse with a UserError of one line (or its own kind that is printed so); any
other exception, and whatever takes more than PATIENCE seconds, is a finding. Inputs depend on the seed and
the number only, so a finding can be repeated.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from homing.errors import UserError
from homing.limits import TimeUp, time_limit

TREE = Path(__file__).resolve().parents[2]
#: Seconds after which a reader hangs. Machines that run the tests are busy.
PATIENCE = 20.0

Mutate = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Reader:
    """seeds: sound examples. read: reads one input, with a folder for its file. refused: further kinds of
    refusal. short: inputs in the short run of `make test`."""

    name: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes, Path], object]
    mutate: Mutate
    refused: tuple[type[BaseException], ...] = ()
    short: int = 100


@dataclass
class Outcome:
    """What became of the inputs of one reader."""

    reader: str
    count: int = 0
    refused: int = 0
    #: (number of the input, what happened, the input).
    findings: list[tuple[int, str, bytes]] = field(default_factory=list)


# Mutations

_NUMBERS = [0, 1, -1, 2, 7, 8, 255, 256, 4095, 4096, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1]
_NUMBERS += [2**64, 10**30, -(2**63)]
_SPECIAL = [
    "nan", "inf", "-inf", "1e309", "1e-400", "0x10", "1_000", "+1", "٣", "²", "", " ", "\t", "\r", "\0", "é",
    "\ufeff", "\u2028", "(", ")", "[", "]", "{", "}", "'", '"', ",", ":", ";", "!", "*", "%", "&", "\\", "=",
    "@", "$", "<", ">", "&#0;", "true", "null", "#pragma omp", "#pragma homing", "!$omp", "!$homing", "\\\n",
    "&\n", "/*", "*/", "//",
]  # fmt: skip
#: The kernel's limit for one word of a command line; larger texts only take longer.
_MOST_TEXT = 128 << 10
_TOKEN = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|[0-9]+|\s+|.", re.DOTALL)


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """Bytes are changed, cut, doubled and filled in."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(out) + 1)
        width = chance.choice((1, 2, 4, 8))
        choice = chance.randrange(7)
        if choice == 0 and out:
            out[at % len(out)] = chance.randrange(256)
        elif choice == 1 and out:
            out[at % len(out)] ^= 1 << chance.randrange(8)
        elif choice == 2:
            number = chance.choice(_NUMBERS) % (1 << (8 * width))
            out[at : at + width] = number.to_bytes(width, "little")
        elif choice == 3:
            del out[at : at + chance.choice((1, 4, 64, 1024))]
        elif choice == 4:
            out[at:at] = out[at : at + chance.choice((1, 4, 64))]
        elif choice == 5:
            out[at : at + width] = bytes([chance.choice((0, 255, 128))]) * width
        elif chance.randrange(4) == 0:
            del out[at:]
    return bytes(out)


def mutate_text(data: bytes, chance: random.Random) -> bytes:
    """Words, numbers and lines are changed, dropped, doubled, moved and nested."""
    tokens = _TOKEN.findall(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        if not tokens:
            tokens = [b" "]
        at = chance.randrange(len(tokens))
        choice = chance.randrange(11)
        if choice == 0:
            tokens[at] = chance.choice(_SPECIAL).encode()
        elif choice == 1:
            tokens[at] = str(chance.choice(_NUMBERS)).encode()
        elif choice == 2:
            del tokens[at : at + chance.choice((1, 1, 2, 8, 64))]
        elif choice == 3:
            tokens[at:at] = tokens[at : at + chance.choice((1, 2, 8))]
        elif choice == 4:
            tokens[at] = tokens[chance.randrange(len(tokens))]
        elif choice == 5:
            tokens.insert(at, chance.choice(_SPECIAL).encode())
        elif choice == 6:
            opening, closing = chance.choice(((b"(", b")"), (b"[", b"]"), (b"{", b"}")))
            depth = chance.choice((2, 50, 2000))
            tokens[at] = opening * depth + tokens[at] + closing * chance.choice((depth, 0))
        elif choice == 7:
            tokens[at] = (tokens[at] * chance.choice((2, 10, 5000)))[: 1 << 16]
        elif choice == 8:
            lines = b"".join(tokens).splitlines(keepends=True)
            chance.shuffle(lines[: chance.randrange(2, 6)])
            line = chance.randrange(len(lines) or 1)
            lines[line : line + 1] = chance.choice(([], lines[line : line + 1] * 2, lines[line : line + 1]))
            tokens = _TOKEN.findall(b"".join(lines))
        elif choice == 9 and chance.randrange(3) == 0:
            del tokens[at:]
        elif choice == 10:
            tokens[at] = bytes([chance.randrange(256)])
    return b"".join(tokens)[:_MOST_TEXT]


def _mutate_value(value: Any, chance: random.Random, depth: int = 0) -> Any:
    if isinstance(value, dict) and value and chance.randrange(6):
        key = chance.choice(list(value))
        changed = dict(value)
        if chance.randrange(5) == 0:
            del changed[key]
        else:
            changed[key] = _mutate_value(value[key], chance, depth + 1)
        return changed
    if isinstance(value, list) and value and chance.randrange(6):
        at = chance.randrange(len(value))
        choice = chance.randrange(4)
        if choice == 0:
            return value[:at] + value[at + 1 :]
        if choice == 1:
            return [*value, value[at]]
        return [*value[:at], _mutate_value(value[at], chance, depth + 1), *value[at + 1 :]]
    others: list[Any] = [None, True, [], {}, "", "x", [[]], {"a": 1}, 1.5, float("nan"), float("inf")]
    others += [*_NUMBERS, *_SPECIAL]
    return chance.choice(others)


def mutate_record(data: bytes, chance: random.Random) -> bytes:
    """The header's values, or bytes of the rows."""
    if chance.randrange(2):
        head = data[: 16 << 10]
        return (head if chance.randrange(8) else mutate_bytes(head, chance)) + mutate_bytes(
            data[16 << 10 :], chance
        )
    begin = data.index(b"\n") + 1
    header = json.loads(data[begin : data.index(b"\n", begin)])
    for _ in range(chance.choice((1, 1, 2, 4))):
        header = _mutate_value(header, chance)
    text = json.dumps(header).encode()
    body = data[16 << 10 :]
    return (data[:begin] + text + b"\n").ljust(16 << 10, b"\0") + body


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    """Values of a JSON text; sometimes its words."""
    if chance.randrange(4) == 0:
        return mutate_text(data, chance)
    value = json.loads(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        value = _mutate_value(value, chance)
    return json.dumps(value).encode()


def mutate_elf(data: bytes, chance: random.Random) -> bytes:
    """Bytes within one section, a field of a section's header, or anything."""
    out = bytearray(data)
    table = int.from_bytes(data[40:48], "little")
    count = int.from_bytes(data[60:62], "little")
    for _ in range(chance.choice((1, 1, 2, 4))):
        entry = table + 64 * chance.randrange(count)
        choice = chance.randrange(8)
        if choice == 0:
            width = chance.choice((4, 8))
            at = entry + 8 * chance.randrange(8)
            out[at : at + width] = (chance.choice(_NUMBERS) % (1 << 8 * width)).to_bytes(width, "little")
        elif choice == 1 and chance.randrange(4) == 0:
            return mutate_bytes(bytes(out), chance)
        else:
            offset = int.from_bytes(data[entry + 24 : entry + 32], "little")
            size = int.from_bytes(data[entry + 32 : entry + 40], "little")
            if size and offset + size <= len(out):
                changed = mutate_bytes(bytes(out[offset : offset + size]), chance)[:size]
                out[offset : offset + size] = changed.ljust(size, b"\0")
    return bytes(out)


# Readers


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


def mutate_facts(data: bytes, chance: random.Random) -> bytes:
    """Files of a system: one is dropped, or its text changed."""
    files = json.loads(data)
    for _ in range(chance.choice((1, 1, 2, 4))):
        name = chance.choice(list(files))
        if chance.randrange(5) == 0 and len(files) > 1:
            del files[name]
        else:
            files[name] = mutate_text(files[name].encode("utf-8", "replace"), chance).decode(
                "utf-8", "replace"
            )
    return json.dumps(files).encode()


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


def _examples(*patterns: str) -> list[bytes]:
    folders = (TREE / "examples", TREE / "tests/translate", Path("/work/shared/cases/translate"))
    found = [path for folder in folders for one in patterns for path in sorted(folder.rglob(one))]
    texts = [path.read_bytes() for path in found]
    return [text for text in texts if len(text) < 3000 and b"homing" in text]


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


def _translate(ending: str) -> Callable[[bytes, Path], None]:
    def read(data: bytes, folder: Path) -> None:
        from homing.translate.translation import TARGETS, Options, translate

        path = _write(folder, f"source{ending}", data)
        target = TARGETS[len(data) % len(TARGETS)]
        with _quiet():
            translate([path], Options(target, phases=target == "upm" and len(data) % 3 == 0, processes=1))

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
        Reader("hwloc", _hwloc_seeds, _read_hwloc, mutate_text, short=200),
        Reader("machine", _machine_seeds, _read_machine, mutate_text, short=200),
        Reader("synthetic", lambda: _SYNTHETIC, _read_synthetic, mutate_text, short=200),
        Reader("costs", lambda: [_COSTS], _read_costs, mutate_text, short=300),
        Reader("options", lambda: _OPTIONS, _read_options, mutate_text, short=30),
        Reader("places", lambda: _PLACES, _read_places, mutate_text, short=300),
        Reader("expressions", lambda: _EXPRESSIONS, _read_expression, mutate_text, short=500),
        Reader("cc", lambda: _CC, _read_cc, mutate_text, short=100),
        Reader("facts", _facts_seeds, _read_facts, mutate_facts, short=60),
        Reader("counts", _counts_seeds, _read_counts, mutate_json, short=300),
        Reader("fortran", _fortran_seeds, _translate(".f90"), mutate_text, wrong, short=25),
        Reader("fixed", _fixed_seeds, _translate(".f"), mutate_text, wrong, short=15),
        Reader("c", _c_seeds, _translate(".c"), mutate_text, wrong, short=25),
    ]
    return {one.name: one for one in found}


_COSTS = b"local_ns = 90\nremote_ns = 1.5e2\nmove_call_us = 40\nmove_page_us = 0\ncache_kib = 1024\n"


def make_input(reader: Reader, seeds: list[bytes], seed: int, number: int) -> bytes:
    """The input with this number."""
    chance = random.Random(f"{reader.name} {seed} {number}")
    return reader.mutate(chance.choice(seeds), chance)


def judge(reader: Reader, data: bytes, folder: Path) -> str:
    """Read one input: "read", "refused", or what is wrong."""
    try:
        with time_limit(PATIENCE):
            reader.read(data, folder)
    except UserError as error:
        return "a refusal of several lines" if "\n" in error.message else "refused"
    except TimeUp:
        return f"takes more than {PATIENCE:g} s"
    except reader.refused:
        return "refused"
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        at = [f"{os.path.basename(one.filename)}:{one.lineno}" for one in frames[-3:]]
        return f"{type(error).__name__}: {str(error)[:200]} at {' < '.join(reversed(at))}"
    return "read"


def run(reader: Reader, seed: int, count: int | None = None, seconds: float | None = None) -> Outcome:
    """Read inputs until there were so many, or so many seconds are over."""
    outcome = Outcome(reader.name)
    seeds = reader.seeds()
    end = None if seconds is None else time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        while (count is None or outcome.count < count) and (end is None or time.monotonic() < end):
            data = make_input(reader, seeds, seed, outcome.count)
            what = judge(reader, data, Path(name))
            outcome.refused += what == "refused"
            if what not in ("read", "refused"):
                outcome.findings.append((outcome.count, what, data))
            outcome.count += 1
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.python.fuzzing")
    parser.add_argument("reader", choices=[*readers(), "all"])
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="a folder for the inputs that were found")
    given = parser.parse_args()
    chosen = list(readers().values()) if given.reader == "all" else [readers()[given.reader]]
    bad = 0
    for reader in chosen:
        begin = time.monotonic()
        outcome = run(reader, given.seed, given.count, given.seconds)
        took = time.monotonic() - begin
        print(
            f"{reader.name}: {outcome.count:,} inputs in {took:.0f} s, {outcome.refused:,} refused, "
            f"{len(outcome.findings)} findings",
            flush=True,
        )
        kinds: dict[str, list[int]] = {}
        for number, what, data in outcome.findings:
            kinds.setdefault(what, []).append(number)
            if given.keep and len(kinds[what]) == 1:
                Path(given.keep, f"{reader.name}-{given.seed}-{number}").write_bytes(data)
        for what, numbers in kinds.items():
            print(f"    {len(numbers)} x {what} (input {numbers[0]})", flush=True)
        bad += len(outcome.findings)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

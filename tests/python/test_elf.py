"""Which programs a preloaded library can help: real programs of each kind, and files that are damaged."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homing.elf import judge, read_elf
from tests.python.conftest import Command, compile_c

MAIN = "int main(void) { return 0; }\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("elf") / "program", MAIN)


def test_an_ordinary_program(program: Path, fake_library: Path) -> None:
    verdict = judge(str(program), str(fake_library))
    assert (verdict.preload, verdict.reason) == (True, "")
    elf = read_elf(str(program))
    assert elf is not None
    assert elf.bits == 64
    assert any(name.startswith(b"libc.so") for name in elf.needed)


@pytest.mark.parametrize("flags", [["-static"], ["-static-pie"], ["-no-pie", "-static"]])
def test_a_static_program(flags: list[str], tmp_path: Path, fake_library: Path) -> None:
    try:
        program = compile_c(tmp_path / "program", MAIN, *flags)
    except subprocess.CalledProcessError:
        pytest.skip("no static C library here")
    verdict = judge(str(program), str(fake_library))
    assert verdict.preload  # for its children
    assert "statically" in verdict.reason


@pytest.mark.parametrize(
    ("flag", "name"),
    [("address", "AddressSanitizer"), ("thread", "ThreadSanitizer"), ("leak", "LeakSanitizer")],
)
@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_a_sanitized_program(flag: str, name: str, compiler: str, tmp_path: Path, fake_library: Path) -> None:
    try:
        program = compile_c(tmp_path / "program", MAIN, f"-fsanitize={flag}", compiler=compiler)
    except (subprocess.CalledProcessError, FileNotFoundError):
        pytest.skip(f"no {flag} sanitizer of {compiler} here")
    verdict = judge(str(program), str(fake_library))
    assert not verdict.preload
    assert name in verdict.reason


def test_an_undefined_behaviour_sanitizer_is_no_obstacle(tmp_path: Path, fake_library: Path) -> None:
    program = compile_c(tmp_path / "program", MAIN, "-fsanitize=undefined")
    assert judge(str(program), str(fake_library)).preload


def test_a_sanitized_program_runs_without_us_and_the_summary_says_so(homing: Command, tmp_path: Path) -> None:
    choice = 'getenv("LD_PRELOAD") ? "preloaded" : "alone"'
    source = f"#include <stdio.h>\n#include <stdlib.h>\nint main(void) {{ puts({choice}); }}\n"
    program = compile_c(tmp_path / "program", source, "-fsanitize=address")
    done = homing("run", "--", program)
    assert (done.returncode, done.stdout) == (0, "alone\n")
    assert "AddressSanitizer" in done.stderr
    assert done.stderr.count("\n") == 1


def test_another_architecture_and_another_c_library(
    program: Path, tmp_path: Path, fake_library: Path
) -> None:
    image = bytearray(program.read_bytes())
    struct.pack_into("<H", image, 18, 183 if image[18] != 183 else 62)
    (tmp_path / "foreign").write_bytes(image)
    verdict = judge(str(tmp_path / "foreign"), str(fake_library))
    assert not verdict.preload
    assert "AArch64" in verdict.reason
    assert "x86-64" in verdict.reason
    loader = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"
    musl = compile_c(tmp_path / "musl", MAIN, loader)
    assert not judge(str(musl), str(fake_library)).preload


def test_scripts_and_files_that_are_not_there(tmp_path: Path, fake_library: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    for name in ("script", "nothing"):
        assert judge(str(tmp_path / name), str(fake_library)).reason == ""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to give a file away")
def test_set_uid_and_file_capabilities(program: Path, tmp_path: Path, fake_library: Path) -> None:
    own = tmp_path / "own"
    own.write_bytes(program.read_bytes())
    os.chown(own, 12345, 12345)
    own.chmod(0o4755)
    assert "set-uid" in judge(str(own), str(fake_library)).reason
    assert judge(str(own), str(fake_library), user=12345).reason == ""
    own.chmod(0o2755)
    assert "set-gid" in judge(str(own), str(fake_library)).reason
    own.chmod(0o755)
    capability = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)
    try:
        os.setxattr(own, "security.capability", capability)
    except OSError:
        pytest.skip("this file system holds no capabilities")
    assert "capabilities" in judge(str(own), str(fake_library), user=1000).reason
    assert judge(str(own), str(fake_library), user=0).reason == ""


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_programs_never_raise(
    data: st.DataObject, program: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    image = bytearray(program.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        # The headers and the dynamic section are what is read.
        position = data.draw(st.one_of(st.integers(0, 1200), st.integers(0, len(image) - 1)))
        image[position] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(image[: data.draw(st.integers(0, len(image)))])
    elf = read_elf(str(path))
    assert elf is None or isinstance(elf.sanitizer, str)

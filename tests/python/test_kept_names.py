"""What tells one build of a file from another, and names that a record keeps."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from homing import record_format
from homing.record_additions import add_to_record
from homing.records import read_record
from homing.report import identity
from homing.report.dwarf import ObjectInfo
from homing.report.html import page
from homing.report.names import Namer
from homing.report.results import read_results
from homing.report.sources import CODE, DECLARATION
from tests.patience import PATIENCE
from tests.python.record_writer import RecordWriter

SOURCE = """\
#include <stdlib.h>
double table[100000];
double *volatile x;
int main(void) { x = malloc(800000); return table[3] != 0; }
"""


def build(folder: Path, *flags: str, name: str = "a.out", text: str = SOURCE) -> Path:
    (folder / "a.c").write_text(text)
    command = ["gcc", "-g", "-O0", *flags, "a.c", "-o", name]
    subprocess.run(command, check=True, cwd=folder, timeout=PATIENCE)
    return folder / name


def return_address(program: Path) -> int:
    found = subprocess.run(["objdump", "-d", program], capture_output=True, check=True).stdout
    text = found.decode(errors="replace")
    lines = text.splitlines()
    at = next(at for at, line in enumerate(lines) if re.search(r"call.*<malloc@plt>", line))
    return int(lines[at + 1].split(":")[0], 16)


def id_of(program: Path) -> str:
    with open(program, "rb") as file:
        return "build-id " + identity.build_id(ELFFile(file))


def difference(program: Path, stated: str, start: float = 0.0) -> str:
    with open(program, "rb") as file:
        return identity.difference(str(program), ELFFile(file), stated, start)


def test_a_build_is_known_by_its_build_id(tmp_path: Path) -> None:
    first = build(tmp_path)
    stated = id_of(first)
    assert difference(first, stated) == ""
    os.utime(first, (1, 1))
    assert difference(first, stated) == "", "the time does not matter"
    assert difference(build(tmp_path, text="\n" + SOURCE), stated) == "build-id differs"


def test_a_file_without_a_build_id_is_known_by_size_and_time(tmp_path: Path) -> None:
    program = build(tmp_path, "-Wl,--build-id=none")
    status = program.stat()
    stated = f"file {status.st_size} {status.st_mtime_ns}"
    assert difference(program, stated) == ""
    os.utime(program, ns=(1, status.st_mtime_ns + 1))
    assert difference(program, stated) == "no build-id, and the time of change differs"
    assert "size differs" in difference(program, f"file 3 {status.st_mtime_ns}")


def test_where_nothing_is_stated_a_file_that_is_newer_than_the_run_is_another(tmp_path: Path) -> None:
    program = build(tmp_path)
    changed = program.stat().st_mtime
    assert difference(program, "", changed + 60) == ""
    assert difference(program, "", changed - 60) == "it was changed after the start"


def test_debug_files_of_the_same_build_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = build(tmp_path)
    address, stated = return_address(program), id_of(program)
    debug = tmp_path / "a.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    words = ["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program, tmp_path / "stripped"]
    subprocess.run(words, check=True, cwd=tmp_path)
    stripped = str(tmp_path / "stripped")
    assert ObjectInfo(stripped).place(address - 1).line == 4  # type: ignore[union-attr]
    # Where distributions put it, for a program that is gone.
    folder = tmp_path / "debug"
    number = stated.split()[1]
    (folder / number[:2]).mkdir(parents=True)
    (folder / number[:2] / f"{number[2:]}.debug").write_bytes(debug.read_bytes())
    monkeypatch.setattr(identity, "DEBUG_FOLDER", str(folder))
    gone = ObjectInfo(str(tmp_path / "gone"), identity=stated)
    assert gone.place(address - 1).line == 4  # type: ignore[union-attr]
    monkeypatch.undo()
    # That of another build has the link's name.
    other = build(tmp_path, name="other", text="\n\n" + SOURCE)
    subprocess.run(["objcopy", "--only-keep-debug", other, debug], check=True)
    place = ObjectInfo(stripped).place(address - 1)
    assert place is None or not place.line


def record_of(program: Path, folder: Path, end: bool = True, **header: Any) -> Path:
    writer = RecordWriter(program=str(program), **{"host": os.uname().nodename, **header})
    path = writer.text(str(program))
    writer.row("object", path=path, identity=writer.text(id_of(program)))
    with open(program, "rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab")
        table = symbols.get_symbol_by_name("table")[0]["st_value"]  # type: ignore[union-attr]
    area = {"granule": 4096, "bytes": 800000}
    origin = {"origin": [return_address(program)], "origin_object": [path]}
    writer.row("area", id=1, begin=1 << 20, kind=2, name=writer.text("heap@a.out+0x1"), **origin, **area)
    name = writer.text("table")
    writer.row("area", id=2, begin=1 << 24, kind=1, name=name, object=path, offset=table, **area)
    if end:
        writer.row("end", time=1.0)
    return writer.write(folder / "r", unused_rows=0)


def titles(record: Path) -> tuple[set[str], list[str]]:
    read = read_record(str(record))
    namer = Namer()
    namer.begin(read)
    return {name.title for _, name in namer.names(read.areas).values()}, namer.remarks()


NAMES = {"x (a.c:4)", "table (a.c:2)"}


@pytest.mark.parametrize("ended", [True, False])
def test_names_that_are_kept_outlive_the_program(ended: bool, tmp_path: Path) -> None:
    record = record_of(build(tmp_path), tmp_path, end=ended, pid=2**22 + 1)
    read = read_record(str(record))
    namer = Namer()
    namer.begin(read)
    namer.names(read.areas)
    assert {what for _, what, _ in namer.sources.found} == {CODE, DECLARATION}
    add_to_record(str(record), sources=namer.sources.found)
    again = read_record(str(record))
    assert not again.truncated and (again.end is not None) == ended
    assert len(again.areas) == 2
    if not ended:
        assert record.stat().st_size % record_format.PIECE_BYTES == 0
    (tmp_path / "a.out").unlink()
    (tmp_path / "a.c").unlink()
    assert titles(record) == (NAMES, [])


def test_paths_that_are_not_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / "m\udcfcller \x1b"
    folder.mkdir()
    record = record_of(build(folder, name="pr\udcf6g"), tmp_path)
    read = read_record(str(record))
    assert read.program == f"{tmp_path}/m?ller ?/pr?g"
    assert titles(record) == (NAMES, [])
    text = page(read_results([str(record)]))
    assert "malloc(800000)" in text and "not on this machine" not in text
    namer = Namer()
    namer.begin(read)
    namer.names(read.areas)
    add_to_record(str(record), sources=namer.sources.found)
    record_format._named.clear()
    text = page(read_results([str(record)]))
    assert "not on this machine" not in text and text.encode("utf-8")
    (folder / "pr\udcf6g").unlink()
    assert titles(record) == (NAMES, [])


def test_names_shown_alike_are_of_no_file() -> None:
    assert record_format.shown("/tmp/\udcf1") == record_format.shown("/tmp/\x1b") == "/tmp/?"
    assert record_format.named("/tmp/?") == "/tmp/?"


def test_nothing_is_written_beside_a_process_at_work(tmp_path: Path) -> None:
    """Its rows and ours would have one place."""
    record = record_of(build(tmp_path), tmp_path, end=False, pid=os.getpid())
    before = record.read_bytes()
    add_to_record(str(record), sources={("/a", CODE, 1): "[]"})
    assert record.read_bytes() == before


def test_a_rebuilt_program_gives_no_names(tmp_path: Path) -> None:
    program = build(tmp_path)
    record = record_of(program, tmp_path)
    assert titles(record)[0] == NAMES
    build(tmp_path, text="\n\n" + SOURCE)
    names, remarks = titles(record)
    assert names == {"heap@a.out+0x1", "table"}
    assert remarks == ["a.out was rebuilt since this run (build-id differs): no source lines"]


def test_a_program_that_ran_elsewhere_was_not_rebuilt(tmp_path: Path) -> None:
    program = build(tmp_path)
    record = record_of(program, tmp_path, host="node17")
    build(tmp_path, text="\n\n" + SOURCE)
    remark = "a.out here is not the one that ran on node17 (build-id differs): no source lines"
    assert titles(record)[1] == [remark]


@pytest.mark.parametrize(
    "text", ["", "[", "null", "7", '["f"]', '[[1,2,"x",4,5,6]]', '[["f","a",1e999,"",0,null]]', "[[[[]]]]"]
)
def test_kept_names_that_make_no_sense_are_none(text: str, tmp_path: Path) -> None:
    program = build(tmp_path)
    record = record_of(program, tmp_path)
    offset = return_address(program)
    sources = {(str(program), CODE, offset): text, (str(program), DECLARATION, 5): text}
    add_to_record(str(record), sources=sources)
    assert titles(record)[0] == NAMES


def test_kept_texts_drive_no_terminal(tmp_path: Path) -> None:
    program = build(tmp_path)
    record = record_of(program, tmp_path)
    text = '[["\\u001b[2J","/a\\u001b.c",3,"x = malloc(1);",false,null]]'
    add_to_record(str(record), sources={(str(program), CODE, return_address(program)): text})
    assert "x (a?.c:3)" in titles(record)[0]

"""Damaged debug information: names are missing then, and nothing else is. (A summary was lost where the
information of a static array was damaged.)"""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from homing.record_rows import Area
from homing.report import dwarf
from homing.report.inlined import uleb
from homing.report.sources import Sources
from homing.report.statements import statement
from tests.patience import PATIENCE
from tests.python.conftest import Command
from tests.python.record_writer import RecordWriter

SOURCE = """double field[1000];
int main(void) {
    for (int k = 0; k < 1000; k++) field[k] += k;
    return (int)field[5];
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A program with a static array, compiled with further flags."""
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "source.c").write_text(SOURCE)

    def build(*flags: str) -> Path:
        path = folder / ("program" + "".join(flags))
        if not path.exists():
            subprocess.run(
                ["gcc", "-g", "-O0", *flags, "source.c", "-o", str(path)],
                cwd=folder,
                check=True,
                timeout=PATIENCE,
            )
        return path

    return build


def sections(data: bytes) -> dict[str, tuple[int, int, int]]:
    """name -> (offset of the header, offset of the bytes, size) of a 64-bit little-endian ELF file."""
    table = struct.unpack_from("<Q", data, 40)[0]
    size, count, names = struct.unpack_from("<3H", data, 58)
    entries = [table + size * number for number in range(count)]
    texts = struct.unpack_from("<QQ", data, entries[names] + 24)[0]
    found = {}
    for entry in entries:
        begin = texts + struct.unpack_from("<I", data, entry)[0]
        name = data[begin : data.index(b"\0", begin)].decode()
        found[name] = (entry, *struct.unpack_from("<QQ", data, entry + 24))
    return found


def named(path: Path) -> tuple[str, int, list[str]]:
    """File and line of the array's declaration ("" and 0: not known), and what is remarked. Never raises."""
    sources = Sources()
    area = Area(1, 0, 8000, "static", "field", str(path), 4096, 0.0, ())
    declared = sources.declared(area)
    for offset in (0x1000, 0x1130, 0x1150):
        sources.frames(str(path), offset)
    sources.note_missing(str(path))
    if declared is None:
        return "", 0, sources.remarks()
    return Path(declared.variable.file).name, declared.variable.line, sources.remarks()


def test_sound_information_is_used(built: Callable[..., Path]) -> None:
    assert named(built()) == ("source.c", 1, [])
    assert named(built("-gz")) == ("source.c", 1, [])


FILLS = {
    "zeros": lambda size: bytes(size),
    "ones": lambda size: b"\xff" * size,
    "large numbers": lambda size: (b"\xff\xff\xff\x7f" * size)[:size],
    "continued": lambda size: b"\x80" * size,
}


@pytest.mark.parametrize("section", [".debug_info", ".debug_abbrev", ".debug_line", ".debug_aranges",
                                     ".debug_str", ".debug_line_str", ".symtab", ".strtab", ".shstrtab",
                                     ".note.gnu.build-id"])  # fmt: skip
def test_a_damaged_section(section: str, built: Callable[..., Path], tmp_path: Path) -> None:
    sound = built().read_bytes()
    _, offset, size = sections(sound)[section]
    for what, fill in FILLS.items():
        for skipped in (0, 1, 4, 12, size // 2):
            data = bytearray(sound)
            data[offset + skipped : offset + size] = fill(max(0, size - skipped))
            path = tmp_path / "program"
            path.write_bytes(data)
            begin = time.process_time()
            assert all("\n" not in one for one in named(path)[2])
            assert time.process_time() - begin < 30, (section, what, skipped)


@pytest.mark.parametrize("field", range(1, 8))
def test_damaged_headers_of_sections(field: int, built: Callable[..., Path], tmp_path: Path) -> None:
    sound = built("-gz").read_bytes()
    for section in (".debug_info", ".debug_abbrev", ".debug_line", ".symtab"):
        for value in (0, 1, 2**31, 2**63 - 1, 2**64 - 1):
            data = bytearray(sound)
            struct.pack_into("<Q", data, sections(sound)[section][0] + 8 * field, value)
            (tmp_path / "program").write_bytes(data)
            named(tmp_path / "program")


def test_a_compressed_section_that_would_fill_the_memory(built: Callable[..., Path], tmp_path: Path) -> None:
    data = bytearray(built("-gz").read_bytes())
    _, offset, _ = sections(bytes(data))[".debug_info"]
    struct.pack_into("<Q", data, offset + 8, 1 << 50)  # Elf64_Chdr.ch_size
    (tmp_path / "program").write_bytes(data)
    assert named(tmp_path / "program")[:2] == ("", 0)


def test_names_send_nothing_to_a_terminal(built: Callable[..., Path], tmp_path: Path) -> None:
    """Names are what the compiler was given, or what somebody wrote into the file."""
    data = built("-O1").read_bytes()
    at, size = sections(data)[".debug_str"][1:]
    names = data[at : at + size].replace(b"field\0", b"\x1b[2J\x07\0")
    changed = tmp_path / "program"
    changed.write_bytes(data[:at] + names + data[at + size :])
    found = dwarf.ObjectInfo(str(changed)).variables()
    assert "?[2J?" in {variable.name for variable in found.values()}
    assert all(variable.name.isprintable() for variable in found.values())


def test_siblings_in_a_circle_end(
    built: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DW_AT_sibling that lies before its own entry keeps pyelftools for ever."""
    from elftools.elf.elffile import ELFFile

    monkeypatch.setattr(dwarf, "_LEAST_SECONDS", 0.5)
    sound = built("-gdwarf-4")
    with sound.open("rb") as file:
        unit = next(ELFFile(file).get_dwarf_info().iter_CUs())
        entry = next(one for one in unit.iter_DIEs() if "DW_AT_sibling" in one.attributes)
        at = entry.attributes["DW_AT_sibling"].offset
        target = entry.offset - unit.cu_offset
    data = bytearray(sound.read_bytes())
    struct.pack_into("<I", data, sections(bytes(data))[".debug_info"][1] + at, target)
    (tmp_path / "program").write_bytes(data)
    begin = time.process_time()
    file, line, remarks = named(tmp_path / "program")
    assert (file, line) == ("", 0)
    assert time.process_time() - begin < 30
    assert "too long to read" in remarks[0]


def test_split_information_that_is_gone(built: Callable[..., Path], tmp_path: Path) -> None:
    path = built("-gsplit-dwarf")
    for one in path.parent.glob("*.dwo"):
        one.unlink()
    file, line, _ = named(path)
    assert (file, line) in (("", 0), ("source.c", 1))


def test_a_debug_link_to_itself(built: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(built().read_bytes())
    subprocess.run(["strip", "--strip-debug", "program"], cwd=tmp_path, check=True)
    subprocess.run(["objcopy", "--add-gnu-debuglink=program", "program"], cwd=tmp_path, check=True)
    assert named(tmp_path / "program")[:2] == ("", 0)


def test_sources_that_debug_information_names_and_that_are_none(tmp_path: Path) -> None:
    """A program may name /dev/zero, or a pipe, as its source."""
    import os

    os.mkfifo(tmp_path / "pipe.c")
    for name in ("/dev/zero", str(tmp_path / "pipe.c"), str(tmp_path), "a\0b"):
        assert statement(name, 1).text == ""


def test_numbers_without_end() -> None:
    assert uleb(b"\x80" * 5 + b"\x01", 0) == (1 << 35, 6)
    with pytest.raises(ValueError):
        uleb(b"\x80" * 10_000 + b"\x01", 0)


def test_the_summary_is_there_where_a_name_is_not(
    built: Callable[..., Path], tmp_path: Path, homing: Command
) -> None:
    sound = built().read_bytes()
    for section in (".debug_info", ".debug_abbrev"):
        data = bytearray(sound)
        _, offset, size = sections(sound)[section]
        data[offset : offset + size] = b"\xff" * size
        path = tmp_path / "program"
        path.write_bytes(data)
        writer = RecordWriter(str(path), start=time.time() + 10)
        writer.row("node", index=0, position=0, memory_bytes=1 << 30, free_bytes=1 << 30, cpus=1, target=1)
        writer.row("area", id=1, begin=0x10000, bytes=1 << 20, kind=1, granule=4096,
                   name=writer.text("field"), object=writer.text(str(path)))  # fmt: skip
        writer.row("placement", area=1, when=1, pages=[256], absent=0, time=0.1)
        writer.row("placement", area=1, when=2, pages=[256], absent=0, time=0.2)
        writer.fact("end", "exit")
        writer.write(tmp_path / "record")
        done = homing("report", tmp_path / "record")
        assert done.returncode == 0, done.stderr
        assert "field" in done.stdout
        assert "its debug information is damaged" in done.stdout
        assert done.stderr == ""

"""Functions of symbol tables are those that pyelftools finds."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from homing.report import elf_symbols


def test_the_functions_are_those_of_pyelftools() -> None:
    with Path(sys.executable).resolve().open("rb") as file:
        elf = ELFFile(file)
        wanted = [
            (symbol["st_value"], symbol["st_size"], symbol.name)
            for name in (".symtab", ".dynsym")
            if (section := elf.get_section_by_name(name)) is not None
            for symbol in section.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"]
        ]
        assert wanted and list(elf_symbols.functions(elf)) == wanted


@pytest.mark.parametrize(
    ("wide", "row"),
    [
        (True, "00000001 02 00 0001 0000000000001000 0000000000000020"),
        (False, "00000001 00001000 00000020 02 00 0001"),
    ],
)
def test_both_classes_and_a_torn_table(wide: bool, row: str) -> None:
    """Big endian; the name's end and the last row's are missing."""

    class Section(dict):  # type: ignore[type-arg]
        def __init__(self, data: bytes) -> None:
            super().__init__(sh_type="SHT_SYMTAB", sh_link=1)
            self.stream = io.BytesIO(data)

        def data(self) -> bytes:
            return self.stream.getvalue()

    class Elf:
        little_endian, elfclass = False, 64 if wide else 32

        def get_section_by_name(self, name: str) -> Section | None:
            return Section(bytes.fromhex(row) + b"\0\0\0") if name == ".symtab" else None

        def get_section(self, _: int) -> Section:
            return Section(b"\0solve")

    assert list(elf_symbols.functions(Elf())) == [(0x1000, 0x20, "solve")]

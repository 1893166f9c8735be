"""Source lines and variables of one ELF object, from its DWARF (or that of its separate debug file).

Addresses here are those in the ELF file. Everything is read when it is first asked for, and once. What cannot
be read is simply not known: no error reaches the caller.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from homing.limits import TimeUp, time_limit
from homing.record_format import named, shown
from homing.report import elf_symbols
from homing.report.call_sites import calls, rank
from homing.report.debug_facts import DAMAGED, Member, Place, Variable
from homing.report.identity import belongs, build_id, debug_files, difference
from homing.report.inlined import Call, InlinedCalls
from homing.report.statements import is_fortran
from homing.report.symbols import readable_symbol, without_parameters
from homing.report.variables import Variables, entry_text
from homing.values import dataclass

#: Symbols between two looks at the clock.
_SYMBOLS_A_LOOK = 1 << 12
#: How long reading may take at the most: pyelftools reads some 300,000 bytes of entries a second, and damage
#: (a sibling that lies before its own begin) can keep it for ever.
_LEAST_SECONDS = 10.0
_BYTES_A_SECOND = 30_000
#: A section that says it is larger once it is decompressed is damage, or made to fill the memory.
_MOST_SECTION_BYTES = 4 << 30


@dataclass(frozen=True)
class LineRange:
    """Code of a source line, as offsets from the first mapped page. callee: of a call in it that was
    inlined, the function, and which one it was inlined into; `entry` tells it from other calls."""

    file: str
    line: int
    begin: int
    end: int
    callee: tuple[str, int] = ("", 0)
    entry: int = 0


class ObjectInfo:
    """What is known about one object. `reason`: why source lines are missing, for the user; empty if they are
    not. `differs`: why the file is another one than that which ran (identity.difference); nothing is told
    of it. identity, start: as for that."""

    def __init__(
        self,
        path: str,
        deadline: float | None = None,
        late: bool = False,
        progress: Callable[[str], None] | None = None,
        identity: str = "",
        start: float = 0.0,
    ) -> None:
        self.path = path
        self.reason = ""
        self.differs = ""
        #: When the file was changed last, in seconds since 1970; 0: not known.
        self.changed = 0.0
        #: Was there no time for it?
        self.late = late
        self._identity = identity
        self._start = start
        self._deadline = deadline
        self._progress = progress
        self._elf: Any = None
        self._debug_elf: Any = None
        self._dwarf: Any = None
        self._lines: dict[int, list[tuple[int, int, int]]] = {}
        self._inlined: dict[int, InlinedCalls] = {}
        if late:
            self._give_up()
            return
        try:
            with self.limit():
                self._open()
        except FileNotFoundError:
            self.reason = "is not here (any more), so its source lines are not known"
        except TimeUp:  # a busy machine, as a rule
            self.give_up()
        except Exception:  # pyelftools raises of many kinds on damaged files
            self.abandon(DAMAGED)

    @property
    def has_lines(self) -> bool:
        """Is there DWARF at all?"""
        return self._dwarf is not None

    def limit(self) -> contextlib.AbstractContextManager[None]:
        """TimeUp where reading takes more work than a file of its size can need, which is damage, or longer
        than there is time."""
        work = _LEAST_SECONDS
        with contextlib.suppress(OSError):
            name = named(self.path) if self._debug_elf is None else self._debug_elf.stream.name
            work += os.path.getsize(name) / _BYTES_A_SECOND
        if self._deadline is None:
            return time_limit(work)
        return time_limit(work, wall=max(0.0, self._deadline - time.monotonic()) + 1)

    def abandon(self, reason: str) -> None:
        """Its debug information cannot be used: nothing more is told of it."""
        self._dwarf = None
        self.reason = reason

    def give_up(self) -> None:
        """It took longer than there is time, or than `limit` allows."""
        if self._deadline is None and not self.late:
            self.abandon("its debug information takes too long to read (damaged?): source lines are missing")
        else:
            self._dwarf = None
            self._give_up()

    def _give_up(self) -> None:
        self.late = True
        self.reason = "its debug information was not read, to save time; homing report FILE reads it"

    def _late(self) -> bool:
        if self._deadline is not None and time.monotonic() > self._deadline:
            self._give_up()
            return True
        return False

    def _open(self) -> None:
        from elftools.elf.elffile import ELFFile

        candidates = [named(self.path)]
        if self._identity.startswith("build-id "):  # it may have been moved
            candidates.append(os.path.abspath(os.path.basename(candidates[0])))
        for path in candidates:
            if not os.path.isfile(path):
                continue
            elf = ELFFile(open(path, "rb"))  # noqa: SIM115  (kept: sections are read when they are needed)
            differs = difference(path, elf, self._identity, self._start)
            if not differs:
                self._elf = self._debug_elf = elf
                self.differs = ""
                self.changed = os.stat(path).st_mtime
                break
            self.differs = self.differs or differs
        if self._elf is not None and self._elf.has_dwarf_info(strict=True):
            self._dwarf = _dwarf_of(self._elf)
            return
        for path, checksum in debug_files(named(self.path), self._identity, self._elf):
            elf = ELFFile(open(path, "rb"))  # noqa: SIM115
            if elf.has_dwarf_info(strict=True) and belongs(path, elf, self._elf, checksum):
                self._elf = self._elf or elf
                self.changed = self.changed or os.stat(path).st_mtime
                self._debug_elf = elf
                self._dwarf = _dwarf_of(elf)
                return
        if self._elf is None and not self.differs:
            raise FileNotFoundError

    # Functions and lines

    @cached_property
    def base(self) -> int:
        """The address in the file of the object's first mapped page: 0, except for programs that are not
        PIE."""
        try:
            starts = [segment["p_vaddr"] for segment in self._elf.iter_segments("PT_LOAD")]
            return min(starts, default=0) & ~0xFFF
        except Exception:
            return 0

    def place_at(self, offset: int) -> Place | None:
        """As `place`, for an offset from the object's first mapped page, as records have it."""
        return self.place(self.base + offset)

    def places_at(self, offset: int) -> Iterator[Place]:
        """The place of an instruction, and those of the calls around it that were inlined, from the inside
        outwards; nothing if it is unknown."""
        place = self.place_at(offset)
        if place is None:
            return
        try:
            unit, calls = self._calls(self.base + offset)
            innermost = entry_text(calls[0].callee, "DW_AT_name") if calls else place.function
        except Exception:
            yield place
            return
        yield Place(innermost, place.file, place.line)
        try:
            for call in calls:
                function = entry_text(call.caller, "DW_AT_name") if call.caller else place.function
                yield Place(function, self._file_name(unit, call.file), call.line)
        except Exception:
            return

    def place(self, address: int) -> Place | None:
        """Function and source line of the instruction at (or just before the end of) `address`; None if
        unknown."""
        function = self._function(address)
        try:
            found = self._line(address)
        except Exception:
            found = None
        if found is None:
            return Place(function) if function else None
        # Compilers of Fortran add an underscore to the names of external procedures.
        return Place(function.removesuffix("_") if is_fortran(found[0]) else function, *found)

    @cached_property
    def _functions(self) -> tuple[list[int], list[tuple[int, str]]]:
        found: dict[int, tuple[int, str]] = {}
        for elf in (self._elf, self._debug_elf):
            try:
                for number, (address, size, name) in enumerate(
                    elf_symbols.functions(elf) if elf is not None else (), 1
                ):
                    if number % _SYMBOLS_A_LOOK == 0 and self._late():
                        break
                    found.setdefault(address, (size, name))
            except Exception:
                continue
        starts = sorted(found)
        return starts, [found[start] for start in starts]

    def _function(self, address: int) -> str:
        starts, functions = self._functions
        at = bisect.bisect_right(starts, address) - 1
        if at < 0 or address >= starts[at] + max(1, functions[at][0]):
            return ""
        return without_parameters(readable_symbol(functions[at][1]))

    def _line(self, address: int) -> tuple[str, int] | None:
        if self._dwarf is None:
            return None
        unit = self._unit_at(address)
        if unit is None:
            return None
        rows = self._line_rows(unit)
        at = bisect.bisect_right(rows, address, key=lambda row: row[0]) - 1
        if at < 0:
            return None
        _, file, line = rows[at]
        # Line 0 is what compilers say of code that stands for several lines, or for none.
        if file == 0 or line == 0:
            return None
        return self._file_name(unit, file - 1), line

    def rank(self, offset: int, depth: int) -> tuple[int, int] | None:
        """Which one the call before a return address is of the calls of its function in its line, and of
        how many (call_sites.rank); None where it is not known. depth: the same of the calls around it that
        were inlined, from the inside outwards, from 1 on."""
        after = self.base + offset
        try:
            if depth > 0:
                unit, around = self._calls(after - 1)
                return self._inlined[unit.cu_offset].rank(after - 1, around[depth - 1])
            starts, functions = self._functions
            at = bisect.bisect_right(starts, after - 1) - 1
            unit = self._unit_at(after - 1)
            if at < 0 or unit is None:
                return None
            first, last = starts[at], starts[at] + functions[at][0]
            rows = self._line_rows(unit)
            here = rows[bisect.bisect_right(rows, after - 1, key=lambda row: row[0]) - 1][1:]
            ranges = [
                (max(first, row[0]), min(last, following[0]))
                for row, following in itertools.pairwise(rows)
                if row[1:] == here
            ]
            return rank(self._elf, ranges, after)
        except Exception:
            return None

    @property
    def build_id(self) -> str:
        """The GNU build id; empty where there is none."""
        try:
            return build_id(self._elf)
        except Exception:
            return ""

    def variables(self) -> dict[int, Variable]:
        """What has a fixed address, by the offset from the first mapped page."""
        if self._dwarf is None:
            return {}
        return {address - self.base: one for address, one in self._index.addresses.items()}

    def calls(self, ranges: Iterable[tuple[int, int]]) -> list[list[int]]:
        """As call_sites.calls, in offsets from the first mapped page."""
        try:
            found = calls(self._elf, [(begin + self.base, end + self.base) for begin, end in ranges])
        except Exception:
            return []
        return [[end - self.base for end in ends] for ends in found]

    def line_ranges(self, wanted: Callable[[str], bool]) -> Iterator[LineRange]:
        """The code of each line of the files that are wanted, and of each call in them that was inlined."""
        for unit in self._units:
            if self._late():
                return
            try:
                yield from self._unit_lines(unit, wanted)
            except Exception:
                continue

    def _unit_lines(self, unit: Any, wanted: Callable[[str], bool]) -> Iterator[LineRange]:
        files: dict[int, str] = {}

        def name(index: int) -> str:
            if index not in files:
                file = self._file_name(unit, index)
                files[index] = file if file and wanted(file) else ""
            return files[index]

        for row, following in itertools.pairwise(self._line_rows(unit)):
            begin, file, line = row
            if file and line and begin < following[0] and (path := name(file - 1)):
                yield LineRange(path, line, begin - self.base, following[0] - self.base)
        if unit.cu_offset not in self._inlined:
            self._inlined[unit.cu_offset] = InlinedCalls(unit, self._extent, self._late)
        for function, begin, end, call in self._inlined[unit.cu_offset].all():
            if path := name(call.file):
                callee = (entry_text(call.callee, "DW_AT_name"), function)
                yield LineRange(
                    path, call.line, begin - self.base, end - self.base, callee, call.callee.offset
                )

    def _calls(self, address: int) -> tuple[Any, list[Call]]:
        """The unit of an instruction, and the inlined calls around it."""
        unit = self._unit_at(address) if self._dwarf is not None else None
        if unit is None:
            return None, []
        if unit.cu_offset not in self._inlined:
            self._inlined[unit.cu_offset] = InlinedCalls(unit, self._extent, self._late)
        return unit, self._inlined[unit.cu_offset].around(address)

    @cached_property
    def _units(self) -> list[Any]:
        """The units, up to the first one whose header is damaged: where the next begins is not known then."""
        found: list[Any] = []
        try:
            for unit in self._dwarf.iter_CUs() if self._dwarf is not None else ():
                found.append(unit)
        except Exception:
            self.reason = DAMAGED
        return found

    @cached_property
    def _unit_ranges(self) -> list[tuple[int, int, Any]]:
        ranges = []
        for unit in self._units:
            if self._late():
                break
            with contextlib.suppress(Exception):  # damaged: the others may help
                ranges += [(begin, end, unit) for begin, end in self._extent(unit.get_top_DIE())]
        return sorted(ranges, key=lambda entry: entry[:2])

    def _extent(self, entry: Any) -> Iterator[tuple[int, int]]:
        """The address ranges of a unit, a function or a block."""
        low = entry.attributes.get("DW_AT_low_pc")
        high = entry.attributes.get("DW_AT_high_pc")
        if low is not None and high is not None:
            yield low.value, high.value if high.form == "DW_FORM_addr" else low.value + high.value
        elif "DW_AT_ranges" in entry.attributes and (lists := self._dwarf.range_lists()) is not None:
            yield from self._listed(lists, entry)

    def _listed(self, lists: Any, entry: Any) -> Iterator[tuple[int, int]]:
        from elftools.dwarf.ranges import BaseAddressEntry

        low = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
        base = low.value if low is not None else 0
        for one in lists.get_range_list_at_offset(entry.attributes["DW_AT_ranges"].value, cu=entry.cu):
            if isinstance(one, BaseAddressEntry):
                base = one.base_address
            elif getattr(one, "is_absolute", False):
                yield one.begin_offset, one.end_offset
            else:
                yield base + one.begin_offset, base + one.end_offset

    @cached_property
    def _address_ranges(self) -> Any:
        try:
            return self._dwarf.get_aranges()
        except Exception:  # the units' own ranges serve
            return None

    def _unit_at(self, address: int) -> Any:
        if self._address_ranges is not None:
            offset = self._address_ranges.cu_offset_at_addr(address)
            if offset is not None:
                return self._dwarf.get_CU_at(offset)
        return next((unit for begin, end, unit in self._unit_ranges if begin <= address < end), None)

    def _line_rows(self, unit: Any) -> list[tuple[int, int, int]]:
        """(address, file index + 1, line) in order of address; file index + 1 is 0 at the end of a sequence.
        Of several rows with one address the last tells of the instruction: those before it tell of calls that
        were inlined and left nothing there, or end the sequence that lies before the address."""
        if unit.cu_offset not in self._lines:
            rows = []
            for entry in self._dwarf.line_program_for_CU(unit).get_entries():
                state = entry.state
                if state is not None:
                    rows.append((state.address, 0 if state.end_sequence else state.file + 1, state.line))
            rows.sort(key=lambda row: (row[0], row[1] != 0))  # stable: the program's order otherwise
            self._lines[unit.cu_offset] = rows
        return self._lines[unit.cu_offset]

    def _file_name(self, unit: Any, index: int) -> str:
        """The path of a file of a unit's line table: indices count from 1 before DWARF 5 and from 0 since."""
        header = self._dwarf.line_program_for_CU(unit).header
        top = unit.get_top_DIE().attributes
        folder = _name(top["DW_AT_comp_dir"].value) if "DW_AT_comp_dir" in top else ""
        old = header["version"] < 5
        entries, folders = header["file_entry"], header["include_directory"]
        at = index - 1 if old else index
        if not 0 <= at < len(entries):
            return ""
        entry = entries[at]
        number = entry["dir_index"] - 1 if old else entry["dir_index"]
        if 0 <= number < len(folders):
            folder = os.path.join(folder, _name(folders[number]))
        return shown(os.path.normpath(os.path.join(folder, _name(entry["name"]))))

    # Variables

    def variable(self, name: str) -> Variable | None:
        """The declaration of a static array, a module array (module::array) or a COMMON block (/name/)."""
        if self._dwarf is None:
            return None
        names = self._index.names
        plain = re.sub(r"\.\d+$", "", name)  # compilers number static variables of functions
        for key in (name, plain, readable_symbol(name)):
            found = names.get(key)
            if found is not None:
                return found
        return None

    def variable_at(self, offset: int, size: int) -> Variable | None:
        """The declaration of what lies at an offset from the first mapped page. Where several variables lie
        within `size` bytes (EQUIVALENCE), they are its members."""
        if self._dwarf is None or self._elf is None:
            return None
        addresses = self._index.addresses
        begin = self.base + offset
        inside = sorted(address for address in addresses if begin <= address < begin + size)
        if not inside:
            return None
        first = addresses[inside[0]]
        if first.members or inside == [begin]:
            return first
        members = tuple(Member(addresses[at].name, at - begin, 0) for at in inside)
        return Variable(first.name, first.file, first.line, first.function, members)

    @cached_property
    def _index(self) -> Variables:
        index = Variables(self._dwarf, self._debug_elf.little_endian, self._file_name)
        began = time.monotonic()
        for number, unit in enumerate(self._units, start=1):
            if self._late():
                break
            if self._progress is not None and time.monotonic() - began > 1:
                name = os.path.basename(self.path)
                self._progress(f"reading debug information of {name}: {number} of {len(self._units)} units")
            try:
                index.read(unit)
            except Exception:
                self.reason = DAMAGED
        return index


def _name(value: Any) -> str:
    """A part of a file's name, as the compiler wrote it."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _dwarf_of(elf: Any) -> Any:
    """The debug information of an open object. ValueError where a section pretends to be too large."""
    if any(
        section.name.startswith((".debug", ".zdebug")) and section.data_size > _MOST_SECTION_BYTES
        for section in elf.iter_sections()
    ):
        raise ValueError("a section is too large")
    # What runs is linked, and nothing in it is to be relocated: to look for that takes longer than the rest.
    return elf.get_dwarf_info(relocate_dwarf_sections=False)

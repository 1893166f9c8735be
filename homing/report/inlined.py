"""Calls that were inlined around an instruction, from DWARF (DWARF 5, sections 3.3.1 and 3.3.8).

A unit of C++ that includes a few headers has a hundred thousand entries, of which pyelftools reads some
30,000 a second. So functions are looked for in the unit's bytes, all other entries are skipped by the sizes
of their forms (section 7.5), and pyelftools reads the entries of the one function that holds the address.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Literal

from homing.values import dataclass

#: What may hold inlined calls within a function.
_BLOCKS = {"DW_TAG_lexical_block", "DW_TAG_inlined_subroutine", "DW_TAG_try_block", "DW_TAG_catch_block"}
_EXTENT = {"DW_AT_low_pc", "DW_AT_ranges"}
#: Forms of one size each, in bytes.
_FIXED = {
    **dict.fromkeys(("flag_present", "implicit_const"), 0),
    **dict.fromkeys(("data1", "ref1", "flag", "strx1", "addrx1"), 1),
    **dict.fromkeys(("data2", "ref2", "strx2", "addrx2"), 2),
    **dict.fromkeys(("strx3", "addrx3"), 3),
    **dict.fromkeys(("data4", "ref4", "strx4", "addrx4", "ref_sup4"), 4),
    **dict.fromkeys(("data8", "ref8", "ref_sig8", "ref_sup8"), 8),
    "data16": 16,
}
#: Offsets into other sections: four bytes, or eight in the 64-bit format.
_OFFSETS = {"strp", "line_strp", "sec_offset", "ref_addr", "strp_sup", "GNU_ref_alt", "GNU_strp_alt"}
_LEB128 = {"udata", "sdata", "ref_udata", "strx", "addrx", "loclistx", "rnglistx"}
_LEB128 |= {"GNU_addr_index", "GNU_str_index"}
#: Blocks, by the bytes that their length takes; 0: a LEB128 number.
_SIZED = {"block1": 1, "block2": 2, "block4": 4, "block": 0, "exprloc": 0}
#: Numbers have 64 bits; padded ones a few more bytes.
_MOST_SHIFT = 140
#: Entries between two looks at the clock.
_ENTRIES_A_LOOK = 1 << 14


@dataclass(frozen=True)
class Call:
    """A call that was inlined. file: its index in the unit's line table. caller: the entry of the inlined
    function that holds the call; None: the function that the instruction lies in. callee: the entry of what
    was called."""

    file: int
    line: int
    caller: Any
    callee: Any


class InlinedCalls:
    """The inlined calls of one unit. extent: the address ranges of an entry. late: is it time to give up?"""

    def __init__(
        self, unit: Any, extent: Callable[[Any], Iterable[tuple[int, int]]], late: Callable[[], bool]
    ) -> None:
        self._unit = unit
        self._extent = extent
        self._late = late
        self._inside: dict[int, list[tuple[int, int, Any]]] = {}

    def around(self, address: int) -> list[Call]:
        """The calls around an instruction, from the inside outwards; empty where nothing was inlined."""
        at = bisect.bisect_right(self._functions, address, key=lambda function: function[0]) - 1
        if at < 0 or address >= self._functions[at][1]:
            return []
        entry = self._unit.get_DIE_from_refaddr(self._functions[at][2])
        calls: list[Call] = []
        caller = None
        while entry is not None:
            blocks = self._blocks(entry)
            entry = next((block for begin, end, block in blocks if begin <= address < end), None)
            if entry is not None and entry.tag == "DW_TAG_inlined_subroutine":
                values = {name: attribute.value for name, attribute in entry.attributes.items()}
                file, line = values.get("DW_AT_call_file", 0), values.get("DW_AT_call_line", 0)
                calls.append(Call(file, line, caller, entry))
                caller = entry
        return calls[::-1]

    def all(self) -> Iterable[tuple[int, int, int, Call]]:
        """Every call of the unit that was inlined, and where its code is: (offset of the entry of the
        function that holds it, begin, end, call)."""
        for _, _, offset in self._functions:
            for begin, end, call in self._within(offset):
                yield offset, begin, end, call

    def _within(self, function: int) -> Iterable[tuple[int, int, Call]]:
        """Every call in a function that was inlined."""
        open_entries: list[tuple[Any, Any]] = [(self._unit.get_DIE_from_refaddr(function), None)]
        while open_entries and not self._late():
            entry, caller = open_entries.pop()
            seen = set()
            for begin, end, block in self._blocks(entry):
                inner = caller
                if block.tag == "DW_TAG_inlined_subroutine":
                    values = {name: attribute.value for name, attribute in block.attributes.items()}
                    file, line = values.get("DW_AT_call_file", 0), values.get("DW_AT_call_line", 0)
                    yield begin, end, Call(file, line, caller, block)
                    inner = block
                if block.offset not in seen:
                    seen.add(block.offset)
                    open_entries.append((block, inner))

    def rank(self, address: int, call: Call) -> tuple[int, int] | None:
        """Which one (from 0) a call around an instruction is of the calls of its function in its line that
        were inlined into the same function, and of how many."""
        at = bisect.bisect_right(self._functions, address, key=lambda function: function[0]) - 1
        if at < 0:
            return None

        def called(one: Call) -> tuple[Any, ...]:
            origin = one.callee.attributes.get("DW_AT_abstract_origin")
            return one.file, one.line, origin.value if origin is not None else None

        entries = {
            one.callee.offset
            for _, _, one in self._within(self._functions[at][2])
            if called(one) == called(call)
        }
        order = sorted(entries)
        return (order.index(call.callee.offset), len(order)) if call.callee.offset in entries else None

    def _blocks(self, parent: Any) -> list[tuple[int, int, Any]]:
        """The blocks in an entry, and where their code is: (begin, end, entry)."""
        if parent.offset not in self._inside:
            self._inside[parent.offset] = [
                (begin, end, block)
                for block in parent.iter_children()
                if block.tag in _BLOCKS and _EXTENT & block.attributes.keys()
                for begin, end in self._extent(block)
            ]
        return self._inside[parent.offset]

    @cached_property
    def _functions(self) -> list[tuple[int, int, int]]:
        """Functions of which there is code: (begin, end, offset of the entry), by address."""
        found = []
        for offset in self._function_offsets():
            for begin, end in self._extent(self._unit.get_DIE_from_refaddr(offset)):
                found.append((begin, end, offset))
        return sorted(found)

    def _function_offsets(self) -> list[int]:
        unit = self._unit
        stream = unit.dwarfinfo.debug_info_sec.stream
        stream.seek(unit.cu_die_offset)
        data = stream.read(unit.cu_offset + unit.size - unit.cu_die_offset)
        layouts: dict[int, _Layout] = {}
        found = []
        at = count = 0
        while at < len(data):
            count += 1
            if count % _ENTRIES_A_LOOK == 0 and self._late():
                return []
            begin = at
            code, at = uleb(data, at)
            if code == 0:  # the end of an entry's children
                continue
            layout = layouts.get(code)
            if layout is None:
                layout = layouts[code] = _Layout(unit.get_abbrev_table().get_abbrev(code), unit)
            if layout.is_function:
                found.append(unit.cu_die_offset + begin)
            at = layout.end(data, at)
        return found


class _Layout:
    """How entries of one abbreviation lie in the file."""

    def __init__(self, abbreviation: Any, unit: Any) -> None:
        attributes = [(one.name, str(one.form)) for one in abbreviation["attr_spec"]]
        self.is_function = abbreviation["tag"] == "DW_TAG_subprogram" and any(
            name in _EXTENT for name, _ in attributes
        )
        self._order: Literal["little", "big"] = "little" if unit.structs.little_endian else "big"
        #: Bytes before the first field of its own length, and each such field with the bytes that follow it.
        self._fixed = 0
        self._fields: list[tuple[str, int]] = []
        for _, form in attributes:
            form = form.removeprefix("DW_FORM_")
            size = _form_bytes(form, unit)
            if size is None:
                self._fields.append((form, 0))
            elif self._fields:
                self._fields[-1] = (self._fields[-1][0], self._fields[-1][1] + size)
            else:
                self._fixed += size

    def end(self, data: bytes, at: int) -> int:
        """Where the entry ends whose first attribute is at `at`."""
        at += self._fixed
        for form, after in self._fields:
            if form in _LEB128:
                _, at = uleb(data, at)
            elif form == "string":
                at = data.index(b"\0", at) + 1
            else:
                width = _SIZED[form]
                if width:
                    length, at = int.from_bytes(data[at : at + width], self._order), at + width
                else:
                    length, at = uleb(data, at)
                at += length
            at += after
        return at


def _form_bytes(form: str, unit: Any) -> int | None:
    """The size of a form; None where each value has its own. KeyError: a form that is not known."""
    if form in _FIXED:
        return _FIXED[form]
    if form == "addr" or (form == "ref_addr" and unit["version"] == 2):
        return int(unit["address_size"])
    if form in _OFFSETS:
        return 8 if unit.dwarf_format() == 64 else 4
    if form in _LEB128 or form in _SIZED or form == "string":
        return None
    raise KeyError(form)


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number and where it ends (section 7.6)."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if shift > _MOST_SHIFT:
            raise ValueError("LEB128")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at

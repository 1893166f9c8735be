"""Calls in machine code: which of several calls of one function in a statement is the one that returns to an
address. x86-64 and AArch64; on others it is not known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def calls(elf: Any, ranges: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The calls in address ranges, those of one function together: where each ends, by address."""
    by_target: dict[tuple[str, int], set[int]] = {}
    for begin, end in ranges:
        for after, target in _found(elf, begin, [(begin, end)]):
            by_target.setdefault(target, set()).add(after)
    return [sorted(ends) for ends in by_target.values()]


def rank(elf: Any, ranges: Iterable[tuple[int, int]], after: int) -> tuple[int, int] | None:
    """(number from 0, how many) of the call that ends at address `after`, among the calls of the same
    function in the address ranges of `elf` (pyelftools); None where it cannot be told."""
    found = dict(_found(elf, after - 1, ranges))
    if after not in found:
        return None
    ends = sorted(end for end, target in found.items() if target == found[after])
    return ends.index(after), len(ends)


def _found(
    elf: Any, address: int, ranges: Iterable[tuple[int, int]]
) -> Iterable[tuple[int, tuple[str, int]]]:
    """(where it ends, what it calls) of each call in the ranges, within the section that holds an address."""
    decode = {"x64": _x86, "AArch64": _arm}.get(elf.get_machine_arch())
    section = _section_at(elf, address)
    if decode is None or section is None:
        return
    base, code = section["sh_addr"], section.data()
    for begin, end in ranges:
        if begin < end:
            yield from decode(code, max(0, begin - base), min(len(code), end - base), base)


def _section_at(elf: Any, address: int) -> Any:
    for section in elf.iter_sections():
        begin = section["sh_addr"]
        loaded = begin and section["sh_type"] == "SHT_PROGBITS"
        if loaded and begin <= address < begin + section["sh_size"]:
            return section
    return None


def _x86(code: bytes, begin: int, stop: int, base: int) -> Iterable[tuple[int, tuple[str, int]]]:
    """call rel32, and call *[rip + rel32] (-fno-plt): where each ends, and what it calls."""
    for at in range(begin, stop):
        for opcode, kind in ((b"\xe8", "call"), (b"\xff\x15", "through")):
            end = at + len(opcode) + 4
            if code.startswith(opcode, at) and end <= len(code):
                target = int.from_bytes(code[end - 4 : end], "little", signed=True) + base + end
                yield base + end, (kind, target)


def _arm(code: bytes, begin: int, stop: int, base: int) -> Iterable[tuple[int, tuple[str, int]]]:
    """bl imm26."""
    for at in range(begin + -begin % 4, stop - 3, 4):
        word = int.from_bytes(code[at : at + 4], "little")
        if word >> 26 == 0b100101:
            offset = word & 0x3FFFFFF
            offset -= (offset & 0x2000000) << 1
            yield base + at + 4, ("call", base + at + 4 * offset)

"""Variables, arrays and COMMON blocks of fixed address, as an object's DWARF declares them.

Addresses are those in the ELF file. Errors of pyelftools, of damaged files, reach the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from homing.record_format import printable
from homing.report.debug_facts import Member, Variable
from homing.report.inlined import uleb

_OP_ADDR, _OP_PLUS_UCONST, _OP_ADDRX = 0x03, 0x23, 0xA1
#: Where variables with a fixed address can be declared.
_SCOPES = {
    "DW_TAG_module",
    "DW_TAG_subprogram",
    "DW_TAG_lexical_block",
    "DW_TAG_namespace",
    "DW_TAG_common_block",
}
#: From an instance to what it is one of, from a definition to its declaration.
_LINKS = ("DW_AT_abstract_origin", "DW_AT_specification")
#: Deeper nesting is damage, and so are larger objects.
_MOST_DEPTH = 32
_MOST_BYTES = 1 << 62


class Variables:
    """What the units of an object declare.

    file_name: the path of a file of a unit's line table, by its index there."""

    def __init__(self, dwarf: Any, little_endian: bool, file_name: Callable[[Any, int], str]) -> None:
        #: By every name under which an area may know them; None where a name is not unique.
        self.names: dict[str, Variable | None] = {}
        #: By the address in the file where they begin.
        self.addresses: dict[int, Variable] = {}
        self._dwarf = dwarf
        self._little_endian = little_endian
        self._file_name = file_name

    def read(self, unit: Any) -> None:
        """Takes in what a unit declares."""
        self._read_scope(unit, unit.get_top_DIE(), "", 0)

    def _add(self, key: str, variable: Variable) -> None:
        old = self.names.get(key, variable)
        same = old is not None and (old.file, old.line, old.name) == (
            variable.file,
            variable.line,
            variable.name,
        )
        if same or (old is not None and key.startswith("/")):
            # Subprograms may see different parts of a COMMON block: the fullest view counts.
            self.names[key] = max((variable, old or variable), key=lambda one: len(one.members))
        else:
            self.names[key] = None

    def _read_scope(self, unit: Any, parent: Any, scope: str, depth: int) -> None:
        for entry in parent.iter_children():
            name = entry_text(entry, "DW_AT_name")
            if entry.tag == "DW_TAG_variable" and name:
                variable = Variable(name, *self._declared(unit, entry), scope)
                for key in {name, f"{scope}::{name}", entry_text(entry, "DW_AT_linkage_name")} - {""}:
                    self._add(key, variable)
                if parent.tag != "DW_TAG_common_block" and (address := self._address(entry)) is not None:
                    self.addresses.setdefault(address, variable)
            elif entry.tag == "DW_TAG_common_block":
                members = tuple(self._members(entry))
                variable = Variable(f"/{name}/", *self._declared(unit, entry), scope, members)
                self._add("//" if name in ("", "__BLNK__") else f"/{name}/", variable)
                address = self._block_address(entry)
                old = self.addresses.get(address, variable) if address is not None else variable
                if address is not None and len(old.members) <= len(members):
                    self.addresses[address] = variable
            if entry.tag in _SCOPES and depth < _MOST_DEPTH:
                self._read_scope(unit, entry, name or scope, depth + 1)

    def _declared(self, unit: Any, entry: Any) -> tuple[str, int]:
        for one in _and_what_it_is_of(entry):
            attributes = one.attributes
            if "DW_AT_decl_file" in attributes and "DW_AT_decl_line" in attributes:
                file, line = attributes["DW_AT_decl_file"].value, attributes["DW_AT_decl_line"].value
                return self._file_name(unit, file), line
        return "", 0

    def _members(self, block: Any) -> Iterator[Member]:
        places = []
        for entry in block.iter_children():
            address = self._address(entry)
            if entry.tag in ("DW_TAG_variable", "DW_TAG_member") and address is not None:
                places.append((address, entry_text(entry, "DW_AT_name"), _type_bytes(entry)))
        begin = self._block_address(block) or 0
        sizes: dict[tuple[int, str], int] = {}  # a member may be told of twice
        for address, name, size in places:
            sizes[address, name] = max(size, sizes.get((address, name), 0))
        for (address, name), size in sorted(sizes.items()):
            if address >= begin:
                yield Member(name, address - begin, size)

    def _block_address(self, block: Any) -> int | None:
        """Where a COMMON block begins: compilers say it of the block, or of its members only."""
        begin = self._address(block)
        if begin is not None:
            return begin
        members = [self._address(entry) for entry in block.iter_children()]
        return min((address for address in members if address is not None), default=None)

    def _address(self, entry: Any) -> int | None:
        location = entry.attributes.get("DW_AT_location")
        if location is None or not isinstance(location.value, (list, bytes)):
            return None
        code = bytes(location.value)
        width = entry.cu["address_size"]
        order = "little" if self._little_endian else "big"
        if code[:1] == bytes([_OP_ADDR]):
            end = 1 + width
            address = int.from_bytes(code[1:end], order)  # type: ignore[arg-type]
        elif code[:1] == bytes([_OP_ADDRX]):
            number, end = uleb(code, 1)
            address = self._dwarf.get_addr(entry.cu, number)
        else:
            return None
        if code[end : end + 1] == bytes([_OP_PLUS_UCONST]):
            address += uleb(code, end + 1)[0]
        return int(address)


def entry_text(entry: Any, attribute: str) -> str:
    """A text of an entry, or of what it is an instance or the definition of."""
    for one in _and_what_it_is_of(entry):
        if attribute in one.attributes:
            return text(one.attributes[attribute].value)
    return ""


def _and_what_it_is_of(entry: Any) -> Iterator[Any]:
    """An entry, the one that it is an instance of or whose definition it is, and so on. More than three such
    steps are damage."""
    yield entry
    for _ in range(3):
        link = next((one for one in _LINKS if one in entry.attributes), "")
        if not link:
            return
        entry = entry.get_DIE_from_attribute(link)
        yield entry


def text(value: Any) -> str:
    """A name in debug information, as it may be shown: a terminal obeys what follows an escape character."""
    return printable(value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value))


def _type_bytes(entry: Any, depth: int = 0) -> int:
    """The size of an entry's type, 0 where it is not constant."""
    size: Any
    if "DW_AT_type" not in entry.attributes or depth > _MOST_DEPTH:
        return 0
    kind = entry.get_DIE_from_attribute("DW_AT_type")
    if "DW_AT_byte_size" in kind.attributes:
        size = kind.attributes["DW_AT_byte_size"].value
        return size if isinstance(size, int) else 0
    if kind.tag != "DW_TAG_array_type":
        return _type_bytes(kind, depth + 1)
    size = _type_bytes(kind, depth + 1)
    fortran = kind.cu.get_top_DIE().attributes["DW_AT_language"].value in (0x07, 0x08, 0x0E, 0x22, 0x23)
    for bound in kind.iter_children():
        values = {name: item.value for name, item in bound.attributes.items()}
        if isinstance(values.get("DW_AT_count"), int):
            size *= values["DW_AT_count"]
        elif isinstance(values.get("DW_AT_upper_bound"), int):
            lower = values.get("DW_AT_lower_bound", 1 if fortran else 0)
            size *= max(0, values["DW_AT_upper_bound"] - lower + 1) if isinstance(lower, int) else 0
        else:
            return 0
    return int(size) if size < _MOST_BYTES else 0

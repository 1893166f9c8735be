"""The code of the modules that a summary needs, in one file. To find, open and read fifty files takes three
quarters of the system calls of its start, and a tenth of the instructions.

The file lies where Python keeps the package's .pyc files. It is trusted as they are, and checked as they are:
an entry is used while size and time of change of its source are those that it was made from. Modules without
an entry are imported in Python's own way, as all are where there is no such file. `make` and `make install`
make it (`python -m homing.bundle`); where it is missing or old, the end of a run does, if Python may write
.pyc files there.
"""

from __future__ import annotations

import _imp
import marshal
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import (  # importlib.machinery imports much more
    MAGIC_NUMBER,
    SourceFileLoader,
    cache_from_source,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType

#: They import all that a usual summary needs.
_MODULES = ("homing.run_finish", "homing.report.results", "homing.report.summary", "homing.report.names")
_HEAD = b"homing-bundle 1\n" + MAGIC_NUMBER
#: What reading a damaged file may raise.
_DAMAGE = (ValueError, EOFError, TypeError)
_FOLDER = os.path.dirname(os.path.abspath(__file__))
#: By name: the source below the package's folder, its time of change and its size; where the code begins.
_Entry = tuple[str, int, int, int, int]


def _path() -> str:
    """Where the file lies. NotImplementedError where Python keeps no .pyc files."""
    return cache_from_source(os.path.join(_FOLDER, "summary.py")).removesuffix("pyc") + "bundle"


def _stamp(source: str) -> tuple[int, int]:
    """What Python compares of a source."""
    status = os.stat(source)
    return int(status.st_mtime), status.st_size


class _Loader(SourceFileLoader):
    """Python's own, but that the code is there already."""

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, name: str) -> CodeType | None:
        try:
            code: CodeType = marshal.loads(self._code)
        except _DAMAGE:
            return super().get_code(name)
        # As Python does it: the package may have been moved.
        _imp._fix_co_filename(code, self.path)  # type: ignore[attr-defined,unused-ignore]
        return code


class _Bundle:
    """Finds modules; the first one in sys.meta_path."""

    def __init__(self, path: str, data: bytes) -> None:
        """One of _DAMAGE where it is none of this version, or not whole."""
        begin = len(_HEAD) + 16
        index = begin + int.from_bytes(data[begin - 16 : begin - 8], "little")
        if not data.startswith(_HEAD) or len(data) != int.from_bytes(data[begin - 8 : begin], "little"):
            raise ValueError(path)
        self._path = path
        self.entries: dict[str, _Entry] = marshal.loads(data[begin:index])
        #: The modules that were found here.
        self.served: set[str] = set()
        self._codes = memoryview(data)[index:]

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module, where its source is still the one that the code was made from."""
        entry = self.entries.get(name)
        if entry is None:
            return None
        below, changed, size, begin, end = entry
        source = os.path.join(_FOLDER, below)
        try:
            if _stamp(source) != (changed, size):
                return None
        except OSError:
            return None
        spec = ModuleSpec(name, _Loader(name, source, self._codes[begin:end]), origin=source)
        spec.submodule_search_locations = [os.path.dirname(source)] if below.endswith("__init__.py") else None
        spec.has_location = True
        spec.cached = self._path
        self.served.add(name)
        return spec


_used: _Bundle | None = None


def use() -> None:
    """From now on, import the package's modules from the file where that is possible."""
    global _used
    try:
        path = _path()
        with open(path, "rb") as file:
            _used = _Bundle(path, file.read())
    except (OSError, NotImplementedError, *_DAMAGE):
        return
    sys.meta_path.insert(0, _used)


def keep() -> None:
    """Make the file where there was none, or where it did not serve for a module that it has."""
    loaded = [name for name in sys.modules if name.startswith("homing.")]
    old = _used is None or any(name in loaded and name not in _used.served for name in _used.entries)
    if not old or sys.dont_write_bytecode:
        return
    try:
        _write(_path(), loaded)
    except (OSError, NotImplementedError, ValueError):
        return


def _write(path: str, names: Iterable[str]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    aside = f"{path}.{os.getpid()}"
    try:
        with open(aside, "wb") as file:  # first: most who may not write shall not pay for what is in it
            file.write(_content(names))
        os.replace(aside, path)
    except OSError:
        if os.path.exists(aside):
            os.unlink(aside)
        raise


def _content(names: Iterable[str]) -> bytes:
    entries: dict[str, _Entry] = {}
    codes: list[bytes] = []
    at = 0
    for name in names:
        source = getattr(sys.modules[name], "__file__", None) or ""
        if name == "homing.bundle" or not source.startswith(_FOLDER + os.sep):
            continue
        # In this order: a source that changes meanwhile has another time than the entry.
        changed, size = _stamp(source)
        code = marshal.dumps(SourceFileLoader(name, source).get_code(name))
        entries[name] = (source[len(_FOLDER) + 1 :], changed, size, at, at + len(code))
        codes.append(code)
        at += len(code)
    index = marshal.dumps(entries)
    whole = len(_HEAD) + 16 + len(index) + at
    sizes = [number.to_bytes(8, "little") for number in (len(index), whole)]
    return b"".join((_HEAD, *sizes, index, *codes))


def main() -> None:
    """`python -m homing.bundle`: make the file."""
    from importlib import import_module

    for name in _MODULES:
        import_module(name)
    _write(_path(), [name for name in sys.modules if name.startswith("homing.")])


if __name__ == "__main__":
    main()

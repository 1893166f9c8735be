"""Objects that are compiled again, because of the program that a command links.

That happens in a folder of the command. What comes out is kept in homing's cache, under a digest of all that
the compiler reads: the next link of a program that asks for the same object has it from there, so a file is
compiled again only where something of it is another one than ever before.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import pickle
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from homing.compilers import WITH_VALUE
from homing.paths import Cache
from homing.translate.directives import scanner
from homing.translate.directives.model import Form
from homing.translate.program.files import order_of_modules
from homing.translate.program.record import Record, keep
from homing.translate.program.state import digest, forget_old

#: Options of a recorded command that are not for another object: those with a value in the next word,
#: and those without.
_NOT_AGAIN_WITH_VALUE = frozenset({"-o", "-MF", "-MT", "-MQ", "-J", "-module-dir"})
_NOT_AGAIN = frozenset({"-MD", "-MMD", "-MP", "-MG", "-c"})
_PATHS = ("-I", "-isystem", "-iquote", "-include", "-idirafter")
#: Objects that are kept: the largest of the programs that were looked at has 60 files.
_MOST_OBJECTS = 400
_MODULES = (".mod", ".smod")
_USED = re.compile(
    r"^[ \t]*use\b\s*(?:,\s*\w+\s*)?(?:::)?\s*(\w+)|^[ \t]*submodule\s*\(\s*([\w:\s]+)\)",
    re.IGNORECASE | re.MULTILINE,
)
#: What stands in front of a command's own folders (gcc's manual, "Environment Variables").
_FOLDERS = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")


@dataclass
class Again:
    """What became of the stale objects. compiled: sources that the compiler has read; failed: its status."""

    compiled: list[str]
    failed: int = 0


@dataclass
class _Made:
    """One object that is made anew. modules: what its compilation writes beside it, in the folder."""

    record: Record
    source: str
    path: str
    command: list[str]
    folder: str

    def key(self, text: str) -> str:
        """Of all that the compiler reads."""
        words = [self._anywhere(word) for word in self.command]
        settings = [os.environ.get(name, "") for name in _FOLDERS]
        read = self._headers() if scanner.form_of(self.record.source) is Form.C else self._modules(text)
        compiler = shutil.which(self.command[0]) or self.command[0]
        return digest(compiler, _version(compiler), *words, *settings, self.record.text, text, *read)

    def _headers(self) -> Iterator[str]:
        words = [word for word in self.command if word != "-c"]
        at = words.index("-o")
        yield self._anywhere(_output([*words[:at], *words[at + 2 :], "-E"], self.folder))

    def _anywhere(self, text: str) -> str:
        """Without the folder's name, which is another one each time."""
        return text.replace(os.path.dirname(self.path), "").replace(self.folder, "")

    def _modules(self, text: str) -> Iterator[str]:
        """What each module that is named holds, where there is a file of it."""
        folders = [self.folder, *(word[2:] for word in self.command if word.startswith("-I"))]
        names = {
            "@".join(re.split(r"[\s:]+", (one[1] or one[2]).strip().lower())) for one in _USED.finditer(text)
        }
        for name in sorted(names):
            for ending in _MODULES:
                paths = (os.path.join(folder, name + ending) for folder in folders)
                if path := next((one for one in paths if os.path.isfile(one)), ""):
                    yield f"{name}{ending} {_module(path)}"

    def run(self) -> int:
        """Compile; the compiler's status."""
        return subprocess.run(self.command, cwd=self.folder, check=False).returncode

    def take(self, files: Mapping[str, bytes]) -> None:
        """Put files that were kept where the compiler would have."""
        for name, data in files.items():
            with open(os.path.join(self.folder, name) if name else self.path, "wb") as file:
                file.write(data)


def _output(command: Sequence[str], folder: str | None = None) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "surrogateescape")


@cache
def _version(compiler: str) -> str:
    return _output([compiler, "--version"])


def _module(path: str) -> str:
    """A digest of a module's file, without the name of the source it comes from."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":  # gfortran's: its first line has that name
        data = gzip.decompress(data).partition(b"\n")[2]
    return hashlib.sha256(data).hexdigest()


def _stamps(folder: str) -> dict[str, int]:
    """The modules' files in a folder, and when they were written."""
    names = [name for name in os.listdir(folder) if name.endswith(_MODULES)]
    return {name: os.stat(os.path.join(folder, name)).st_mtime_ns for name in names}


def compile_again(
    stale: Sequence[tuple[Record, int, str]],
    arguments: list[str],
    folder: str,
    more: Callable[[str, Sequence[str], int], Sequence[str]],
) -> Again:
    """Make the stale objects in `folder`, modules first, and name them in the linking command. more: further
    arguments for a compiler's command and the place of its source there."""
    order = {
        path: number for number, path in enumerate(order_of_modules([one.source for one, _, _ in stale]))
    }
    objects = Cache("translate", "objects")
    before: dict[int, list[str]] = {}
    found = Again([])
    for number, (record, at, text) in enumerate(sorted(stale, key=lambda one: order[one[0].source])):
        made = _prepared(record, text, folder, number, more)
        key = made.key(text)
        kept = objects.read(key)
        if kept is not None:
            made.take(pickle.loads(kept))
        else:
            modules = _stamps(folder)
            found.compiled.append(record.source)
            if status := made.run():
                found.failed = status
                return found
            written = [name for name, when in _stamps(folder).items() if modules.get(name) != when]
            paths = {"": made.path, **{name: os.path.join(folder, name) for name in written}}
            files = {}
            for name, path in paths.items():
                with open(path, "rb") as file:
                    files[name] = file.read()
            objects.write(key, pickle.dumps(files))
        keep([record], made.path)
        before.setdefault(at, []).append(made.path)
    if found.compiled:
        forget_old(objects.folder, _MOST_OBJECTS)
    for at in sorted(before, reverse=True):
        # In front of an archive, so that its own member is not needed.
        whole = arguments[at].endswith((".o", ".obj", ".lo"))
        arguments[at : at + 1] = before[at] if whole else [*before[at], arguments[at]]
    return found


def _prepared(
    record: Record,
    text: str,
    folder: str,
    number: int,
    more: Callable[[str, Sequence[str], int], Sequence[str]],
) -> _Made:
    """The source in a folder of its own, and the command that compiles it."""
    inner = os.path.join(folder, f"again{number}")
    os.makedirs(inner)
    source = os.path.join(inner, os.path.basename(record.source))
    with open(source, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)
    path = os.path.join(inner, os.path.splitext(os.path.basename(record.source))[0] + ".o")
    compiler, *options = _anew(record, folder)
    options += [f"-I{os.path.dirname(record.source)}", "-c", source, "-o", path]
    options += more(compiler, options, options.index(source))
    return _Made(record, source, path, [compiler, *options], folder)


def _anew(record: Record, folder: str) -> list[str]:
    """The recorded command without its sources and what it makes, for another folder."""
    words: list[str] = [record.words[0]]
    modules = [folder]
    option = ""
    for word in record.words[1:]:
        path = os.path.normpath(os.path.join(record.folder, word))
        if option:
            if option in ("-J", "-module-dir"):
                modules.append(path)
            elif option not in _NOT_AGAIN_WITH_VALUE:
                words.append(path if option in _PATHS and os.path.exists(path) else word)
            option = ""
            continue
        if word in WITH_VALUE:
            option = word
            words += [word] if word not in _NOT_AGAIN_WITH_VALUE else []
        elif word.startswith("-J"):
            modules.append(os.path.normpath(os.path.join(record.folder, word[2:])))
        elif word.startswith("-I"):
            words.append("-I" + os.path.normpath(os.path.join(record.folder, word[2:])))
        elif word.startswith("-"):
            words += [word] if word not in _NOT_AGAIN else []
        elif scanner.form_of(word) is None or not os.path.exists(path):
            words.append(word)
    fortran = scanner.form_of(record.source) is not Form.C
    first = ["-J", folder, *(f"-I{one}" for one in (*modules[1:], record.folder))] if fortran else []
    return [words[0], *first, *words[1:]]

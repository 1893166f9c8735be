"""A program is translated as a whole, once for each state of its files.

Every command of a build asks for its own files. What all of them become is kept in homing's cache under a
digest of everything that it depends on: the text of each file as the compiler reads it, with what it
includes; each file's flags; the target; the translator itself. Nothing is looked up by a time stamp.
Commands that run at the same time wait for the one that was first.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from homing.paths import Cache
from homing.translate.directives.model import Form
from homing.translate.not_translated import directives_included, included_by
from homing.translate.plan.model import Plan
from homing.translate.positions import Problem, TranslationError
from homing.translate.translation import (
    Loaded,
    Options,
    Own,
    Refused,
    Result,
    concerns,
    load,
    translate_loaded,
)

_Wrong = tuple[tuple[Problem, ...], Plan, tuple[str, ...]]
#: States of programs that are kept: each is some hundred kilobytes.
_MOST_STATES = 60
#: Programs that can be translated at the same time: commands for others wait without need.
_LOCKS = 64
#: Hexadecimal digits of a digest that are kept: 128 bits.
DIGITS = 32


@dataclass(frozen=True)
class Piece:
    """A file of a program, as its command compiles it. text: a digest of all that is read."""

    loaded: Loaded
    own: Own
    text: str
    concerned: bool  # is there something in it to translate?


def digest(*words: str) -> str:
    """Of words, in their order."""
    made = hashlib.sha256()
    for word in words:
        made.update(word.encode("utf-8", "surrogateescape"))
        made.update(b"\0")
    return made.hexdigest()[:DIGITS]


def piece_of(path: str, options: Options) -> Piece:
    """Read a file by its absolute path. UserError: it cannot be read; TranslationError: the preprocessor
    fails."""
    loaded = load(path, options)
    own = options.of(path)
    parts = [loaded.source.text]
    if loaded.source.form is Form.C:
        for name, text in sorted(included_by(loaded.source, own.flags)):
            parts += [name, text]
    concerned = concerns(loaded.source, options.target)
    if not concerned and options.target != "upm":
        concerned = any(directives_included(loaded.source, own.flags))
    return Piece(loaded, own, digest(*parts), concerned)


def state_of(options: Options, files: Iterable[tuple[str, Own, str]]) -> str:
    """The digest of a program: of each file the path, what its command has of its own, and its text."""
    words = [_translator(), options.target, str(options.phases)]
    for path, own, text in sorted(files, key=lambda one: one[0]):
        words += [path, str(len(own.flags)), *own.flags, str(own.fixed_columns), text]
    return digest(*words)


@functools.cache
def _translator() -> str:
    """A digest of the translator: what another one made is of no use."""
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    made = hashlib.sha256()
    for folder, inner, names in os.walk(top):
        inner.sort()
        for name in sorted(names):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), "rb") as file:
                    made.update(file.read())
    return made.hexdigest()[:DIGITS]


def without_wrong(
    pieces: Mapping[str, Piece], options: Options, free: Callable[[str], bool]
) -> tuple[Result, dict[str, tuple[Problem, ...]]]:
    """The translation of a program. Files with problems that are `free` are left out of it; they are the
    second value. TranslationError: others have some."""
    left: dict[str, tuple[Problem, ...]] = {}
    first: TranslationError | None = None
    while True:
        try:
            kept = [one for path, one in sorted(pieces.items()) if path not in left]
            return _translated(kept, options), left
        except Refused as error:
            first = first or error
            wrong = [path for path in error.sources if path in pieces and path not in left and free(path)]
            if not wrong:
                raise first from error
            for path in wrong:
                left[path] = tuple(one for one in error.problems if one.position.file == path)


def _translated(pieces: Sequence[Piece], options: Options) -> Result:
    """What the files become together, from the cache where they were seen before. The text of files that stay
    as they are is left out."""
    options = replace(options, own={one.loaded.source.path: one.own for one in pieces})
    if options.target != "upm" and not any(one.concerned for one in pieces):
        return translate_loaded([one.loaded for one in pieces], options)
    key = state_of(options, ((one.loaded.source.path, one.own, one.text) for one in pieces))
    cache = Cache("translate", "programs")
    with _alone(cache.folder, key):
        kept = cache.read(key)
        outcome = _outcome(pieces, options) if kept is None else pickle.loads(kept)
        if kept is None:
            cache.write(key, pickle.dumps(outcome))
            forget_old(cache.folder, _MOST_STATES)
    if isinstance(outcome, Result):
        return outcome
    problems, plan, sources = outcome
    raise Refused(problems, plan, sources)


def _outcome(pieces: Sequence[Piece], options: Options) -> Result | _Wrong:
    """The result, or what an error is made of."""
    try:
        result = translate_loaded([one.loaded for one in pieces], options)
    except Refused as error:
        return error.problems, error.plan, tuple(error.sources)
    for output in result.outputs:
        output.text = output.text if output.changed else ""
    return result


@contextlib.contextmanager
def _alone(folder: str, key: str) -> Iterator[None]:
    """Nobody else translates this program meanwhile, where there is a cache to meet in."""
    try:
        lock = os.open(
            os.path.join(folder, f"lock.{int(key[:8], 16) % _LOCKS}"),
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o600,
        ) if folder else -1  # fmt: skip
    except OSError:
        lock = -1  # the cache says what is wrong with it
    try:
        if lock >= 0:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        if lock >= 0:
            os.close(lock)


def forget_old(folder: str, most: int) -> None:
    """Only the newest files of a cache stay."""
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(folder) if not name.startswith(("lock.", "."))] if folder else []
        if len(names) <= most:
            return
        paths = [os.path.join(folder, name) for name in names]
        for path in sorted(paths, key=lambda one: os.lstat(one).st_mtime)[:-most]:
            os.unlink(path)

"""Sources into trees, several at once; what is wrong in one file keeps no other from being read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from homing.errors import UserError, unexpected
from homing.limits import TimeUp, time_limit
from homing.translate.directives import scanner
from homing.translate.directives.model import Form
from homing.translate.options import Options
from homing.translate.positions import Position, Problem, TranslationError
from homing.translate.source import Plainer, SourceFile
from homing.translate.tree import Unit

#: Below this size a file is read sooner than a process is started.
_PARALLEL_CHARACTERS = 20_000
#: How long a small file may take to read at the most.
_LEAST_SECONDS = 60.0


@dataclass
class Read:
    unit: Unit | None
    statement_lines: list[int]
    problems: list[Problem]
    notes: list[Problem]
    plainer: SourceFile | None = None  # C: the file in plainer words, with which it is to be read


def read_all(
    sources: Sequence[SourceFile],
    scanned: Sequence[scanner.Scanned],
    options: Options,
    progress: Callable[[int, int, str], None] | None,
) -> list[Read]:
    """The trees of all sources, in their order. progress(done, all, path) is called as files are read."""
    processes = options.processes or len(os.sched_getaffinity(0))
    size = sum(len(source.text) for source in sources)
    found: list[Read] = []
    if processes > 1 and len(sources) > 1 and size > _PARALLEL_CHARACTERS:
        with ProcessPoolExecutor(min(processes, len(sources))) as pool:
            for index, one in enumerate(pool.map(read_one, sources, scanned, [options] * len(sources))):
                found.append(one)
                if progress:
                    progress(index + 1, len(sources), sources[index].path)
        for source, one in zip(sources, found, strict=True):
            if one.unit is not None:  # one object for one file, as without processes
                one.unit.source = source
                for routine in one.unit.routines:
                    routine.source = source
        return found
    for index, (source, directives) in enumerate(zip(sources, scanned, strict=True)):
        found.append(read_one(source, directives, options))
        if progress:
            progress(index + 1, len(sources), source.path)
    return found


def read_one(source: SourceFile, scanned: scanner.Scanned, options: Options, plain: bool = False) -> Read:
    """Parse one file. Nothing is raised for what is wrong in it: other files are looked at, too. plain: it is
    said in plain words."""
    problems, notes = list(scanned.problems), list(scanned.notes)
    if problems:
        return Read(None, [], problems, notes)
    lines_a_second = 20  # 2,000 are read, on a machine with nothing else to do
    try:
        with time_limit(_LEAST_SECONDS + source.text.count("\n") / lines_a_second):
            unit, lines = _parse(source, scanned, options, plain)
    except TranslationError as error:
        serial = source.cxx and "pragma" not in source.text
        if options.target == "upm" and serial:  # it has no calls to get
            return Read(None, [], problems, [*notes, error.problems[0]])
        return Read(None, [], [*problems, *error.problems], notes)
    except UserError:
        raise
    except Plainer as said:
        return Read(None, [], problems, notes, said.source)
    except TimeUp:
        reason = "takes too long to read: simplify the longest expressions, or split the file"
    except SystemExit:  # fparser's way to say that it cannot go on
        reason = "not understood (fparser gave up on this file)"
    except Exception as error:  # of a parser, on what its author did not think of
        reason = unexpected(error)
    else:
        return Read(unit, lines, problems, notes)
    return Read(None, [], [*problems, Problem(Position(source.path, 1, 1), "", reason)], notes)


def _parse(
    source: SourceFile, scanned: scanner.Scanned, options: Options, plain: bool
) -> tuple[Unit, list[int]]:
    """The file's tree, and the offsets at which lines can be marked."""
    if source.form is Form.C:
        from homing.translate.front import c

        parts = options.target in ("spmd", "mpi")
        return c.read(source, scanned.directives, options.of(source.path).flags, plain, parts)
    from homing.translate.front import fortran, lines

    unit = fortran.read(source, scanned.directives)
    return unit, [line.line_begin for line in lines.split(source)]

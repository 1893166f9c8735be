"""Sources that take the place of others before they are planned: they say the same in words that it knows.

The lists of sources, of what was scanned and of what was read go together, and change together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from homing.translate.directives import scanner
from homing.translate.directives.model import Form
from homing.translate.front import apart
from homing.translate.front.associates import without_names
from homing.translate.front.fortran_called import with_bodies
from homing.translate.options import Options
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.model import NotePlan, Step
from homing.translate.reading import Read, read_one
from homing.translate.source import SourceFile
from homing.translate.targets.c_brought import with_arguments
from homing.translate.targets.clones import as_clones
from homing.translate.targets.commons import as_modules
from homing.translate.targets.dropped_interfaces import without_interfaces
from homing.translate.targets.joined_regions import JOINED, joined, names_of
from homing.translate.targets.not_pure import without_pure
from homing.translate.targets.plain_pointers import as_allocatables
from homing.translate.targets.same_arguments import with_one_argument
from homing.translate.tree import Unit

#: How many ASSOCIATEs a file may have that go.
_MOST_NAMES = 200
#: How deep calls that lie in one another, or in what is called, may be.
_DEEPEST = 20


def join_loops(
    sources: list[SourceFile], scanned: list[scanner.Scanned], read: list[Read], options: Options
) -> list[Step]:
    """Puts files with joined regions into the place of the others, and says where."""
    names = {name for one in scanned for name in names_of(one.directives)}
    steps: list[Step] = []
    for index, one in enumerate(read):
        found = joined(one.unit, names) if one.unit is not None else None
        if found is None or one.unit is None:
            continue
        source, begins = found
        if _put(source, index, sources, scanned, read, options):
            steps += [NotePlan(one.unit.source.place(begin), name, JOINED) for name, begin in begins]
    return steps


def fortran_lines(sources: list[SourceFile], scanned: list[scanner.Scanned]) -> None:
    """Puts Fortran files with one statement a line into the place of the others."""
    for index, source in enumerate(sources):
        made = apart.fortran_apart(source)
        if made is not None:
            sources[index] = made
            scanned[index] = scanner.scan(made.text, made.path, made.form, made.fixed_columns)


def plain_c(
    sources: list[SourceFile], scanned: list[scanner.Scanned], read: list[Read], options: Options
) -> None:
    """Puts C files in plainer words into the place of the others."""
    for index, one in enumerate(read):
        source = one.plainer
        if source is not None:
            again = scanner.scan(source.text, source.path, source.form, source.fixed_columns)
            read[index] = read_one(source, again, options, plain=True)
            sources[index], scanned[index] = source, again


def c_lines(
    sources: list[SourceFile], scanned: list[scanner.Scanned], read: list[Read], options: Options
) -> None:
    """Puts C files whose loops stand on lines of their own into the place of the others."""
    for index, one in enumerate(read):
        if one.unit is None or one.unit.form is not Form.C:
            continue
        source = apart.c_apart(one.unit)
        if source is not None:
            _put(source, index, sources, scanned, read, options)


def own_names(
    sources: list[SourceFile], scanned: list[scanner.Scanned], read: list[Read], options: Options
) -> None:
    """Puts Fortran files in which arrays go by their own names into the place of those with ASSOCIATE."""
    names = {name for one in scanned for name in names_of(one.directives)}
    for index in range(len(read)):
        for _ in range(_MOST_NAMES):
            unit = read[index].unit
            made = without_names(unit, names) if unit is not None and unit.form.fortran else None
            if made is None or not _put(made, index, sources, scanned, read, options):
                break


def bodies_for_calls(
    sources: list[SourceFile], scanned: list[scanner.Scanned], read: list[Read], options: Options
) -> None:
    """Puts Fortran files whose loops say what they call into the place of the others."""
    names = {name for one in scanned for name in names_of(one.directives)}
    for _ in range(_DEEPEST if names else 0):
        if not _put_made(lambda units: with_bodies(units, names), sources, scanned, read, options):
            break


def no_pointers(
    sources: list[SourceFile], scanned: list[scanner.Scanned], read: list[Read], options: Options
) -> None:
    """Puts files whose distributed POINTERs are ALLOCATABLE into the place of the others."""
    _put_made(as_allocatables, sources, scanned, read, options)


def no_commons(
    sources: list[SourceFile], scanned: list[scanner.Scanned], read: list[Read], options: Options
) -> None:
    """Puts files whose COMMON blocks have distributed arrays in modules into the place of the others."""
    _put_made(as_modules, sources, scanned, read, options)


def other_procedures(
    sources: list[SourceFile],
    scanned: list[scanner.Scanned],
    read: list[Read],
    distributions: Distributions,
    options: Options,
) -> bool:
    """Puts files with copies of procedures that are called in several ways, or with one array twice, with
    arguments for what C's find in their file, without interfaces that lack layouts, or without PURE, into the
    place of the others."""
    if options.target == "pages":
        return False

    def made(units: Sequence[Unit]) -> dict[int, SourceFile]:
        found = with_arguments(units, distributions) or with_one_argument(units, distributions)
        found = found or as_clones(units, distributions) or without_interfaces(units, distributions)
        return found or without_pure(units, distributions)

    return _put_made(made, sources, scanned, read, options)


def _put_made(
    make: Callable[[Sequence[Unit]], dict[int, SourceFile]],
    sources: list[SourceFile],
    scanned: list[scanner.Scanned],
    read: list[Read],
    options: Options,
) -> bool:
    """Puts the files that are made of the units, by their places among these, into the place of the others.
    Were there some, and could all be put?"""
    places = [index for index, one in enumerate(read) if one.unit is not None]
    units = [one.unit for one in read if one.unit is not None]
    put = [_put(source, places[at], sources, scanned, read, options) for at, source in make(units).items()]
    return bool(put) and all(put)


def _put(
    source: SourceFile,
    index: int,
    sources: list[SourceFile],
    scanned: list[scanner.Scanned],
    read: list[Read],
    options: Options,
) -> bool:
    """A changed source into the place of one, if it can be read."""
    again = scanner.scan(source.text, source.path, source.form, source.fixed_columns)
    anew = read_one(source, again, options, plain=True)
    if anew.unit is None or anew.problems:
        return False
    sources[index], scanned[index], read[index] = source, again, anew
    return True

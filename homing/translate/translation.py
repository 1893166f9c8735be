"""Files in, files out: reads the sources (in parallel), plans across all of them, and writes each anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from homing.errors import UserError, unexpected
from homing.files import MOST_SOURCE, read_text
from homing.translate.directives import scanner
from homing.translate.directives.model import Form, NextTouch, Replicate
from homing.translate.front import expand
from homing.translate.front.implicit import know_modules
from homing.translate.not_translated import REFUSED, directives_included
from homing.translate.options import Options as Options
from homing.translate.options import Own as Own
from homing.translate.plan.arrays import Distributions
from homing.translate.plan.class_code import class_code, of_each_rank
from homing.translate.plan.collect import array_plans, collected, refusals
from homing.translate.plan.freed import memory_unseen
from homing.translate.plan.kept import addresses_kept
from homing.translate.plan.model import ArrayPlan, Plan, Step, UpmPlan
from homing.translate.positions import Problem, TranslationError
from homing.translate.program.common_modules import made_in
from homing.translate.program.header_functions import declare_anew
from homing.translate.program.shared import Shared, shared
from homing.translate.program.static_functions import tell_apart
from homing.translate.reading import Read, read_all
from homing.translate.replaced import (
    bodies_for_calls,
    c_lines,
    fortran_lines,
    join_loops,
    no_commons,
    no_pointers,
    other_procedures,
    own_names,
    plain_c,
)
from homing.translate.source import Edits, SourceFile
from homing.translate.targets.commons import repeat_directives
from homing.translate.targets.next_touch import translate_next_touch
from homing.translate.targets.pages import translate_pages
from homing.translate.targets.parts import Parts
from homing.translate.targets.rank_files import left_out, own_files
from homing.translate.targets.replicate import translate_replicate
from homing.translate.targets.routine import Work
from homing.translate.targets.upm.translate import translate_upm
from homing.translate.tree import Kind, Routine, Unit, statements
from homing.translate.write.c_prototypes import adapt_prototypes
from homing.translate.write.hidden_intrinsics import hidden
from homing.translate.write.inquiries import settle

TARGETS = ("pages", "spmd", "mpi", "upm")
#: Functions of C that read the standard input.
_READING = frozenset({"scanf", "getchar", "gets"})
#: How often procedures are copied, which may call others that are called in several ways then.
_MOST_CLONES = 8
#: Ranks need files of their own, whoever opens them.
_OPENS = re.compile(r"^[^!\n]*\b(open|fopen|inquire|remove)\s*\(", re.MULTILINE | re.IGNORECASE)


@dataclass
class Output:
    """A file that was translated; text equals the source where nothing was to do."""

    path: str
    text: str
    changed: bool


@dataclass(frozen=True)
class Loaded:
    """A file as it was read, and as the compiler reads it."""

    file: SourceFile
    source: SourceFile


@dataclass
class Result:
    """Everything that a translation says and makes."""

    outputs: list[Output] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    plan: Plan = field(default_factory=lambda: Plan("", ()))
    report: list[str] = field(default_factory=list)
    shared: tuple[Shared, ...] = ()
    unfollowed: list[Problem] = field(default_factory=list)  # --to upm: why nothing is done
    lines: int = 0
    modules: dict[str, tuple[str, str]] = field(default_factory=dict)  # see program/common_modules.py

    @property
    def runtime(self) -> bool:
        """Does the program need the runtime?"""
        return any(output.changed for output in self.outputs)


class Refused(TranslationError):
    """A translation that is not written; plan: what there would have been, and what is refused."""

    def __init__(self, problems: Iterable[Problem], plan: Plan, sources: Iterable[str] = ()) -> None:
        """sources: the files with the problems, some of which may lie in what they include."""
        super().__init__(problems)
        self.plan = plan
        self.sources = frozenset(sources)
        self.status = REFUSED


def translate(
    paths: Sequence[str], options: Options, progress: Callable[[int, int, str], None] | None = None
) -> Result:
    """Translate the files together. progress(done, all, path) is called as files are read.

    TranslationError: everything that is wrong, in the order of the sources; UserError: a file that cannot be
    read.
    """
    files = [_load(path, options) for path in paths]
    try:
        sources = [expand_one(file, options) for file in files]
    except TranslationError as error:
        problems = _where(error.problems, files)
        raise Refused(problems, collected(options.target, paths, (), (), problems, ())) from error
    loaded = [Loaded(*both) for both in zip(files, sources, strict=True)]
    result = translate_loaded(loaded, options, progress)
    if result.unfollowed:
        raise Refused(result.unfollowed, replace(result.plan, refused=refusals(result.unfollowed)))
    return result


def load(path: str, options: Options) -> Loaded:
    """Read a file. UserError: it cannot be read; TranslationError: the preprocessor says no."""
    file = _load(path, options)
    return Loaded(file, expand_one(file, options))


def translate_loaded(
    loaded: Sequence[Loaded], options: Options, progress: Callable[[int, int, str], None] | None = None
) -> Result:
    """As `translate`, with files that were read."""
    sources = [one.source for one in loaded]
    paths = [source.path for source in sources]
    try:
        result = _shown(_translate(sources, options, progress), sources)
        for one, output in zip(loaded, result.outputs, strict=True):
            if not output.changed:
                output.text = one.file.text
        return result
    except Refused as error:
        raise Refused(_where(error.problems, sources), error.plan, error.sources) from error
    except TranslationError as error:
        problems = _where(error.problems, sources)
        plan = collected(options.target, paths, (), (), problems, ())
        raise Refused(problems, plan, _files(error.problems)) from error
    except UserError:
        raise
    except Exception as error:  # said with the file, which the user can try parts of
        raise UserError(f"{', '.join(paths)}: {unexpected(error)}") from error


def expand_one(source: SourceFile, options: Options) -> SourceFile:
    """The source as the compiler reads it; what has no directives may be beyond us."""
    try:
        return expand.expanded(source, options.of(source.path).flags, options.compiler)
    except TranslationError:
        scanned = scanner.scan(source.text, source.path, source.form, source.fixed_columns)
        if scanned.directives or options.target == "upm":
            raise
        return source


def concerns(source: SourceFile, target: str) -> bool:
    """Is there anything in the file to translate, or to complain about?"""
    scanned = scanner.scan(source.text, source.path, source.form, source.fixed_columns)
    said = bool(scanned.directives or scanned.problems or scanned.notes)
    return said or (target == "mpi" and _OPENS.search(source.text) is not None)


def _where(problems: Iterable[Problem], sources: Sequence[SourceFile]) -> list[Problem]:
    """The problems where the user finds them."""
    files = {source.path: source for source in sources}
    return [files[one.position.file].shown(one) if one.position.file in files else one for one in problems]


def _files(problems: Iterable[Problem]) -> set[str]:
    return {one.position.file for one in problems}


def _shown(result: Result, sources: Sequence[SourceFile]) -> Result:
    result.notes = _where(result.notes, sources)
    return result


@dataclass
class _Joining:
    """Of parallel loops into regions: did it change a file? What is refused is refused without it, too."""

    changed: bool = False


def _translate(
    sources: list[SourceFile], options: Options, progress: Callable[[int, int, str], None] | None
) -> Result:
    """The files, in which parallel loops are joined into regions where that is not refused. sources becomes
    what was translated."""
    joining = _Joining()
    joined_ones = list(sources)
    try:
        result = _translated(joined_ones, options, progress, joining)
    except TranslationError:
        if joining.changed:
            return _translated(sources, options, progress, None)
        sources[:] = joined_ones
        raise
    sources[:] = joined_ones
    return result


def _distributed(
    units: list[Unit],
    distributions: Distributions,
    edits: dict[int, Edits],
    target: str,
    regions: list[Step],
) -> tuple[list[Problem], list[Step]]:
    """Writes the arrays and what is done with them, under pages, spmd or mpi. What stands in the way, and
    what is planned; `regions`: what was planned of regions that were joined."""
    problems = [*distributions.problems, *class_code(units, distributions)]
    steps: list[Step] = []
    if target != "pages":
        problems += memory_unseen(units, distributions)
        problems += addresses_kept(units, distributions)
    if not problems:
        problems = read_twice(units, distributions)
    if not problems:
        if target == "pages":
            problems, steps = translate_pages(units, distributions, edits)
        else:
            problems, steps = translate_parts(units, distributions, edits, target == "mpi")
            steps = [*regions, *steps]
        problems += adapt_prototypes(units, distributions, edits, target != "pages")
        problems += [] if problems else declare_anew(units, distributions, edits)
    return problems, steps


def _translated(
    sources: list[SourceFile],
    options: Options,
    progress: Callable[[int, int, str], None] | None,
    joining: _Joining | None,
    clones: int = 0,
) -> Result:
    result = Result(lines=sum(source.text.count("\n") for source in sources))
    scanned = [scanner.scan(one.text, one.path, one.form, one.fixed_columns) for one in sources]
    concerned = any(one.directives or one.problems or one.notes for one in scanned)
    if options.target != "upm":
        within = {one.path: list(directives_included(one, options.of(one.path).flags)) for one in sources}
        if included := [one for found in within.values() for one in found]:
            plan = collected(options.target, list(within), (), (), included, ())
            raise Refused(included, plan, [path for path, found in within.items() if found])
    concerned |= options.target == "mpi" and any(_OPENS.search(source.text) for source in sources)
    if options.target != "upm" and not concerned:
        # A build's other files may hold what no parser of ours knows.
        result.outputs = [Output(source.path, source.text, False) for source in sources]
        result.plan = Plan(options.target, tuple(source.path for source in sources))
        return result
    fortran_lines(sources, scanned)
    read = read_all(sources, scanned, options, progress)
    plain_c(sources, scanned, read, options)
    c_lines(sources, scanned, read, options)
    if options.target != "upm":
        own_names(sources, scanned, read, options)
    regions: list[Step] = []
    if options.target in ("spmd", "mpi") and not any(one.problems for one in read):
        bodies_for_calls(sources, scanned, read, options)
        no_commons(sources, scanned, read, options)
        no_pointers(sources, scanned, read, options)
    if joining is not None and options.target in ("spmd", "mpi") and not any(one.problems for one in read):
        before, joining.changed = list(sources), True
        regions = join_loops(sources, scanned, read, options)
        joining.changed = sources != before
    problems = [problem for one in read for problem in one.problems]
    result.notes = [note for one in read for note in one.notes]
    if problems:
        raise TranslationError(problems)
    units = [one.unit for one in read if one.unit is not None]
    tell_apart(units)
    know_modules(units)
    edits = {id(unit): Edits(unit.source) for unit in units}
    upm: UpmPlan | None = None
    arrays: tuple[ArrayPlan, ...] = ()
    steps: list[Step] = []
    touched = translate_next_touch(units, edits, options.target)
    result.notes += touched.notes
    copied = translate_replicate(units, edits, options.target)
    result.notes += copied.notes
    if touched.problems or copied.problems:
        raise TranslationError([*touched.problems, *copied.problems])
    if options.target == "upm":
        upm = _upm(units, edits, scanned, options, result)
        problems = []
    else:
        if options.target == "pages":
            repeat_directives(units)
        distributions = Distributions(units, in_place=options.target == "pages")
        if clones < _MOST_CLONES and other_procedures(sources, scanned, read, distributions, options):
            return _translated(sources, options, progress, None, clones + 1)
        problems, steps = _distributed(units, distributions, edits, options.target, regions)
        result.notes += distributions.notes
        result.shared = shared(units, distributions)
        arrays = array_plans(distributions)
    if not problems:
        problems = list(hidden(units, edits))
    paths = [source.path for source in sources]
    refused, notes = _where(problems, sources), _where(result.notes, sources)
    result.plan = collected(options.target, paths, arrays, steps, refused, notes)
    result.plan = replace(result.plan, report=tuple(result.report), upm=upm)
    if problems:
        raise Refused(problems, result.plan, _files(problems))
    result.unfollowed = _where(result.unfollowed, sources)
    _write(sources, read, edits, result)
    return result


def _write(
    sources: Sequence[SourceFile], read: Sequence[Read], edits: dict[int, Edits], result: Result
) -> None:
    """The new texts into the result."""
    for source, one in zip(sources, read, strict=True):
        changes = edits.get(id(one.unit)) if one.unit is not None else None
        if changes is None or not changes.any:
            result.outputs.append(Output(source.path, source.text, False))
            continue
        text = changes.apply(one.statement_lines)
        result.outputs.append(Output(source.path, text, True))
        if source.form is not Form.C:
            result.modules |= made_in(source.path, text)


def _upm(
    units: Sequence[Unit],
    edits: dict[int, Edits],
    scanned: Sequence[scanner.Scanned],
    options: Options,
    result: Result,
) -> UpmPlan | None:
    """--to upm: what it says and leaves goes into the result."""
    report = translate_upm(units, edits, options.phases)
    result.report = report.lines
    result.notes += [
        Problem(
            directive.source.position,
            directive.source.text,
            "not used with --to upm: UPMlib's calls move pages to where they are used",
        )
        for one in scanned
        for directive in one.directives
        if not isinstance(directive, NextTouch | Replicate)
    ]
    result.unfollowed = list(report.problems)
    return report.plan


def read_twice(units: Sequence[Unit], distributions: Distributions) -> list[Problem]:
    """Statements with distributed arrays in Fortran, of which the two parsers see other accesses."""
    from homing.translate.front import second_opinion

    fortran = [unit for unit in units if unit.form is not Form.C]
    if not fortran:
        return []
    names = {name for unit in fortran for routine in unit.routines for name in distributions.of(routine)}
    return second_opinion.differences(fortran, names)


def translate_parts(
    units: Sequence[Unit], distributions: Distributions, edits: dict[int, Edits], mpi: bool
) -> tuple[list[Problem], list[Step]]:
    """--to spmd and --to mpi."""
    from homing.translate.write.c_writer import CWriter
    from homing.translate.write.fortran_writer import FortranWriter

    problems: list[Problem] = []
    steps: list[Step] = []
    writers: list[FortranWriter | CWriter] = []
    for unit in units:
        for routine in unit.routines:
            writer: FortranWriter | CWriter
            if unit.form is Form.C:
                writer = CWriter(routine, distributions, edits[id(unit)], mpi)
            else:
                writer = FortranWriter(routine, distributions, edits[id(unit)], mpi)
                inside = distributions.inside(routine)
                settle(routine, distributions.of(routine), writer.whole, edits[id(unit)], inside)
            work = Work(routine, distributions, writer, mpi, steps)
            parts = Parts(work)
            parts.translate()
            problems += work.problems
            if mpi:
                problems += _standard_input(routine)
                inside = distributions.inside(routine)
                files, wrong = own_files(units, routine, edits[id(unit)], inside, distributions.types)
                writer.calls_runtime |= files
                problems += [routine.source.problem(*one) for one in wrong]
            writers.append(writer)
        if mpi:
            problems += [unit.source.problem(*one) for one in left_out(unit, edits[id(unit)])]
            problems += of_each_rank(unit, distributions)
    begun = {id(edits[id(unit)]) for unit in units if mpi and any(one.main for one in unit.routines)}
    for writer in writers:
        # Of ranks, one is heard, whatever there is to translate.
        if distributions.any or writer.edits.any or id(writer.edits) in begun:
            writer.frame()
    for writer in writers:
        problems += [writer.source.problem(*wrong) for wrong in writer.problems]
    return problems, steps


def _standard_input(routine: Routine) -> list[Problem]:
    """Only rank 0 of an MPI program has the standard input; the others would find its end."""
    found = []
    for statement in statements(routine.body):
        if statement.kind is not Kind.INPUT and not _READING & set(statement.calls):
            continue
        text = statement.text.replace(" ", "")
        fortran = re.match(r"(if\(.*\))?read(\*|\((unit=)?(\*|5),|\d|')", text)
        if fortran or _READING & set(statement.calls) or "stdin" in text:
            reason = "reads standard input, which only rank 0 has: read a file, or take arguments"
            found.append(routine.source.problem(statement.begin, statement.end, reason))
    return found


def _load(path: str, options: Options) -> SourceFile:
    form = scanner.form_of(path)
    if form is None:
        raise UserError(f"{path}: neither Fortran, C nor C++, by its name")
    text = read_text(path, MOST_SOURCE, errors="surrogateescape")
    own = options.of(path)
    return SourceFile(path, text, form, own.fixed_columns, cxx=scanner.is_cxx(path, own.flags))

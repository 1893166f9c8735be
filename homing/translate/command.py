"""`homing translate`: programs with data-distribution directives, rewritten source to source."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from enum import Enum

import typer

from homing.errors import UserError, os_reason
from homing.progress import long_step
from homing.translate.build import RUNTIME, runtime_files
from homing.translate.directives.model import Form
from homing.translate.directives.scanner import form_of, is_cxx
from homing.translate.not_translated import REFUSED, directives_in
from homing.translate.plan import explain
from homing.translate.plan.collect import collected
from homing.translate.plan.model import Plan
from homing.translate.plan.record import to_json
from homing.translate.positions import TranslationError
from homing.translate.translation import TARGETS, Options, Refused, Result, translate


class Explain(Enum):
    """Whether the plan is printed, and how."""

    NOTHING = 0
    TEXT = 1
    JSON = 2


def say(text: str) -> None:
    """A line for the user, apart from the output."""
    print(f"homing translate: {text}", file=sys.stderr, flush=True)


def report_problems(error: TranslationError) -> None:
    """Every problem on a line of its own, as compilers have it."""
    for problem in error.problems:
        print(problem, file=sys.stderr)


def command(
    words: list[str] = typer.Argument(
        None,
        metavar="FILE... | -- COMPILER ARGS...",
        help="the program's files, all together; or a compiler's command",
    ),
    to: str = typer.Option(..., "--to", metavar="TARGET", help="pages, spmd, mpi or upm"),
    output: str = typer.Option(
        "", "--output", "-o", metavar="FOLDER", help="where to write; default: named after TARGET"
    ),
    explained: bool = typer.Option(
        False, "--explain", help="say how arrays are distributed and what loops exchange"
    ),
    json_output: bool = typer.Option(False, "--json", help="with --explain: print JSON, for programs"),
    phases: bool = typer.Option(
        False, "--phases", help="with --to upm: record, replay and undo around phases, too"
    ),
    line_length: int = typer.Option(72, "--line-length", metavar="N", help="of fixed form; 0: any"),
    include: list[str] = typer.Option([], "--include", "-I", metavar="FOLDER", help="for C's #include"),
    define: list[str] = typer.Option(
        [], "--define", "-D", metavar="NAME[=VALUE]", help="for C's preprocessor"
    ),
) -> int:
    """Rewrite programs with data-distribution directives.

    The files of one program are given together, so that calls can be followed. After `--` comes a compiler's
    command: its sources are translated and compiled in one step.
    """
    if to not in TARGETS:
        raise UserError(f"--to {to}: one of {', '.join(TARGETS)}")
    if phases and to != "upm":
        raise UserError("--phases: only with --to upm")
    if json_output and not explained:
        raise UserError("--json: only with --explain")
    if line_length < 0:
        raise UserError(f"--line-length {line_length}: must be 0 (any) or more")
    for name in define:
        if not re.match(r"[A-Za-z_$][\w$]*([(=]|$)", name, re.ASCII):
            raise UserError(f"--define {name!r}: must be NAME or NAME=VALUE")
    if "" in include:
        raise UserError("--include: the name is empty")
    told = Explain.JSON if json_output else Explain.TEXT if explained else Explain.NOTHING
    words = list(words or [])
    if not words:
        raise UserError(
            "no file given: homing translate FILE... --to TARGET, or --to TARGET -- gfortran ARGS"
        )
    flags = [*(f"-I{folder}" for folder in include), *(f"-D{name}" for name in define)]
    # A compiler may be named by its path.
    if form_of(words[0]) is None and (not os.path.exists(words[0]) or shutil.which(words[0])):
        from homing.translate.compile import translate_and_compile

        if output:
            raise UserError("--output: not with a compiler's command, which has its own -o")
        return translate_and_compile(words, to, phases, told, line_length, flags)
    unknown = [(word, "its language") for word in words if form_of(word) is None and os.path.isfile(word)]
    in_vain = list(directives_in(unknown, b""))
    if in_vain:
        report_problems(TranslationError(in_vain))
        say(
            f"{', '.join(word for word, _ in unknown)}: "
            "neither Fortran, C nor C++, by name; nothing was written"
        )
        show(collected(to, words, (), (), in_vain, ()), told)
        return REFUSED
    try:
        result = _translated(words, Options(to, phases, line_length, tuple(flags)))
    except TranslationError as error:
        return refused(error, told, "nothing was written")
    tell(result, to, told)
    folder = output or to
    write(result, folder, to)
    return 0


def _translated(words: list[str], options: Options) -> Result:
    """With a line on the terminal while it takes long."""
    with long_step("homing translate", "reading", options.target, *map(os.path.abspath, words)) as line:

        def progress(done: int, count: int, _: str) -> None:
            line.change("rewriting" if done == count else f"{done} of {count} files read")

        return translate(words, options, progress)


def refused(error: TranslationError, told: Explain, outcome: str) -> int:
    """Says what is wrong, and the plan as far as there is one. Returns the exit status."""
    report_problems(error)
    count = len(error.problems)
    say(f"{count} problem{'s' if count != 1 else ''}; {outcome}")
    if isinstance(error, Refused):
        show(error.plan, told)
    return REFUSED


def show(plan: Plan, told: Explain) -> None:
    """The plan on the standard output, as the user wants it."""
    if told is Explain.JSON:
        print(json.dumps(to_json(plan), indent=1))
    elif told is Explain.TEXT:
        explain.show(plan)


def tell(result: Result, target: str, told: Explain) -> None:
    """Notes, and with --explain what was found (in short for upm always)."""
    for note in result.notes:
        print(f"{note}", file=sys.stderr)
    if target == "upm" and told is Explain.NOTHING:
        for line in result.report:
            print(line, file=sys.stderr)
    show(result.plan, told)


def write(result: Result, folder: str, target: str) -> None:
    """All files into a folder, with the runtime sources that they need. Nothing is left half written."""
    names = [os.path.basename(output.path) for output in result.outputs]
    if len(set(names)) < len(names):
        raise UserError("two files have the same name: translate them into folders of their own")
    files = [(name, output.text) for name, output in zip(names, result.outputs, strict=True)]
    for output in result.outputs:
        if os.path.exists(os.path.join(folder, os.path.basename(output.path))) and os.path.samefile(
            os.path.join(folder, os.path.basename(output.path)), output.path
        ):
            raise UserError(f"{output.path}: would be overwritten; give another folder with --output")
    if result.runtime and target in ("spmd", "mpi", "pages"):
        for name in runtime_files(any(form_of(name) is not Form.C for name in names)):
            with open(os.path.join(RUNTIME, name), encoding="utf-8") as file:
                files.append((name, file.read()))
    if not result.runtime:
        say("no directive was found: the files are copied as they are")
    try:
        os.makedirs(folder, exist_ok=True)
        for name, text in files:
            inner, last = os.path.split(name)
            os.makedirs(os.path.join(folder, inner), exist_ok=True)
            temporary = os.path.join(folder, inner, f".{last}.part")
            with open(temporary, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write(text)
            os.replace(temporary, os.path.join(folder, name))
    except OSError as error:
        raise UserError(f"{folder}: {os_reason(error)}") from error
    say(f"{len(names)} file{'s' if len(names) != 1 else ''}, {result.lines:,} lines, into {folder}/")
    if result.runtime:
        say(f"compile them with: {compile_line(folder, names, target)}")


def compile_line(folder: str, names: list[str], target: str) -> str:
    """A command that compiles the output."""
    fortran = [name for name in names if form_of(name) is not Form.C]
    cxx = [name for name in names if is_cxx(name)]
    others = [name for name in names if name not in fortran and name not in cxx]
    if target == "upm":
        return f"... {' '.join(names)} -lhoming"
    runtime = runtime_files(bool(fortran))
    mpi = target == "mpi"
    c_compiler = "mpicc -DHOMING_MPI" if mpi else "gcc"
    c_files = [name for name in runtime if name.endswith(".c")]
    if not fortran and not cxx:
        return f"cd {folder} && {c_compiler} -O2 -fopenmp {' '.join([*c_files, *others])} -lm"
    objects = " ".join(name[:-2] + ".o" for name in [*c_files, *others])
    if cxx:
        linker = "mpicxx" if mpi else "g++"
        made = f"cd {folder} && {c_compiler} -O2 -fopenmp -c {' '.join([*c_files, *others])} && "
        if not fortran:
            return f"{made}{linker} -O2 -fopenmp {' '.join(cxx)} {objects}"
        made += f"{linker} -O2 -fopenmp -c {' '.join(cxx)} && "
        objects += "".join(f" {os.path.splitext(name)[0]}.o" for name in cxx) + " -lstdc++"
        f_compiler = "mpifort" if mpi else "gfortran"
        sources = [name for name in runtime if name.endswith(".f90")] + fortran
        return f"{made}{f_compiler} -O2 -fopenmp {' '.join(sources)} {objects}"
    f_compiler = "mpifort" if mpi else "gfortran"
    sources = [name for name in runtime if name.endswith(".f90")] + fortran
    return (
        f"cd {folder} && {c_compiler} -O2 -fopenmp -c {' '.join([*c_files, *others])} && "
        f"{f_compiler} -O2 -fopenmp {' '.join(sources)} {objects}"
    )

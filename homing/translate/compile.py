"""Translate and compile in one step: `homing translate --to T -- gfortran ARGS`, and homing-translate-fc,
homing-translate-cc and homing-translate-cxx."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homing.compilers import NOT_LINKING, expand_response_files, has_openmp
from homing.errors import UserError
from homing.integers import decimal
from homing.progress import long_step
from homing.translate.build import more_arguments
from homing.translate.directives import scanner
from homing.translate.not_translated import REFUSED, directives_in, parallel_in_cxx, sources_of
from homing.translate.plan.collect import collected
from homing.translate.plan.model import Plan
from homing.translate.positions import TranslationError

if TYPE_CHECKING:
    from homing.translate.command import Explain
    from homing.translate.program.record import Record
    from homing.translate.program.view import Viewed
    from homing.translate.translation import Options, Result

#: The preprocessor's output is a source, whose turn comes later (CMake with Ninja does so for Fortran).
_PREPROCESSING = frozenset({"-E", "-M", "-MM"})
#: What makes objects, which remember how they were translated.
_KEEPING = frozenset({"-c", "-S"})
#: What links, and leaves it to another command to make a program.
_PARTIAL = frozenset({"-shared", "-r", "-Wl,-r", "-dynamiclib"})
#: Commands in front of a compiler. homing's own has two words.
_LAUNCHERS = frozenset({"ccache", "sccache", "distcc", "icecc"})


def _launcher(words: Sequence[str]) -> int:
    """How many words stand before the compiler: "homing cc", "ccache"."""
    count = 0
    while count + 1 < len(words):
        name = os.path.basename(words[count])
        if name == "homing" and words[count + 1] == "cc" and count + 2 < len(words):
            count += 2
        elif name in _LAUNCHERS:
            count += 1
        else:
            break
    return count


def translate_and_compile(
    words: Sequence[str], target: str, phases: bool, told: Explain, line_length: int, flags: Sequence[str]
) -> int:
    """Run the compiler's command on translated sources. Returns its exit status."""
    from homing.translate.command import Explain, refused, report_problems, say, show
    from homing.translate.translation import Options

    before = _launcher(words)
    launcher, (compiler, *arguments) = words[:before], words[before:]
    arguments = expand_response_files(arguments)
    if os.path.dirname(compiler):
        compiler = os.path.abspath(compiler)  # the runtime is compiled elsewhere
    if shutil.which(compiler) is None:
        raise UserError(f"{compiler}: command not found")
    if not _PREPROCESSING.isdisjoint(arguments):
        if told is not Explain.NOTHING:
            raise UserError("--explain: not with -E, -M or -MM, whose output goes where the plan would")
        return subprocess.run(words, check=False).returncode
    found = sources_of(compiler, arguments)
    sources = found.translated
    read = any(path == "-" for path, _ in found.others)
    standard_input = sys.stdin.buffer.read() if read else None
    problems = list(directives_in(found.others, standard_input or b""))
    if target == "upm":
        problems += parallel_in_cxx(found.others)
    if problems:
        report_problems(TranslationError(problems))
        say(f"{len(problems)} problem{'s' if len(problems) != 1 else ''}; nothing was compiled")
        show(collected(target, [path for path, _ in found.others], (), (), problems, ()), told)
        return REFUSED
    if target == "upm":
        for path, what in found.others:
            if what == "C++":
                print(f"{path}: {what} is not translated: no calls are inserted", file=sys.stderr)
    preprocess = [*flags, *_preprocessor_flags(arguments)]
    if not has_openmp(arguments):
        preprocess.append("-U_OPENMP")
    if found.cxx:
        preprocess.append(scanner.CXX)
    if any(word.startswith("-ffixed-line-length-") for word in arguments):
        text = next(w for w in arguments if w.startswith("-ffixed-line-length-")).rpartition("-")[2]
        length = 0 if text == "none" else decimal(text)
        if length is None:
            raise UserError(f"-ffixed-line-length-{text}: must be a number or none")
        line_length = length
    command = _Command(launcher, compiler, arguments, sources, standard_input)
    options = Options(target, phases, line_length, tuple(preprocess), 0, compiler)
    with tempfile.TemporaryDirectory(prefix="homing-translate-") as folder:
        try:
            return command.run(options, told, folder)
        except TranslationError as error:
            return refused(error, told, "nothing was linked" if not sources else "nothing was compiled")


@dataclass
class _Command:
    """A compiler's command. sources: the places of those that are translated among the arguments."""

    launcher: Sequence[str]
    compiler: str
    arguments: list[str]
    sources: Sequence[int]
    standard_input: bytes | None

    def run(self, options: Options, told: Explain, folder: str) -> int:
        """Translate, compile, and keep in the objects how. TranslationError: something is refused. Returns
        the compiler's exit status."""
        from homing.translate.command import say, show, tell
        from homing.translate.program.again import compile_again
        from homing.translate.program.common_modules import module_flags
        from homing.translate.program.link import linked
        from homing.translate.program.view import viewed

        target = options.target
        paths = [self.arguments[index] for index in self.sources]
        words = [self.compiler, *self.arguments]
        links = NOT_LINKING.isdisjoint(words) and target != "upm" and _PARTIAL.isdisjoint(words)
        view: Viewed | None = None
        stale: list[tuple[Record, int, str]] = []
        modules: dict[str, tuple[str, str]] = {}
        changed = False
        alone = False
        reading = f"reading {', '.join(map(os.path.basename, paths)) or 'what is linked'}"
        with long_step("homing translate", reading, target, os.getcwd(), *words):
            if links:
                link = linked(self.arguments, paths, options)
                view, stale, modules = link.viewed, link.stale, link.modules
                alone = target == "mpi" and not link.arrays and bool(link.objects + len(paths))
            elif paths:
                view = viewed(paths, options)
                modules = view.result.modules
        if alone:
            say("no array is distributed: every rank runs the whole program")
        if view is not None:
            tell(view.result, target, told)
            changed = _written(view.result, self.sources, self.arguments, folder)
            if changed and target != "upm" and not has_openmp(self.arguments):
                raise UserError(f"--to {target}: what is translated needs OpenMP: add -fopenmp")
        else:
            show(Plan(target, ()), told)

        def more(compiler: str, arguments: Sequence[str], source: int) -> Sequence[str]:
            more = more_arguments(compiler, arguments, [source], target, True)
            with open(arguments[source], encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
            return [*more, *module_flags(modules, [text], compiler, [*arguments, *more], folder)]

        added = more_arguments(self.compiler, self.arguments, self.sources, target, changed)
        if view is not None and changed:
            texts = [one.text for one in view.result.outputs if one.changed]
            given = [*self.arguments, *added]
            added += module_flags(modules, texts, self.compiler, given, folder)
        if stale:
            again = compile_again(stale, self.arguments, folder, more)
            if again.compiled:
                names = ", ".join(os.path.relpath(source) for source in again.compiled)
                why = "whose other files have changed or were not known"
                say(f"{names}: compiled again for this program, {why}")
            if again.failed:
                return again.failed
        run = [*self.launcher, self.compiler, *self.arguments, *added]
        done = subprocess.run(run, check=False, input=self.standard_input).returncode
        keeping = not (_KEEPING | _PARTIAL).isdisjoint(words)
        if done == 0 and view is not None and target != "upm" and keeping:
            _keep_records(view, paths, words, options)
        return done


def _keep_records(view: Viewed, paths: Sequence[str], words: Sequence[str], options: Options) -> None:
    """Each object of the command gets the record of its source, a library those of all."""
    from homing.translate.program.record import Record, keep

    ending = ".s" if "-S" in words else ".o"
    named = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "-o"]
    named += [word[2:] for word in words if word.startswith("-o") and len(word) > 2]
    if not named and _KEEPING.isdisjoint(words):
        named = ["a.out"]
    records: dict[str, list[Record]] = {}
    for path in paths:
        made = named[-1] if named else os.path.splitext(os.path.basename(path))[0] + ending
        source = os.path.abspath(path)
        if not os.path.isfile(made):
            continue
        piece = view.pieces[source]
        own = [one for one in view.shared if one.place.file == source]
        record = Record(
            source,
            options.target,
            options.phases,
            piece.own.flags,
            piece.own.fixed_columns,
            piece.text,
            view.digests[source],
            view.state,
            view.concerned,
            bool(view.result.plan.arrays),
            tuple(one.plain() for one in own),
            os.getcwd(),
            tuple(words),
        )
        records.setdefault(made, []).append(record)
    for made, those in records.items():
        keep(those, made)


def _written(result: Result, sources: Sequence[int], arguments: list[str], folder: str) -> bool:
    """The translated sources into the folder, and into the compiler's arguments in place of the user's. Is
    there any?"""
    folders: list[str] = []
    for number, (index, output) in enumerate(zip(sources, result.outputs, strict=True)):
        if not output.changed:
            continue
        inner = os.path.join(folder, str(number))
        os.makedirs(inner)
        path = os.path.join(inner, os.path.basename(output.path))
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(output.text)
        arguments[index] = path
        folders.append(os.path.dirname(os.path.abspath(output.path)))
    arguments += [f"-I{original}" for original in dict.fromkeys(folders)]
    return bool(folders)


def _preprocessor_flags(arguments: Sequence[str]) -> list[str]:
    found = []
    for index, word in enumerate(arguments):
        if word in ("-I", "-D", "-include", "-isystem", "-iquote") and index + 1 < len(arguments):
            found += [word, arguments[index + 1]]
        elif word in ("-cpp", "-nocpp") or (word.startswith(("-I", "-D", "-U", "-std=")) and len(word) > 2):
            found.append(word)
    return found


def _one_word(default: str, variable: str) -> int:
    from homing.cli import main

    target = shlex.split(os.environ.get("HOMING_TRANSLATE") or "spmd")
    compiler = shlex.split(os.environ.get(variable) or default)
    return main(["translate", "--to", *target, "--", *compiler, *sys.argv[1:]])


def fortran_main() -> int:
    """homing-translate-fc: HOMING_FC (gfortran) behind a translation to HOMING_TRANSLATE (spmd), which may
    have options behind the target: "upm --phases"."""
    return _one_word("gfortran", "HOMING_FC")


def c_main() -> int:
    """homing-translate-cc: HOMING_CC (gcc) behind a translation to HOMING_TRANSLATE (spmd)."""
    return _one_word("gcc", "HOMING_CC")


def cxx_main() -> int:
    """homing-translate-cxx: HOMING_CXX (g++) behind a translation to HOMING_TRANSLATE (spmd)."""
    return _one_word("g++", "HOMING_CXX")

"""What follows a run that has ended: its records, the summary, the JSON file. Nothing here reads command
lines: the native launcher starts Python for this alone (homing/run_finish.py)."""

from __future__ import annotations

import os
import sys

from homing import environment, launch
from homing.errors import UserError, unexpected
from homing.light import contextmanager, suppress
from homing.run_files import Records, is_memory_file, save
from homing.values import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from homing.channel import Report
    from homing.records import Record
    from homing.report.results import Results


@dataclass
class Request:
    """What the user asked for. `options`: values of the table's flags by variable, only those given."""

    command: list[str]
    options: dict[str, str] = field(default_factory=dict)
    summary: str = "stderr"
    json: str = ""
    html: str = ""
    record: str = ""
    #: With --compare: of the first run the results are kept, the second one's are held against them.
    compare: bool = False
    #: This is the first run. Where it ends well its files are left to the second one; else there is none.
    first: bool = False
    #: With --fail-if: the results are looked at, whatever is printed of them.
    condition: bool = False
    results: Results | None = None
    before: Results | None = None
    bind: bool = False
    #: The files that got a rank in their names because this is one of several tasks: flag and name.
    ranked: list[str] = field(default_factory=list)

    @property
    def wants_results(self) -> bool:
        """Is anything to be made of the records after the run?"""
        return self.summary != "none" or bool(self.json or self.html) or self.compare or self.condition

    def notes(self) -> list[str]:
        """What the user should know of the names of files."""
        if not self.ranked:
            return []
        from homing.launchers import task

        if (mine := task(os.environ)) is None:
            return []
        of = f" of {mine.size}" if mine.size else ""
        return [f"task {mine.rank}{of} ({mine.launcher}) has files of its own: {', '.join(self.ranked)}"]

    def option(self, variable: str) -> str:
        """A value of the table: the flag's, else the environment's; empty where neither says anything."""
        return self.options.get(variable) or os.environ.get(variable, "")


@dataclass
class Ended:
    """A run that has ended: the exit status, the process (0: unknown), its seconds, and what the launcher
    knows: notes, why nothing could be done, what a counter counted."""

    status: int
    process: int
    seconds: float
    notes: list[str]
    aside: str = ""
    counts: dict[str, Any] | None = None
    #: No process of the run is left (it was in a guest).
    gone: bool = False


def finish(request: Request, records: Records, ended: Ended) -> None:
    """The records, the summary and the JSON file of a run that has ended. Never raises: the program's status
    is the answer, whatever becomes of these."""
    with afterwards("the records"):
        kept, lost = records.written()
        _tell_records(kept, ended)
        results = None
        goes_on = request.first and ended.status == 0
        with afterwards("the summary"):
            if request.wants_results:
                results = request.results = _results(request, records, kept, lost, ended)
                if not goes_on:
                    report(request, results, ended.process)
        if goes_on:
            remove(kept)
            return
        keep(records, kept, results, ended.gone)
        if request.wants_results:
            save_unread(records, kept, results)
        if request.first:
            how = launch.signal_name(ended.status) or f"status {ended.status}"
            print(
                f"homing run: no second run: the first one, without moves, ended with {how}; "
                "what is written is of it",
                file=sys.stderr,
            )


def remove(kept: list[str]) -> None:
    """Records that nobody needs any more."""
    for path in kept:
        with suppress(OSError):
            os.unlink(path)


def save_unread(records: Records, kept: list[str], results: Results | None) -> None:
    """What could not be read now (memory is short) is not lost with the run's temporary folder."""
    read = {one.record.path for one in results.processes} if results is not None else set()
    for path in [] if records.name else kept:
        if path not in read and not is_memory_file(path):
            with afterwards(path):
                saved = save(path)
                print(f"homing run: a record was not read, and stays: homing report {saved}", file=sys.stderr)


def _tell_records(kept: list[str], ended: Ended) -> None:
    """What only the launcher knows goes into the records: the signal that ended the run, a guest's counts."""
    counts = {}
    if ended.counts is not None:
        import json

        from homing.records import LAB_COUNTS

        counts[LAB_COUNTS] = json.dumps(ended.counts, separators=(",", ":"))
    tell_records(kept, ended.status, counts, ended.gone)


def tell_records(kept: list[str], status: int, facts: dict[str, str], gone: bool = False) -> None:
    """Add facts to the records; to those of processes that did not end in order also the signal that ended
    the run, where `status` tells of one."""
    name = launch.signal_name(status)
    if not facts and not name:
        return
    from homing.record_additions import add_to_record
    from homing.records import ENDED_BY, read_record

    for path in [path for path in kept if not is_memory_file(path)]:
        with afterwards(path):
            early = bool(name) and not (record := read_record(path)).ended_by and record.end is None
            add_to_record(path, {**facts, ENDED_BY: name} if early else facts, gone=gone)


def _results(request: Request, records: Records, kept: list[str], lost: str, ended: Ended) -> Results:
    from homing.report.results import read_results

    # Source lines are worth two seconds; `homing report` takes its time.
    results = read_results(kept, budget=2.0, remember=True)
    results.unreadable += [lost] if lost else []
    results.command = request.command
    results.status = ended.status
    results.seconds = ended.seconds
    # What the reader remarks is about names in the table: without one it is of no use.
    working = any(not process.record.stepped_aside for process in results.processes)
    results.notes = [*ended.notes, *(results.notes if working else [])]
    results.aside = ended.aside
    if not ended.aside and not results.processes and not results.unreadable:
        known, text = unseen(request, records.said)
        if known:
            results.aside = text
        else:
            results.unreadable.append(text)
    results.names = bool(request.option("HOMING_AREAS"))
    results.counts = ended.counts or results.counts
    results.notes += [text] if (text := missing_tasks(one.record for one in results.processes)) else []
    if any(process.record.rules for process in results.processes):
        from homing.area_rules import known_variables, rule_notes

        results.notes += rule_notes(results, lambda: known_variables(request.command))
    return results


def unseen(request: Request, said: Report | None) -> tuple[bool, str]:
    """What to say where no process left a record, and the launcher saw no reason for it; and whether that is
    known. `said`: by the programs of the run; None: nobody could."""
    from homing import binding

    others = "static, set-uid or started without LD_PRELOAD"
    if said is None:
        return False, (
            f"no record came back (no OpenMP, HOMING=off, {others}, or of a user who cannot write it)"
        )
    deaf = (
        "without HOMING_CHANNEL in its environment, of another user with its inherited descriptors closed, "
        "or on another host"
    )
    if only := request.option("HOMING_ONLY"):
        if said.programs > said.declined:
            return True, f"no process named {only} (--only) reported a parallel region"
        return True, f"no process named {only} (--only) was seen"
    if said.programs == 0:
        return False, f"no program of the run reached homing (each was {others}, {deaf})"
    if said.programs == said.declined:
        return True, "HOMING=off is set"
    where = "the one program" if said.programs == 1 else f"{said.programs} programs"
    off = f", in {said.declined} of them switched off" if said.declined else ""
    heard = f"homing was in {where} of the run{off}"
    text = f"no process reported a parallel region ({heard}; not heard of: one that is {others}, {deaf})"
    if binding.starts_tasks(request.command):
        # Its tasks may be anywhere.
        name = os.path.basename(request.command[0])
        return False, f"{text}; {name} ... homing run -- PROGRAM hears of each task"
    return True, text


def missing_tasks(records: Iterable[Record]) -> str:
    """A line where some tasks of a job left a record here and others did not; empty: nothing to say."""
    known = [record for record in records if record.rank >= 0 and record.ranks > 0]
    # Of several jobs in one run nothing can be said, nor by a launcher that is a task itself.
    if len({record.ranks for record in known}) != 1:
        return ""
    from homing.launchers import task

    if task(os.environ) is not None:
        return ""
    size = known[0].ranks
    missing = size - len({record.rank for record in known if record.rank < size})
    if missing <= 0:
        return ""
    return (
        f"{missing} of {size} tasks left no record here, what was done in them is not known: without a "
        "parallel region, or on another host (MPIRUN ... homing run -- PROGRAM hears of each task)"
    )


def report(request: Request, results: Results, process: int) -> None:
    """Write --summary, --json and --html where asked for; one that fails does not hold up the others."""
    if request.summary != "none":
        with afterwards("the summary"):
            from homing.report.summary import print_summary

            print_summary(results, environment.expand_name(request.summary, process, os.environ))
    if request.before is not None:
        with afterwards("the comparison"):
            from homing.report.compare import comparison
            from homing.report.summary import print_lines

            before, names = request.before, ("nothing moved", "with homing")
            # A file holds the summary.
            path = "stdout" if request.summary == "stdout" else "stderr"
            print_lines(lambda _: comparison(before, results, names), path)
    if request.json:
        with afterwards("the results"):
            from homing.report.json import write_json

            write_json(results, environment.expand_name(request.json, process, os.environ))
    if request.html:
        with afterwards("the page"):
            from homing.report.html import write_html

            write_html(results, environment.expand_name(request.html, process, os.environ))


def say_room(request: Request, records: Records) -> None:
    """Say before the start that there will be no summary. The program runs all the same."""
    if request.wants_results and (problem := records.no_room()):
        print(f"homing run: no record can be written: {problem}; there will be no summary", file=sys.stderr)


def keep(records: Records, kept: list[str], results: Results | None, gone: bool = False) -> None:
    """The names of areas go into the records that stay, and a single record gets the name that the user
    gave it. results: what the summary was made from, if it was made; gone: no process of the run is left."""
    if records.name:
        from homing.record_additions import add_to_record
        from homing.report.keep import look_up

        for path in [path for path in kept if not is_memory_file(path)]:
            with afterwards("the names of areas"):
                known = results.sources.get(path) if results is not None else None
                add_to_record(path, sources=look_up(path) if known is None else known, gone=gone)
    if said := records.keep(kept):
        print(f"homing: {said}", file=sys.stderr)


@contextmanager
def afterwards(what: str, where: str = "homing run") -> Iterator[None]:
    """Around what is not the program's run: its exit status is the answer, so whatever fails here is one
    line and nothing more."""
    try:
        yield
    except UserError as error:
        if error.message:
            print(f"{where}: {error.message}", file=sys.stderr)
    except KeyboardInterrupt:
        pass
    except SystemExit:  # Rich's way to say that the reader of a pipe has gone
        print(f"{where}: {what}: nobody reads any more", file=sys.stderr)
    except Exception as error:
        print(f"{where}: {what}: {unexpected(error)}", file=sys.stderr)

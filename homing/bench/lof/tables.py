"""Tables 1 to 3 and the figures, from the outcomes of the runs: rows for programs, text for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from homing.bench.lof import paper
from homing.bench.lof.model import (
    MODEL_NAME,
    MigrationCost,
    break_even,
    calibrate,
    fit_migration,
    paper_error,
    relative_time,
    rms,
)
from homing.bench.lof.runs import OTHER_ORDERS, Outcome
from homing.bench.results import Row

Outcomes = Mapping[str, Mapping[str, Outcome]]
Floats = npt.NDArray[np.float64]

#: A page that the daemon moves or replicates takes so many seconds of the program's; the paper has no number.
DAEMON_PAGE_SECONDS = 40e-6
#: Where ours may differ from the paper's before it has to be explained.
POINTS = 0.05


@dataclass
class Curves:
    """Seconds of each iteration, by the legend's name."""

    title: str
    lines: dict[str, Floats] = field(default_factory=dict)


@dataclass
class Tables:
    """What all tables and figures are made of."""

    outcomes: Outcomes
    rows: list[Row] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    curves: dict[str, Curves] = field(default_factory=dict)

    def fill(self) -> Tables:
        """Everything, of the programs that were run."""
        self.table1()
        self.table2()
        self.table3()
        self.figures()
        self.wildfire()
        self.every_region()
        return self

    def programs(self, *needed: str) -> list[str]:
        """The paper's programs that have these runs."""
        return [
            program
            for program in paper.PROGRAMS
            if program in self.outcomes and all(name in self.outcomes[program] for name in needed)
        ]

    def m(self, program: str) -> float:
        """Of the model of time, from Table 1's ratio of SI."""
        seconds = paper.SECONDS[program]
        relative = seconds["si"] / seconds["uma"]
        return calibrate(relative, self.outcomes[program]["si"].fraction, paper.SF15K_RATIO)

    def relative(self, program: str, remote: float, ratio: float = paper.SF15K_RATIO) -> float:
        """Model time relative to UMA, without migration."""
        return relative_time(self.m(program), ratio, remote)

    def uma_seconds(self, program: str) -> float:
        """The paper's, an iteration."""
        return paper.seconds_an_iteration(program, "uma")

    def moved_bytes(self, program: str, name: str) -> float:
        """At the paper's size."""
        outcome = self.outcomes[program][name]
        return outcome.moved_bytes * paper.BYTES[program] / outcome.bytes

    def cost_without(self, program: str) -> MigrationCost:
        """Costs of migration from Table 3's numbers of the other programs (of all where there are no
        others)."""
        others = [other for other in self.programs(*_TABLE3.values()) if other != program]
        samples = [
            (_touched(other, column), self.moved_bytes(other, name), paper.MIGRATION[other][column])
            for other in others or [program]
            for column, name in _TABLE3.items()
        ]
        return fit_migration(samples)

    def overhead(self, program: str, column: str = "t4") -> float:
        """Seconds that migration takes at the paper's size."""
        moved = self.moved_bytes(program, _TABLE3[column])
        return self.cost_without(program).seconds(_touched(program, column), moved)

    def table1(self) -> None:
        """Model times relative to UMA, of all iterations together."""
        errors = {}
        lines = ["Table 1: model time relative to UMA (paper in parentheses; SI calibrates m)"]
        for program in self.programs("si"):
            line = f"  {paper.TITLES[program]:<8}"
            for placement in paper.PLACEMENTS:
                value = self.time_of(program, placement)
                known = paper.RELATIVE[program].get(placement)
                if value is None:
                    line += f"{'-':>22}"
                    continue
                note = {"si": "by calibration", "uma": "by definition"}.get(placement, "")
                name = f"table1.{program}.{placement}"
                self.rows.append(Row(name, value, f"time / UMA, {MODEL_NAME}", note, known))
                if known is not None and not note:
                    errors[name] = value - known
                seconds = value * paper.SECONDS[program]["uma"]
                beside = "-" if known is None else f"{known:.2f}"
                line += f"{value:8.2f} {seconds:7.1f}s ({beside:>4})".rjust(22)
            lines.append(line)
            self.rows.append(Row(f"table1.{program}.m", self.m(program), "share of time", "calibrated on SI"))
        head = "".join(f"{paper.PLACEMENT_TITLES[one]:>22}" for one in paper.PLACEMENTS)
        lines.insert(1, " " * 10 + head)
        if errors:
            self.rows.append(
                Row("table1.rms_error", rms(errors), "time / UMA", f"of {len(errors)} predictions")
            )
            lines.append(
                f"  model: {MODEL_NAME}, rms error of the predictions {rms(errors):.3f} "
                f"({paper_error():.3f} from the paper's own Tables 2 and 3)"
            )
        self.texts.append("\n".join(lines))

    def time_of(self, program: str, placement: str) -> float | None:
        """Relative time of a whole run as the paper's; None where it was not simulated."""
        outcome = self.outcomes[program].get(placement)
        if outcome is None:
            return None
        time = self.relative(program, outcome.fraction)
        if placement == "si_mig" and program in self.programs(*_TABLE3.values()):
            time += self.overhead(program) / paper.SECONDS[program]["uma"]
        return time

    def table2(self) -> None:
        """Remote fractions, and how they depend on the cache."""
        lines = ["Table 2: remote fraction of the misses (paper in parentheses)"]
        lines.append(" " * 10 + "".join(f"{paper.PLACEMENT_TITLES[one]:>18}" for one in paper.PLACEMENTS))
        caches: dict[str, None] = {}
        for program in self.programs():
            line = f"  {paper.TITLES[program]:<8}"
            for placement in paper.PLACEMENTS:
                outcome = self.outcomes[program].get(placement)
                if outcome is None:
                    line += f"{'-':>18}"
                    continue
                known = paper.REMOTE[program].get(placement)
                far = known is not None and abs(outcome.fraction - known) > POINTS
                note = "more than 5 points from the paper's: see the notes" if far else ""
                name = f"table2.{program}.{placement}"
                self.rows.append(Row(name, outcome.fraction, "remote fraction", note, known))
                beside = "-" if known is None else f"{known:.2%}"
                line += f"{outcome.fraction:.2%} ({beside}){'*' if far else ''}".rjust(18)
            if "pi_own" in self.outcomes[program]:
                own = self.outcomes[program]["pi_own"].fraction
                self.rows.append(Row(f"table2.{program}.pi_own", own, "remote fraction", _OWN))
                line += f"   each thread its own part: {own:.2%}"
            lines.append(line)
            named = (name.partition("@")[2] for name in self.outcomes[program])
            caches |= dict.fromkeys(other for other in named if ":" in other)
        lines.append("  * more than 5 points from the paper's")
        self.texts.append("\n".join(lines))
        self._whole_processes()
        self._numberings()
        if caches:
            self.texts.append("\n".join(self._sensitivity(list(caches))))

    def _whole_processes(self) -> None:
        """The same of whole processes: initialisation, and the iteration in which pages move, count."""
        lines = ["Table 2, of the whole process: initialisation, and as many iterations as the paper's"]
        lines.append(" " * 10 + "".join(f"{paper.PLACEMENT_TITLES[one]:>18}" for one in paper.PLACEMENTS))
        for program in self.programs():
            line = f"  {paper.TITLES[program]:<8}"
            for placement in paper.PLACEMENTS:
                outcome = self.outcomes[program].get(placement)
                if outcome is None or outcome.whole is None:
                    line += f"{'-':>18}"
                    continue
                known = paper.REMOTE[program].get(placement)
                value = outcome.whole_run(paper.ITERATIONS[program])
                self.rows.append(
                    Row(f"table2.{program}.{placement}.process", outcome.whole.fraction, "remote fraction")
                )
                name, note = f"table2.{program}.{placement}.whole", "of the paper's number of iterations"
                self.rows.append(Row(name, value, "remote fraction", note, known))
                beside = "-" if known is None else f"{known:.2%}"
                line += f"{value:.2%} ({beside})".rjust(18)
            lines.append(line)
        if any(row.name.endswith(".whole") for row in self.rows):
            self.texts.append("\n".join(lines))

    def _numberings(self) -> None:
        """I-CG with its unknowns numbered otherwise."""
        runs = self.outcomes.get("i_cg", {})
        lines = ["Table 2, I-CG with its unknowns numbered otherwise: SI / PI / SI+MIG"]
        for order in OTHER_ORDERS:
            names = [f"{placement}@{order}" for placement in ("si", "pi", "si_mig")]
            if not all(name in runs for name in names):
                continue
            for name in names:
                row = f"table2.i_cg.{name.partition('@')[0]}.order_{order}"
                self.rows.append(Row(row, runs[name].fraction, "remote fraction"))
            lines.append(f"  {order:<8}" + " / ".join(f"{runs[name].fraction:.1%}" for name in names))
        if len(lines) > 1:
            self.texts.append("\n".join(lines))

    def _sensitivity(self, caches: list[str]) -> list[str]:
        lines = ["Table 2 with other private caches (SIZE:WAYS): SI / PI / SI+MIG"]
        lines.append(" " * 10 + "".join(f"{cache:>26}" for cache in caches))
        for program in self.programs():
            line = f"  {paper.TITLES[program]:<8}"
            for cache in caches:
                cells = []
                for placement in ("si", "pi", "si_mig"):
                    outcome = self.outcomes[program].get(f"{placement}@{cache}")
                    cells.append("-" if outcome is None else f"{outcome.fraction:.1%}")
                    if outcome is not None:
                        name = f"table2.{program}.{placement}.cache_{cache.replace(':', '_')}"
                        self.rows.append(Row(name, outcome.fraction, "remote fraction"))
                line += " / ".join(cells).rjust(26)
            lines.append(line)
        return lines

    def table3(self) -> None:
        """Seconds of migration at the paper's size."""
        programs = self.programs(*_TABLE3.values())
        if not programs:
            return
        lines = ["Table 3: seconds of migration at the paper's size (paper in parentheses)"]
        lines.append(" " * 10 + "".join(f"{paper.OVERHEAD_TITLES[one]:>26}" for one in paper.OVERHEADS))
        errors = {}
        for program in programs:
            line = f"  {paper.TITLES[program]:<8}"
            for column in paper.OVERHEADS:
                value, known = self.overhead(program, column), paper.MIGRATION[program][column]
                moved = self.moved_bytes(program, _TABLE3[column])
                note = f"{moved / 1e6:.0f} MB moved; costs from the other programs' rows"
                name = f"table3.{program}.{column}"
                self.rows.append(Row(name, value, "s, cost a page and a byte", note, known))
                errors[name] = value / known - 1
                line += f"{value:.2f} ({known:.2f})".rjust(26)
            lines.append(line)
        cost = self.cost_without("")
        self.rows += [
            Row("table3.rms_relative_error", rms(errors), "of the paper's seconds"),
            Row("table3.cost_page", cost.page * 1e6, "us", "for a page touched again, from all rows"),
            Row("table3.cost_gigabyte", cost.byte * 1e9, "s", "for a GB moved, from all rows"),
        ]
        lines.append(
            f"  model: each program's seconds from the others' costs; from all: {cost.page * 1e6:.0f} us a "
            f"page touched again, {cost.byte * 1e9:.2f} s a GB moved; rms relative error {rms(errors):.2f}"
        )
        self.texts.append("\n".join(lines))

    def figures(self) -> None:
        """Figures 1 and 2: seconds of each iteration on the SF15K."""
        lines = ["Figures 1 and 2: seconds an iteration, and the iterations until SI+MIG is ahead of SI"]
        lines.append(" " * 18 + "".join(f"{paper.PLACEMENT_TITLES[one]:>18}" for one in paper.PLACEMENTS))
        for program in self.programs("si", "uma", *_TABLE3.values()):
            figure = FIGURES[program]
            shown = min(paper.ITERATIONS[program], paper.SHOWN)
            curves = Curves(f"Figure {figure}: {paper.TITLES[program]} on the SF15K, 4 threads")
            line = f"  {figure:<3} {paper.TITLES[program]:<12}"
            settled = {}
            for placement in paper.PLACEMENTS:
                outcome = self.outcomes[program].get(placement)
                if outcome is None:
                    line += f"{'-':>18}"
                    continue
                value = self.uma_seconds(program) * self.relative(program, outcome.fraction)
                settled[placement] = value
                seconds = np.full(shown, value)
                if placement == "si_mig":
                    seconds[0] += self.overhead(program)
                curves.lines[paper.PLACEMENT_TITLES[placement]] = seconds
                known = None
                if placement in paper.SECONDS[program]:
                    known = paper.seconds_an_iteration(program, placement)
                name = f"figure{figure}.{program}.{placement}"
                self.rows.append(Row(name, value, "s an iteration, later ones", _DERIVED, known))
                beside = "-" if known is None else f"{known:.2f}"
                line += f"{value:.2f} ({beside})".rjust(18)
            needed = break_even(settled["si"], settled["si_mig"], self.overhead(program))
            known = float(paper.BREAK_EVEN[program])
            name = f"figure{figure}.{program}.break_even"
            if math.isfinite(needed):
                self.rows.append(Row(name, needed, "iterations", "until SI+MIG is ahead of SI", known))
            lines.append(f"{line}   {needed:.0f} ({known:.0f})")
            uma = self.uma_seconds(program)
            self._copies(program, f"figure{figure}.{program}.copies", "", paper.SF15K_RATIO, uma, lines)
            self.curves[figure] = curves
        if len(lines) > 2:
            self.texts.append("\n".join(lines))

    def wildfire(self) -> None:
        """Figure 3: transparent migration and replication."""
        lines = [
            "Figure 3: WildFire, 8 threads, seconds an iteration (model; the paper prints no numbers)",
            f"  {'':<16}{'UMA':>9}{'SI':>9}{'SI+TMIG: first':>16}{'last':>9}{'iterations':>12}"
            f"   remote: SI, migrated, migrated and replicated",
        ]
        needed = ("wildfire_si", "wildfire_mig", "wildfire_daemon", "wildfire_daemon_replicated", "si")
        for program in self.programs(*needed):
            runs = self.outcomes[program]
            figure = FIGURE3[program]
            m, ratio = self.m(program), paper.WILDFIRE_RATIO
            uma = paper.wildfire_seconds(program)
            before = runs["wildfire_si"].fraction
            daemon, kept = runs["wildfire_daemon"].iterations, runs["wildfire_daemon_replicated"].iterations
            # Of the misses of the CPUs' own caches, those that leave the node although it keeps replicas.
            # Replicas are there of the pages that the daemon has looked at before the iteration.
            share = paper.daemon_share(program)
            remote = []
            for at, (plain, with_copies) in enumerate(zip(daemon, kept, strict=True)):
                looked_at = min(1.0, at * share)
                both = (1 - looked_at) * plain.remote + looked_at * with_copies.remote
                remote.append(both / plain.total)
            shown = len(remote)
            each = self.moved_bytes(program, "wildfire_daemon") / paper.SMALL_PAGE / shown
            curve = np.array([uma * relative_time(m, ratio, one) for one in remote])
            curve += each * DAEMON_PAGE_SECONDS
            after = remote[-1]
            still = np.full(shown, uma * relative_time(m, ratio, before))
            active = int(np.count_nonzero(curve > curve.min() * 1.02))  # before it is within 2 % of the best
            curves = Curves(f"Figure {figure}: {paper.TITLES[program]} on WildFire, 8 threads")
            curves.lines = {"UMA": np.full(shown, uma), "SI": still, "SI+TMIG": curve}
            self.curves[figure] = curves
            name = f"figure{figure}.{program}"
            self.rows += [
                Row(f"{name}.uma", uma, "s an iteration", "Table 1's, by clock rates"),
                Row(f"{name}.si", float(still[0]), "s an iteration"),
                Row(f"{name}.si_tmig.first", float(curve[0]), "s"),
                Row(f"{name}.si_tmig.last", float(curve[-1]), "s"),
                Row(f"{name}.si_tmig.active", active, "iterations", f"{paper.DAEMON_PAGES} pages/s"),
                Row(f"{name}.si.remote", before, "remote fraction"),
                Row(f"{name}.migrated.remote", runs["wildfire_mig"].fraction, "remote fraction"),
                Row(f"{name}.daemon.remote", daemon[-1].fraction, "remote fraction", "last iteration shown"),
                Row(f"{name}.replicated.remote", after, "remote fraction", "the same, and read copies kept"),
            ]
            lines.append(
                f"  {figure:<3} {paper.TITLES[program]:<12}{uma:9.2f}{still[0]:9.2f}{curve[0]:16.2f}"
                f"{curve[-1]:9.2f}{active:12d}   "
                f"{before:.1%}, {runs['wildfire_mig'].fraction:.1%}, {after:.1%}"
            )
            self._copies(program, f"{name}.copies", "wildfire", ratio, uma, lines)
        if len(lines) > 2:
            self.texts.append("\n".join(lines))

    def _copies(
        self, program: str, name: str, machine: str, ratio: float, uma: float, lines: list[str]
    ) -> None:
        """A program whose gathered vector is replicated by itself, the copying included."""
        plain, copied = (f"{machine}_pi", f"{machine}_copies") if machine else ("pi", "copies")
        runs = self.outcomes[program]
        if not {plain, copied} <= runs.keys():
            return
        base, one = runs[plain].iterations[-1].total, runs[copied].iterations[-1]
        waits = (one.total - one.remote + ratio * one.remote) / base
        seconds = uma * (1 + self.m(program) * (waits - 1))
        note = f"{one.remote:,} of {one.total:,} misses, the copying included; {base:,} without copies"
        self.rows += [
            Row(
                f"{name}.seconds",
                seconds,
                "s an iteration",
                "p replicated, the rest by first touch",
            ),
            Row(f"{name}.remote", one.remote / base, "of the misses without copies", note),
        ]
        without = uma * relative_time(self.m(program), ratio, runs[plain].fraction)
        self.rows.append(
            Row(f"{name}.without.seconds", without, "s an iteration", "by first touch, no copies")
        )
        lines.append(
            f"      by first touch: {without:.2f} an iteration, remote {runs[plain].fraction:.1%}; and"
        )
        lines.append(
            f"      with p replicated by the program, too: {seconds:.2f} an iteration, remote "
            f"{one.remote / base:.1%}; {one.total / base - 1:+.0%} misses"
        )

    def every_region(self) -> None:
        """Their proposal (section 6): arming everything at the start of every parallel region."""
        lines = [
            "Arming at every region: time of a later iteration relative to UMA (model), pages touched again "
            "and moved",
            "in it at the paper's size, and the cost of a touched page below which it would be the best",
            f"  {'':<10}{'SI':>8}{'armed once':>12}{'every region':>14}{'remote: once, every':>22}"
            f"{'touched':>12}{'moved':>10}{'pays below':>14}",
        ]
        for program, runs in self.outcomes.items():
            if not {"si", "si_mig", "every_region"} <= runs.keys():
                continue
            found = self._arming(program)
            name = f"every_region.{program}"
            for part, value in (("si", found.stay), ("once", found.once), ("every", found.every)):
                self.rows.append(Row(f"{name}.{part}", value, f"time / UMA, {MODEL_NAME}"))
            remote = runs["si_mig"].fraction, runs["every_region"].fraction
            self.rows += [
                Row(f"{name}.remote", remote[1], "remote fraction"),
                Row(f"{name}.remote_once", remote[0], "remote fraction"),
                Row(f"{name}.touched", found.touched, "pages an iteration"),
                Row(f"{name}.moved", found.moved, "pages an iteration"),
                Row(f"{name}.pays_below", found.pays_below * 1e6, "us a page touched again", _NEVER),
            ]
            limit = f"{found.pays_below * 1e6:.1f} us" if found.pays_below > 0 else "never"
            both = f"{remote[0]:.1%}, {remote[1]:.1%}"
            lines.append(
                f"  {paper.TITLES.get(program, program):<10}"
                f"{found.stay:8.2f}{found.once:12.2f}{found.every:14.2f}{both:>22}"
                f"{found.touched:12,.0f}{found.moved:10,.0f}{limit:>14}"
            )
        if len(lines) > 3:
            self.texts.append("\n".join(lines))

    def _arming(self, program: str) -> Arming:
        runs = self.outcomes[program]
        known = program in paper.PROGRAMS
        # A program of which the paper has nothing streams through its memory as NAS-MG does.
        like = program if known else "nas_mg"
        m = self.m(like) if like in self.programs("si") else _STREAMING_M
        cost = self.cost_without("") if self.programs(*_TABLE3.values()) else _USUAL_COST
        every = runs["every_region"]
        bytes_ = paper.BYTES[program] if known else every.bytes
        seconds = self.uma_seconds(like) * bytes_ / paper.BYTES[like]
        # The NAS programs make one iteration more before the first that counts.
        iterations = len(every.iterations) + program.startswith("nas_")
        scale = bytes_ / every.bytes / iterations / paper.SMALL_PAGE
        touched, moved = every.faults * every.page * scale, every.moved_bytes * scale
        stay, once, home = (
            relative_time(m, paper.SF15K_RATIO, runs[name].fraction)
            for name in ("si", "si_mig", "every_region")
        )
        copying = cost.byte * moved * paper.SMALL_PAGE
        gain = (min(stay, once) - home) * seconds - copying
        return Arming(
            stay,
            once,
            home + (cost.page * touched + copying) / seconds,
            touched,
            moved,
            gain / touched if touched else 0.0,
        )


@dataclass(frozen=True)
class Arming:
    """stay, once, every: time relative to UMA; touched, moved: pages an iteration; pays_below: seconds a
    touched page, 0 or less where it never pays."""

    stay: float
    once: float
    every: float
    touched: float
    moved: float
    pays_below: float


_NEVER = "0 or less: never"
_STREAMING_M = 0.84
_USUAL_COST = MigrationCost(30e-6, 1e-9)
_OWN = "each thread initialises its own part"
#: The run that stands for each column of Table 3.
_TABLE3 = {"t4": "si_mig", "t12": "t12", "t12_large": "t12_large"}
_DERIVED = "the paper's from Tables 1 and 3"
FIGURES = {"nas_cg": "1a", "nas_mg": "1b", "i_cg": "2a", "i_mg": "2b"}
FIGURE3 = {"i_cg": "3a", "i_mg": "3b"}


def _touched(program: str, column: str) -> float:
    """Pages of a program's data at the paper's size: all are armed once, and touched."""
    return paper.BYTES[program] / (paper.LARGE_PAGE if column == "t12_large" else paper.SMALL_PAGE)

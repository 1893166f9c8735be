"""--to mpi: what one rank does in parallel code, and the others would not see."""

from __future__ import annotations

from homing.translate.openmp import Reduction
from homing.translate.plan.atomic_sums import atomic_sums
from homing.translate.plan.effects import Act, What, others
from homing.translate.plan.kept_records import of_equal_ones
from homing.translate.plan.of_threads import OfThreads, ThreadPrivate
from homing.translate.plan.serial_values import SerialValues
from homing.translate.targets.rank_sums import RankSums
from homing.translate.targets.routine import Work
from homing.translate.tree import CLASSES, Construct, Loop, Statement, references, walk
from homing.translate.write.writer import Region


class OneRank:
    """Of one routine: such things are refused, and sums are found that the ranks add up."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.private = ThreadPrivate(work.distributions)
        self.serial = SerialValues(self.private)

    def seen_by_one_rank(
        self, node: Loop | Construct | Statement, region: Region, added_up: frozenset[str] = frozenset()
    ) -> None:
        """What a loop over own iterations (or each thread, outside of loops) does that its process alone
        would see, and that the whole program should."""
        if not self.work.mpi:
            return
        self._serial_values(node, region)
        loop = isinstance(node, Loop)
        what = (
            "a loop whose iterations other ranks run, too" if loop else "what each thread of each rank runs"
        )
        acts = self.work.distributions.effects.acts(self.work.routine, [node])
        for act in others(acts, lambda one: self.work.seen_by_others(one, node, region)):
            if act.what is What.WRITE and act.name in added_up:
                continue
            if act.pointer and not act.through and act.name in self.work.arrays:
                continue  # what it points to is its parts
            by = f", by '{act.through}'," if act.through else ""
            advice = "distribute it, or make it PRIVATE or a REDUCTION"
            if act.through and self._is_reduced(act.name, act.through):
                advice = f"its REDUCTION there adds up one rank: write the loop of '{act.through}' here"
            advice = of_equal_ones([node], act.begin, self.work.routine) or advice
            shared = "shared"
            if act.what is What.WRITE and (variables := self._of_threads(act)):
                elsewhere = next(filter(None, map(self.private.read_elsewhere, variables)), None)
                if elsewhere is None:
                    continue
                shared = "THREADPRIVATE"
                advice = f"ranks would have other values where {elsewhere} reads it: make it PRIVATE"
            written = f"is {shared} and written{by} in {what}: {advice}"
            if act.reference is not None and act.reference.apart is not None:
                written = f"may be written in {what}: {act.reference.apart}"
            reason = {
                What.WRITE: f"'{act.name}' {written}",
                What.IO: f"input or output{by} in {what}: only rank 0 is heard",
                What.END: f"ends one rank{by}, and the others wait for it",
                What.UNKNOWN: f"{_not_seen(act.name)}, and {what.removeprefix('what ')} may not change "
                "what other ranks read",
                What.POINTER: f"'{act.name}' may be any procedure, for it is a pointer or an argument: what "
                f"it writes{by} is not seen, and {what.removeprefix('what ')} may not change what other "
                "ranks read: call the procedure by its name",
            }[act.what]
            self.work.wrong(act.begin, act.end, reason)

    def _serial_values(self, node: Loop | Construct | Statement, region: Region) -> None:
        """What the first thread alone has from serial code, and here the first one of each rank has."""
        copied = region.construct.directive.listed("copyin") if region.construct is not None else set[str]()
        for begin, end, name, place in self.serial.read(self.work.routine, node, copied):
            reason = (
                f"'{name}' is THREADPRIVATE, and may have here what serial code gave it in {place}: of all "
                f"threads the first alone has that, but the first one of each rank would: say COPYIN({name})"
            )
            self.work.wrong(begin, end, reason)

    def atomic_sums(self, loop: Loop, region: Region) -> list[Reduction]:
        """Shared variables that the loop's ATOMIC and CRITICAL constructs add to: the ranks are added up."""
        found = atomic_sums(self.work.routine, self.work.distributions, loop) if self.work.mpi else []
        return [one for one in found if one.name not in region.private and one.name not in self.work.arrays]

    def once_a_rank(self, construct: Construct, region: Region) -> list[Reduction]:
        """Refuses what every rank adds alike to a variable that the ranks combine behind the region. Returns
        the shared variables to which threads add, in ATOMIC and CRITICAL, what own iterations have found."""
        firstprivate = construct.directive.listed("firstprivate")

        def own(name: str) -> bool:
            return name in region.private and name not in firstprivate

        sums = RankSums(self.work.routine, construct.body, self.work.distributions, own)
        for one in region.reductions:
            where = sums.once_a_rank(one)
            if where is not None:
                reason = (
                    f"every rank adds to '{one.name}' here, and the region's REDUCTION adds up the ranks: "
                    "add it up in a loop with a REDUCTION of its own"
                )
                self.work.wrong(*where, reason)
        other = set(region.private) | self.work.arrays.keys()
        for node in walk(construct.body):
            if isinstance(node, Construct) and node.worksharing:
                other |= {one.name for one in references([node])}
        return [
            one
            for one in atomic_sums(self.work.routine, self.work.distributions, construct)
            if one.name not in other and sums.once_a_rank(one) is None
        ]

    def _is_reduced(self, name: str, procedure: str) -> bool:
        """Does an orphaned loop of the procedure's combine it?"""
        callee = self.work.distributions.routines.get(procedure)
        nodes = walk(callee.body) if callee is not None else ()
        loops = (one for one in nodes if isinstance(one, Construct) and one.worksharing)
        return any(name in one.directive.listed("reduction") for one in loops)

    def _of_threads(self, act: Act) -> frozenset[OfThreads] | None:
        """The THREADPRIVATE variables that it writes."""
        return self.private.written(self.work.routine, act.name, act.through)


def _not_seen(name: str) -> str:
    if name == CLASSES:
        return "what code of classes writes is not followed"
    if name.startswith("std::"):
        return f"what '{name}' writes is not followed"
    return f"what '{name}' writes is not seen: its file is not among those given"

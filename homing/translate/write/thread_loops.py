"""AFFINITY(...) = THREAD(...): each iteration on the thread that the user names, whatever data it touches.

The loop over the team is OpenMP's own worksharing loop with one iteration a thread, so that all other clauses
mean what they meant. Every thread goes through the user's loop and leaves out what others do.
"""

from __future__ import annotations

from homing.translate.plan import clauses as table
from homing.translate.plan.model import LoopPlan
from homing.translate.tree import Construct, Loop, OpenMP
from homing.translate.write.c_declarations import CDeclarations
from homing.translate.write.fortran_declarations import FortranDeclarations
from homing.translate.write.writer import Local

_THREAD = "hm_thread"


class FortranThreadLoops(FortranDeclarations):
    """The text in Fortran."""

    def on_thread(self, node: Construct, loop: Loop, plan: LoopPlan) -> None:
        """The loop's iterations go to the threads that the directive names, modulo their number."""
        private = [_THREAD, *_not_private(node.directive, loop)]
        clauses = [
            *table.kept_texts(node.directive, table.Place.THREADS, "pages"),
            f"private({', '.join(private)})",
            "schedule(static, 1)",
        ]
        self._directive(
            node.directive.begin,
            node.directive.end,
            f"!$omp {table.without_simd(node.directive)} " + " ".join(clauses),
        )
        test = f"if (modulo(int({plan.thread}), homing_team()) /= {_THREAD}) cycle"
        indent = self.source.indent(loop.begin)
        inner = self.source.indent(loop.body_begin)
        self.edits.insert_lines(loop.body_begin, [self.indented(inner, test)])
        head = f"do {_THREAD} = 0, homing_team() - 1"
        self._lines(self.source.next_line(node.directive.end), [head], loop.begin)
        self.edits.insert_lines(self.source.next_line(loop.end - 1), [self.indented(indent, "end do")])
        self.locals.setdefault(_THREAD, Local(_THREAD))


class CThreadLoops(CDeclarations):
    """The text in C."""

    def outer_counters(self, node: Construct) -> list[str]:
        """Counters of the worksharing loops that are declared outside of them and not listed as private."""
        listed = node.directive.listed("private", "firstprivate", "reduction")
        return [
            name
            for name in table.counters(node)
            if name not in listed
            and not any(node.begin <= place < node.end for place in self.routine.places.get(name, []))
        ]

    def on_thread(self, node: Construct, loop: Loop, plan: LoopPlan) -> None:
        """The loop's iterations go to the threads that the directive names, modulo their number."""
        declared = any(
            loop.begin <= place < loop.end for place in self.routine.places.get(loop.variable or "", [])
        )
        private = [] if declared else _not_private(node.directive, loop)
        clauses = [
            *table.kept_texts(node.directive, table.Place.THREADS, "pages"),
            *(f"private({name})" for name in private),
            "schedule(static, 1)",
        ]
        name = table.without_simd(node.directive).replace("do", "for")
        self.edits.replace(
            node.directive.begin, node.directive.end, f"#pragma omp {name} " + " ".join(clauses)
        )
        test = f"homing_modulo({plan.thread}, homing_team()) != {_THREAD}"
        # Before the body, whatever it is.
        self.edits.replace(loop.body_begin, loop.body_begin, f"if ({test}) continue; else ")
        head = f"for (int {_THREAD} = 0; {_THREAD} < homing_team(); {_THREAD}++)"
        self._put(self.source.next_line(node.directive.end), [head], loop.begin)


def _not_private(directive: OpenMP, loop: Loop) -> list[str]:
    """The loop's counter, which is no worksharing loop's own any more."""
    listed = directive.listed("private", "firstprivate", "lastprivate", "reduction")
    return [loop.variable] if loop.variable and loop.variable not in listed else []

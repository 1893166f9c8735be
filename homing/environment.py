"""The environment of the program: the preloaded library, homing's variables, and thread binding."""

from __future__ import annotations

import os

from homing.errors import UserError
from homing.late import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Variables by which users bind OpenMP threads; any of them set means that the user has decided.
BINDING_VARIABLES = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY")


def job_rank(environment: Mapping[str, str]) -> int | None:
    """The number of this process among the tasks of its job; None where it is the only one."""
    from homing.launchers import task  # most runs are of no job

    mine = task(environment)
    return None if mine is None else mine.rank


def expand_name(name: str, process: int | None, environment: Mapping[str, str]) -> str:
    """%p and %r in a file name: the process id (None: not known yet, %p stays), the rank (0 where there is
    none); %% is a percent sign."""
    if "%" not in name:
        return name
    known = "%p" if process is None else str(process)
    values = {"%p": known, "%r": str(job_rank(environment) or 0), "%%": "%"}
    return re.sub("%[pr%]", lambda found: values[found[0]], name)


def stated_binding(environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The variables by which the user binds threads, and those by which the user leaves them unbound.

    Runtimes differ in which of them is the strongest; OMP_PLACES binds nothing where OMP_PROC_BIND is false.
    """
    stated = {name: value.strip().lower() for name in BINDING_VARIABLES if (value := environment.get(name))}
    loose = []
    if stated.get("OMP_PROC_BIND") == "false":
        loose.append("OMP_PROC_BIND")
        stated.pop("OMP_PLACES", None)
    if {"none", "disabled"}.intersection(stated.get("KMP_AFFINITY", "").split(",")):
        loose.append("KMP_AFFINITY")
    return [name for name in stated if name not in loose], loose


def is_bound(environment: Mapping[str, str]) -> bool:
    """Has the user decided how threads are bound, or that they are not?"""
    return any(stated_binding(environment))


def bind_threads(environment: dict[str, str]) -> str:
    """Bind threads where the user did not: returns what was set or found, for the user.

    `spread` over `cores`: the threads take turns over the nodes' cores from one end of the machine to the
    other, so that all nodes' memory is used and neighbouring threads, which share data, stay neighbours.
    """
    binding, loose = stated_binding(environment)
    found = " ".join(f"{name}={environment[name]}" for name in BINDING_VARIABLES if environment.get(name))
    if binding:
        return f"bound or not as the runtime reads {found}" if loose else f"already bound by {found}"
    if loose:
        return f"not bound, as {found} is set: unset it for --bind"
    environment["OMP_PROC_BIND"] = "spread"
    environment["OMP_PLACES"] = "cores"
    return "OMP_PROC_BIND=spread OMP_PLACES=cores"


#: Names of libraries, as gcc and clang have them.
SANITIZERS = ("libasan.", "libtsan.", "liblsan.", "libubsan.", "libhwasan.", "libclang_rt.")


def preload(environment: dict[str, str], library: str, folder: str) -> None:
    """Put the library before what the user preloads, but for sanitizers, which must come first. `folder`: for
    a link where the library's path has a space or a colon, which LD_PRELOAD cannot express."""
    if any(mark in library for mark in " :\t\n"):
        if not folder:
            raise UserError(
                f"{library}: needs a temporary folder for a link without spaces and colons (TMPDIR)"
            )
        link = os.path.join(folder, "libhoming.so")
        os.symlink(library, link)
        library = link
    others = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    first = [other for other in others if os.path.basename(other).startswith(SANITIZERS)]
    behind = [other for other in others if other not in first]
    environment["LD_PRELOAD"] = ":".join([*first, library, *behind])
    # A sanitized program that a script or another launcher starts would refuse to run behind our library; the
    # library itself steps aside there.
    options = environment.get("ASAN_OPTIONS", "")
    if "verify_asan_link_order" not in options:
        environment["ASAN_OPTIONS"] = (
            f"{options}:verify_asan_link_order=0" if options else "verify_asan_link_order=0"
        )

"""What a remote access and a move cost on this machine: measured once by `homing-costs`, then kept in a cache
file.

The library reads the file named by HOMING_COSTS (TOML: local_ns, remote_ns, move_call_us, move_page_us, and
cache_kib where it is known; touch_us and fit_us where time is no measure, as in the lab's guest).
Without one it estimates from the machine's distance tables, and says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import subprocess
import sys

from homing.errors import UserError
from homing.files import MOST_DESCRIPTION, read_bytes, system_text
from homing.installation import find_binary
from homing.machine_facts import cpu_nodes
from homing.paths import Cache

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

#: The measurement itself takes less than three seconds; more means that the machine is overloaded.
_PATIENCE_SECONDS = 20.0


#: What a file of costs must state, and what it may.
_NEEDED = ("local_ns", "remote_ns", "move_call_us", "move_page_us")
_ALLOWED = (*_NEEDED, "cache_kib", "touch_us", "fit_us")
_LARGEST = 1e12


def check_costs(flag: str, path: str) -> None:
    """UserError where the library could not use this file and would fall back on the distance tables: the
    rules of src/machine/costs.cpp."""
    data = read_bytes(path, MOST_DESCRIPTION, f"{flag} {path}")
    try:
        stated = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # TOML's own, and text that is no UTF-8
        raise UserError(f"{flag} {path}: is not TOML: {error}") from error
    if missing := [key for key in _NEEDED if key not in stated]:
        raise UserError(f"{flag} {path}: {', '.join(missing)} must be stated")
    for key, value in stated.items():
        if key not in _ALLOWED:
            raise UserError(f"{flag} {path}: unknown key {key}; there are {', '.join(_ALLOWED)}")
        number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
        if not 0 <= number <= _LARGEST:
            raise UserError(f"{flag} {path}: {key} must be a number from 0 to {_LARGEST:g}")
    if not 0 < stated["local_ns"] <= stated["remote_ns"]:
        raise UserError(f"{flag} {path}: local_ns must be above 0, and remote_ns not below it")


def nodes_with_cpus(root: str = "/") -> int:
    """How many NUMA nodes have CPUs; 1 where it cannot be read."""
    return max(1, len(cpu_nodes(root)))


def machine_id(root: str = "/") -> str:
    """Sixteen hexadecimal digits that stand for this machine: cloned images share /etc/machine-id, so the
    CPUs and the nodes count as well."""
    digest = hashlib.sha256(system_text(os.path.join(root, "etc/machine-id")).encode())
    for line in system_text(os.path.join(root, "proc/cpuinfo")).splitlines():
        if line.startswith(("model name", "CPU part", "CPU implementer")):
            digest.update(line.encode())
    nodes = os.path.join(root, "sys/devices/system/node")
    for name in ("online", "has_cpu", "has_memory"):
        digest.update(system_text(os.path.join(nodes, name)).encode())
    return digest.hexdigest()[:16]


def costs_file(root: str = "/", instead: str = "") -> str:
    """The costs of this machine: the cache file, filled now if it is missing; empty where nothing can be
    measured. instead: the folder of a file for this run alone, where the cache cannot be used."""
    if nodes_with_cpus(root) < 2:
        return ""
    cache = Cache(instead=instead)
    name = f"costs-{machine_id(root)}.toml"
    if path := cache.find(name):
        with contextlib.suppress(UserError):  # a damaged one is measured anew
            check_costs("the cache", path)
            note_for_launcher(cache, path, root)
            return path
    program = find_binary("homing-costs")
    if program is None:
        return ""
    print(
        "homing: measuring what remote accesses and moves cost on this machine (once, about 3 s)",
        file=sys.stderr,
    )
    try:
        done = subprocess.run(
            [program], capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=True
        )
        # Ranks of one job may measure at once: the last one's is kept.
        return cache.write(name, done.stdout.encode())
    except (OSError, subprocess.SubprocessError, UserError) as error:
        print(
            f"homing: the costs were not measured ({_why(error)}); the distance tables serve", file=sys.stderr
        )
        return ""


#: How a note begins, and its name (src/launcher/machine.cpp).
_NOTE, _NOTE_NAME = "homing costs of this boot, for the launcher: 1", "launcher-costs"


def note_for_launcher(cache: Cache, path: str, root: str = "/") -> None:
    """Note in the cache which file the native launcher may use until the machine is booted again: it looks
    whether the file is still the same, and computes nothing."""
    boot = system_text(os.path.join(root, "proc/sys/kernel/random/boot_id")).strip()
    nodes = os.path.join(root, "sys/devices/system/node")
    lists = (system_text(os.path.join(nodes, one)).strip() for one in ("online", "has_cpu", "has_memory"))
    there = os.lstat(path)
    seconds, rest = divmod(there.st_mtime_ns, 10**9)
    state = f"{there.st_size} {there.st_ino} {seconds} {rest}"
    text = "\n".join((_NOTE, boot, " ".join(lists), state, path)).encode()
    if boot and cache.read(_NOTE_NAME) != text:
        with contextlib.suppress(OSError, UserError):
            cache.write(_NOTE_NAME, text)


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no result after {_PATIENCE_SECONDS:g} s"
    if isinstance(error, subprocess.CalledProcessError):
        last = (error.stderr or "").strip().splitlines()
        return f"homing-costs ended with status {error.returncode}" + (f": {last[-1]}" if last else "")
    return str(error)

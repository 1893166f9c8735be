"""What a remote access and a move cost on this machine: measured once by `homing-costs`, then kept in a cache
file.

The library reads the file named by HOMING_COSTS (TOML: local_ns, remote_ns, move_call_us, move_page_us).
Without one it estimates from the machine's distance tables, and says so.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping

from homing.installation import find_binary

#: The measurement itself takes less than three seconds; more means that the machine is overloaded.
_PATIENCE_SECONDS = 20.0


def nodes_with_cpus(root: str = "/") -> int:
    """NUMA nodes that have CPUs, from sysfs; 1 where it cannot be read."""
    text = _read(os.path.join(root, "sys/devices/system/node/has_cpu")).strip()
    count = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            count += int(last or first) - int(first) + 1 if (last or first).isdigit() else 1
    return max(1, count)


def machine_id(root: str = "/") -> str:
    """Sixteen hexadecimal digits that stand for this machine: cloned images share /etc/machine-id, so the
    CPUs and the nodes count as well."""
    digest = hashlib.sha256(_read(os.path.join(root, "etc/machine-id")).encode())
    for line in _read(os.path.join(root, "proc/cpuinfo")).splitlines():
        if line.startswith(("model name", "CPU part", "CPU implementer")):
            digest.update(line.encode())
    nodes = os.path.join(root, "sys/devices/system/node")
    for name in ("online", "has_cpu", "has_memory"):
        digest.update(_read(os.path.join(nodes, name)).encode())
    return digest.hexdigest()[:16]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def cache_file(environment: Mapping[str, str], root: str = "/") -> str:
    """Where this machine's costs are kept."""
    base = environment.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".cache")
    return os.path.join(base, "homing", f"costs-{machine_id(root)}.toml")


def costs_file(environment: Mapping[str, str], root: str = "/") -> str:
    """The costs of this machine: the cache file, filled now if it is missing; empty where nothing can be
    measured."""
    if nodes_with_cpus(root) < 2:
        return ""
    path = cache_file(environment, root)
    if os.path.isfile(path):
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
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Ranks of one job may measure at once: each writes a file of its own, the last rename wins.
        partial = f"{path}.{os.getpid()}"
        with open(partial, "w", encoding="utf-8") as file:
            file.write(done.stdout)
        os.replace(partial, path)
    except (OSError, subprocess.SubprocessError) as error:
        print(
            f"homing: the costs were not measured ({_why(error)}); the distance tables serve", file=sys.stderr
        )
        return ""
    return path


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"no result after {_PATIENCE_SECONDS:g} s"
    if isinstance(error, subprocess.CalledProcessError):
        last = (error.stderr or "").strip().splitlines()
        return f"homing-costs ended with status {error.returncode}" + (f": {last[-1]}" if last else "")
    return str(error)

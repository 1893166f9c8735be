"""Where benchmarks find programs and leave results: in the source tree; or, where homing is installed, in the
package's share/ (sources of the programs), homing's cache folder (what is built and kept) and the current
folder (results)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from homing import __version__
from homing.errors import UserError
from homing.installation import PACKAGE, find_binary, find_library, source_tree
from homing.paths import cache_base, make_private


def sources_folder() -> Path:
    """The folder with apps/ and benchmarks/. UserError where they were not installed."""
    tree = source_tree()
    folder = Path(tree) if tree is not None else Path(PACKAGE) / "share"
    if not (folder / "apps").is_dir():
        raise UserError(f"{folder}/apps is missing: this installation of homing is not complete")
    return folder


def include_folder() -> Path:
    """The folder with homing/tasks.hpp."""
    tree = source_tree()
    if tree is not None:
        return Path(tree) / "include"
    for above in Path(find_library()).parents:
        if (above / "include" / "homing" / "tasks.hpp").is_file():
            return above / "include"
    raise UserError("homing/tasks.hpp is missing: this installation of homing is not complete")


def kept_folder() -> Path:
    """Where parts of results and built programs are kept between runs."""
    tree = source_tree()
    return Path(tree) / "build" / "bench" if tree is not None else Path(cache_base()) / "bench"


def results_folder() -> Path:
    """Where results go unless the user says."""
    tree = source_tree()
    return Path(tree) / "benchmarks" / "results" if tree is not None else Path.cwd()


def find_program(name: str) -> str:
    """A built program of apps/, such as cg_gfortran: in HOMING_APPS, the source tree's build, or
    built now."""
    return _find("apps", "HOMING_APPS", name)


def find_bench_program(name: str) -> str:
    """A built program of benchmarks/: in HOMING_BENCH_PROGRAMS, installed, the source tree's build,
    or built now."""
    if source_tree() is None and "HOMING_BENCH_PROGRAMS" not in os.environ:
        installed = find_binary(os.path.join("bench", name))
        if installed is not None:
            return installed
    return _find("benchmarks", "HOMING_BENCH_PROGRAMS", name)


def _find(kind: str, variable: str, name: str) -> str:
    stated, tree = os.environ.get(variable, ""), source_tree()
    if not stated and tree is None:
        return _build(kind, name)
    folder = stated or os.path.join(tree or "", "build", "release", kind)
    path = os.path.join(folder, name)
    if not os.access(path, os.X_OK) or os.path.isdir(path):
        raise UserError(f"{path}: no such program: build it (make build), or set {variable} to its folder")
    return os.path.abspath(path)


def _build(kind: str, name: str) -> str:
    """Build a program of the installed sources, in homing's cache folder; what is there is kept."""
    folder = kept_folder() / f"programs-{__version__}"
    path, log = folder / kind / name, folder / "build.log"
    prefix = include_folder().parent
    for tool in ("cmake", "ninja"):
        if shutil.which(tool) is None:
            raise UserError(f"{name} must be built first, which needs {tool}: pip install cmake ninja")
    make_private(str(folder))
    if not path.exists():
        print(f"homing bench: building {name} into {folder}", file=sys.stderr, flush=True)
    configure = ["cmake", "-G", "Ninja", "-S", str(sources_folder()), "-B", str(folder)]
    configure += [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"]
    steps = [["cmake", "--build", str(folder), "--target", f"{kind}/{name}"]]
    if not (folder / "build.ninja").exists():
        steps.insert(0, configure)
    with log.open("w", encoding="utf-8") as file:
        for words in steps:
            if subprocess.run(words, stdout=file, stderr=subprocess.STDOUT, check=False).returncode != 0:
                raise UserError(f"{name} cannot be built: {_reason(log)} (the whole: {log})", 1)
    return str(path)


def _reason(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "not found" in line.lower()]
    return (telling or lines or ["no reason given"])[0][:300]

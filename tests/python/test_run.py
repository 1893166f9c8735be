"""`homing run`: the program's status, signals and environment are as without the launcher; mistakes are one
line."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from homing import __version__, cli
from homing.environment import BINDING_VARIABLES, bind_threads
from homing.lab.kernel import DEFAULT_SERIES
from homing.lab.options import CountOptions, LabOptions
from homing.options import load_options
from tests.patience import PATIENCE, wait_until
from tests.python.conftest import Command, environment
from tests.python.record_writer import four_node_run


def one_line(text: str) -> str:
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    return text


# Status and output


@pytest.mark.parametrize("status", [0, 1, 7, 125, 126, 127, 255])
def test_the_exit_status_is_the_programs(homing: Command, status: int) -> None:
    done = homing("run", "--summary", "none", "--", "sh", "-c", f"echo out; echo err >&2; exit {status}")
    assert (done.returncode, done.stdout, done.stderr) == (status, "out\n", "err\n")


@pytest.mark.parametrize(
    "number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM, signal.SIGPIPE]
)
def test_a_program_that_dies_by_a_signal_ends_the_launcher_by_it(
    homing: Command, number: signal.Signals
) -> None:
    done = homing("run", "--", "sh", "-c", f"kill -{int(number)} $$")
    assert done.returncode == -number
    assert one_line(done.stderr).startswith("homing: nothing was done: ")


def test_stdin_and_the_words_of_the_command_reach_the_program(
    homing: Command, fake_library: Path, tmp_path: Path
) -> None:
    command = [
        sys.executable,
        "-m",
        "homing",
        "run",
        "--summary",
        "none",
        "sh",
        "-c",
        'cat; echo "$#:$1:$2"',
        "x",
    ]
    done = subprocess.run(
        [*command, "--summary", "a b"],
        input="to stdin\n",
        env=environment(fake_library, tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout == "to stdin\n2:--summary:a b\n"


def test_dashes_after_the_command_belong_to_it(homing: Command) -> None:
    assert homing("run", "--summary", "none", "--", "echo", "--", "-x").stdout == "-- -x\n"


def test_python_does_not_leave_its_ignored_signals_to_the_program(homing: Command) -> None:
    done = homing("run", "--summary", "none", "--", "grep", "-E", "SigIgn|SigBlk", "/proc/self/status")
    values = [int(line.split()[1], 16) for line in done.stdout.splitlines()]
    own = Path("/proc/self/status").read_text()
    inherited = int(own[own.index("SigIgn:") + 7 :].split()[0], 16)
    pipe = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
    # glibc's posix_spawn leaves its two internal signals (32, 33) ignored; the program's own glibc sets them
    # up anew.
    internal = 1 << 31 | 1 << 32
    assert [value & ~internal for value in values] == [0, inherited & ~pipe & ~internal]


# What cannot be started


def test_a_command_that_is_not_there(homing: Command) -> None:
    done = homing("run", "--", "no-such-command")
    assert (done.returncode, one_line(done.stderr)) == (
        127,
        "homing run: no-such-command: command not found\n",
    )
    assert homing("run", "--", "./nor/this").returncode == 127


def test_a_folder_of_path_that_cannot_be_looked_into_says_nothing(homing: Command, tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").write_text("")
    search = f"{tmp_path}/circle:{tmp_path}/file:{os.environ['PATH']}"
    done = homing("run", "--", "no-such-command", PATH=search)
    assert (done.returncode, one_line(done.stderr)) == (
        127,
        "homing run: no-such-command: command not found\n",
    )
    assert homing("run", "--summary", "none", "--", "true", PATH=search).returncode == 0
    assert homing("run", "--", f"{tmp_path}/circle/true").returncode == 126


def test_a_file_that_cannot_be_executed(homing: Command, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("hello")
    done = homing("run", "--", "./data")
    assert done.returncode == 126
    assert "not executable" in one_line(done.stderr)
    assert homing("run", "--", tmp_path).returncode == 126
    (tmp_path / "script").write_text("#!/no/interpreter\n")
    (tmp_path / "script").chmod(0o755)
    done = homing("run", "--", "./script")
    assert done.returncode == 127
    assert "interpreter" in one_line(done.stderr)


def test_a_script_without_a_first_line_goes_to_the_shell(homing: Command, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("echo $1; exit 3\n")
    (tmp_path / "script").chmod(0o755)
    done = homing("run", "--summary", "none", "--", "./script", "word")
    assert (done.returncode, done.stdout) == (3, "word\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], "no command given"),
        (["run", "--refernces", "auto", "--", "true"], "No such option"),
        (["run", "--references", "guesses", "--", "true"], "must be one of auto, pmu, hint-faults, windows"),
        (["run", "--threshold", "-1", "--", "true"], "must be a number"),
        (["run", "--granule", "64KiBs", "--", "true"], "must be a size"),
        (["run", "--areas", "only=x", "--", "true"], "include=GLOB"),
        (["run", "--costs", "/no/costs", "--", "true"], "No such file"),
        (["run", "--json", "/no/folder/x", "--", "true"], "no folder"),
        (["run", "--record", "/", "--", "true"], "is a folder"),
        (["run", "--summary", "--", "true"], "--summary: the name is missing"),
        (["run", "--json", "--", "true"], "--json: the name is missing"),
        (["run", "--only", "--", "true"], "--only: its value is missing"),
        (["run", "--on", "moon", "--", "true"], "there is no machine moon"),
        (["run", "--nodes", "4", "--", "true"], "--nodes: only with --on lab"),
        (["run", "--nodes", "four", "--on", "lab", "--", "true"], "--nodes"),
        (["run", "--on", "lab", "--cache", "1:1", "--", "true"], "--cache: only with --count"),
        (["run", "--on", "lab", "--memory-per-node", "x", "--", "true"], "--memory-per-node x"),
        (["run", "--on", "lab", "--memory-per-node", "2PB", "--", "true"], "a size of 128MiB or more"),
        (["translate", "--to", "spmd", "--line-length", "-3", "x.f90"], "--line-length -3: must be 0"),
        (["translate", "--to", "spmd", "-D", "", "x.c"], "--define '': must be NAME"),
        (["translate", "--to", "spmd", "-D", "=1", "x.c"], "--define '=1': must be NAME"),
        (["translate", "--to", "spmd", "-I", "", "x.c"], "--include: the name is empty"),
        (["run", "--threshold"], "--threshold"),
        (["frobnicate"], "no command 'frobnicate'; there are run"),
        (["rnu"], "no command 'rnu' (did you mean run?); there are run"),
        (["--frobnicate"], "No such option"),
        ([], "which command?"),
        (["lab"], "no command given"),
        (["lab", "--json", "x", "--", "true"], "--count"),
    ],
)
def test_misuse_is_one_line_and_status_2(
    words: list[str],
    said: str,
    fake_library: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOMING_LIBRARY", str(fake_library))
    assert cli.main(words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert said in one_line(err)


def test_an_impossible_variable_is_misuse_too(homing: Command) -> None:
    done = homing("run", "--", "true", HOMING_MECHANISM="magic")
    assert done.returncode == 2
    assert "HOMING_MECHANISM magic: must be one of" in one_line(done.stderr)


def test_a_library_that_is_not_there(homing: Command) -> None:
    done = homing("run", "--", "true", HOMING_LIBRARY="/no/libhoming.so")
    assert done.returncode == 2
    assert "HOMING_LIBRARY=/no/libhoming.so" in one_line(done.stderr)


def test_version_and_help(homing: Command) -> None:
    assert homing("--version").stdout == f"homing {__version__}\n"
    text = homing("run", "--help", "all", COLUMNS="200").stdout
    for flag in (
        "--mechanism",
        "--no-signals",
        "--areas",
        "--only",
        "--summary",
        "--bind",
        "--on",
        "--count",
    ):
        assert flag in text
    assert all(name in homing("--help").stdout for name in ("run", "report", "doctor", "lab", "bench"))


def test_the_help_is_the_manual_of_all_options(homing: Command) -> None:
    """Variables and defaults are there, and no flag looks as if it took a value."""
    text = homing("run", "--help", "all", COLUMNS="400").stdout
    lines = text.splitlines()
    for option in load_options():
        assert option.env in text and option.flag in text
        if option.default and option.flag and option.kind != "flag":
            (at,) = [i for i, line in enumerate(lines) if f"{option.flag} " in line]
            after = lines[at + 1 : at + 2]
            entry = [lines[at], *(line for line in after if not line.lstrip().startswith("-"))]
            assert f"default {option.default}" in " ".join(entry)
    guest = LabOptions()
    for line in (
        f"number of NUMA nodes (default {guest.nodes})",
        f"CPUs of each node (default {guest.cpus_per_node})",
        f"(default {guest.memory_per_node_mib}MiB)",
        f"(default {CountOptions().cache_kib // 1024}MiB:{CountOptions().ways};",
        f"kernel.numa_balancing (default {guest.numa_balancing})",
        f"(default {DEFAULT_SERIES},",
    ):
        assert line in text
    for words in (["run"], ["lab"], ["machine"], []):
        assert "<bool>" not in homing(*words, "--help").stdout


# The environment of the program


def variables(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def test_options_become_variables(homing: Command, tmp_path: Path) -> None:
    (tmp_path / "costs.toml").write_text("local_ns = 1\nremote_ns = 2\nmove_call_us = 3\nmove_page_us = 4\n")
    words = ["--no-signals", "--mechanism", "next-touch", "--areas", "include=u*", "--costs", "costs.toml"]
    found = variables(homing("run", "--summary", "none", *words, "--", "env", HOMING_SEED="7"))
    assert found["HOMING_NO_SIGNALS"] == "1"
    assert found["HOMING_MECHANISM"] == "next-touch"
    assert found["HOMING_AREAS"] == "include=u*"
    assert found["HOMING_COSTS"] == str(tmp_path / "costs.toml")
    assert found["HOMING_SEED"] == "7"
    assert "HOMING_REFERENCES" not in found


def test_costs_are_looked_at_before_the_start(homing: Command, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("local_ns = 1\n")
    missing = "bad.toml: remote_ns, move_call_us, move_page_us must be stated"
    done = homing("run", "--costs", "bad.toml", "--", "touch", "started")
    assert (done.returncode, one_line(done.stderr)) == (2, f"homing run: --costs {missing}\n")
    done = homing("run", "--", "touch", "started", HOMING_COSTS="bad.toml")
    assert (done.returncode, one_line(done.stderr)) == (2, f"homing run: HOMING_COSTS {missing}\n")
    assert not (tmp_path / "started").exists()


def test_the_library_comes_before_what_the_user_preloads(homing: Command, fake_library: Path) -> None:
    other = "/lib/x86_64-linux-gnu/libm.so.6"
    assert variables(homing("run", "--", "env"))["LD_PRELOAD"] == str(fake_library)
    if Path(other).exists():
        assert (
            variables(homing("run", "--", "env", LD_PRELOAD=other))["LD_PRELOAD"] == f"{fake_library}:{other}"
        )


def test_a_library_whose_path_has_a_space(homing: Command, fake_library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "with space:and colon"
    folder.mkdir()
    (folder / "libhoming.so").write_bytes(fake_library.read_bytes())
    script = "cat /proc/self/maps | grep -c 'with space'; echo $LD_PRELOAD"
    done = homing(
        "run", "--summary", "none", "--", "sh", "-c", script, HOMING_LIBRARY=str(folder / "libhoming.so")
    )
    mapped, preload = done.stdout.split("\n")[:2]
    assert int(mapped) > 0
    assert " " not in preload
    assert "cannot be preloaded" not in done.stderr


def test_asan_programs_of_scripts_are_told_not_to_refuse(homing: Command) -> None:
    found = variables(homing("run", "--", "env", ASAN_OPTIONS="detect_leaks=0"))
    assert found["ASAN_OPTIONS"] == "detect_leaks=0:verify_asan_link_order=0"
    assert variables(homing("run", "--", "env"))["ASAN_OPTIONS"] == "verify_asan_link_order=0"
    kept = "verify_asan_link_order=1"
    assert variables(homing("run", "--", "env", ASAN_OPTIONS=kept))["ASAN_OPTIONS"] == kept


def test_bind_sets_what_the_user_did_not(homing: Command) -> None:
    found = variables(homing("run", "--summary", "none", "--bind", "--", "env"))
    assert (found["OMP_PROC_BIND"], found["OMP_PLACES"]) == ("spread", "cores")
    assert "OMP_PLACES" not in variables(homing("run", "--summary", "none", "--", "env"))
    for name in BINDING_VARIABLES:
        chosen = {name: "0"}
        assert "already bound by" in bind_threads(chosen)
        assert chosen == {name: "0"}


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"OMP_PROC_BIND": "FALSE"}, "not bound, as OMP_PROC_BIND=FALSE is set"),
        ({"OMP_PROC_BIND": "false", "OMP_PLACES": "cores"}, "not bound, as OMP_PROC_BIND=false"),
        ({"KMP_AFFINITY": "verbose,none"}, "not bound, as KMP_AFFINITY=verbose,none is set"),
        ({"OMP_PROC_BIND": "true"}, "already bound by OMP_PROC_BIND=true"),
        ({"OMP_PROC_BIND": "false", "KMP_AFFINITY": "compact"}, "bound or not as the runtime reads"),
    ],
)
def test_bind_says_what_the_users_variables_mean(chosen: dict[str, str], said: str) -> None:
    before = dict(chosen)
    assert bind_threads(chosen).startswith(said)
    assert chosen == before


# Records, summary, JSON


@pytest.fixture
def four_nodes(tmp_path: Path) -> dict[str, str]:
    """Variables with which every process `sleep` leaves a record."""
    path = four_node_run().write(tmp_path / "fake.homing")
    return {"FAKE_RECORD": str(path), "FAKE_NAME": "sleep"}


def test_the_summary_and_no_files_are_left(
    homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    done = homing("run", "--", "sleep", "0", **four_nodes)
    assert done.stdout == ""
    assert "/main_mem/" in done.stderr
    assert "settled at iteration 4 of 5" in done.stderr
    assert [one.name for one in (tmp_path / "tmp").iterdir()] in ([], ["cache"])


def test_what_is_missing_for_names_is_said(
    homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    done = homing("run", "--bind", "--json", "out.json", "--", "sleep", "0", **four_nodes)
    remark = "cg: is not here (any more), so its source lines are not known"
    assert f"note: {remark}\n" in done.stderr
    notes = json.loads((tmp_path / "out.json").read_text())["notes"]
    assert remark in notes
    assert notes[0].startswith("threads: ")


def test_several_processes_are_merged(homing: Command, four_nodes: dict[str, str]) -> None:
    done = homing("run", "--json", "out.json", "--", "sh", "-c", "sleep 0; sleep 0; true", **four_nodes)
    assert done.stderr.count("4711") >= 2
    assert "1,480 pages" in done.stderr


def test_summary_into_a_file_and_json(homing: Command, four_nodes: dict[str, str], tmp_path: Path) -> None:
    done = homing(
        "run", "--summary", "s-%r.txt", "--json", "j-%p.json", "--", "sleep", "0", PMI_RANK="3", **four_nodes
    )
    assert done.stderr == ""
    assert "/main_mem/" in (tmp_path / "s-3.txt").read_text()
    (path,) = tmp_path.glob("j-*.json.3")
    results = json.loads(path.read_text())
    assert results["schema"] == "homing-run/2"
    assert results["exit_status"] == 0
    assert results["command"] == ["sleep", "0"]
    assert results["processes"][0]["moved_pages"] == 740


def test_a_kept_record(homing: Command, four_nodes: dict[str, str], tmp_path: Path) -> None:
    record = Path(four_nodes["FAKE_RECORD"]).read_bytes()
    homing("run", "--record", "one.homing", "--summary", "none", "--", "sleep", "0", **four_nodes)
    homing("run", "--record", "one.homing", "--", "sleep", "0", **four_nodes)
    assert (tmp_path / "one.homing").read_bytes() == record
    assert [path.name for path in tmp_path.glob("one*")] == ["one.homing"]
    done = homing("run", "--record", "two", "--", "sh", "-c", "sleep 0; sleep 0; true", **four_nodes)
    assert len(list(tmp_path.glob("two.*"))) == 2
    assert "2 processes left records" in done.stderr
    homing("run", "--record", "p-%p-%%", "--summary", "none", "--", "sleep", "0", **four_nodes)
    assert [path.name.startswith("p-") for path in tmp_path.glob("p-*-*")] == [True]
    assert "/main_mem/" in homing("report", "one.homing").stdout


def test_ranks_do_not_take_each_others_records(
    homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    """Two launchers of one MPI job at the same time, in one folder."""
    for rank in ("0", "1"):
        done = homing("run", "--record", "job", "--", "sleep", "0", PMI_RANK=rank, **four_nodes)
        assert done.stderr.count("2.9 MiB") == 1
    assert sorted(path.name for path in tmp_path.glob("job*")) == ["job.0", "job.1"]


def test_no_openmp_is_one_line(homing: Command) -> None:
    done = homing("run", "--", "true")
    assert one_line(done.stderr).startswith("homing: nothing was done: ")
    done = homing("run", "--", "true", HOMING_ASSUME_NODES="4")
    assert one_line(done.stderr) == (
        "homing: what was done is not known: no program of the run reached homing (each was static, set-uid "
        "or started without LD_PRELOAD, without HOMING_CHANNEL in its environment, of another user with its "
        "inherited descriptors closed, or on another host)\n"
    )
    done = homing("run", "--only", "nosuch", "--", "true", HOMING_ASSUME_NODES="4")
    assert "no process named nosuch (--only) was seen" in one_line(done.stderr)
    assert homing("run", "--", "true", HOMING="off").stderr == "homing: nothing was done: HOMING=off is set\n"
    assert homing("run", "--summary", "none", "--", "true").stderr == ""


def test_a_library_that_stepped_aside_says_why(homing: Command, tmp_path: Path) -> None:
    writer = four_node_run()
    writer.fact("end", "stepped aside")
    writer.rows = [row for row in writer.rows if row[:4] != b"\3\0\0\0"]
    writer.message("only one node can hold pages")
    more = {"FAKE_RECORD": str(writer.write(tmp_path / "aside")), "FAKE_NAME": "sleep"}
    done = homing("run", "--", "sleep", "0", **more)
    assert one_line(done.stderr) == "homing: nothing was done: cg: only one node can hold pages\n"


def test_a_damaged_record_does_not_change_the_status(homing: Command, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("not a record")
    more = {"FAKE_RECORD": str(tmp_path / "bad"), "FAKE_NAME": "sh"}
    done = homing("run", "--", "sh", "-c", "exit 9", **more)
    assert done.returncode == 9
    assert "not a homing record" in done.stderr


def test_a_variable_counts_where_no_flag_is_given(
    homing: Command, four_nodes: dict[str, str], tmp_path: Path
) -> None:
    quiet = ["run", "--summary", "none"]
    homing(*quiet, "--", "sleep", "0", HOMING_RECORD="variable", **four_nodes)
    homing(*quiet, "--record", "flag", "--", "sleep", "0", HOMING_RECORD="ignored", **four_nodes)
    assert [(tmp_path / name).exists() for name in ("variable", "flag", "ignored")] == [True, True, False]
    (tmp_path / "data").write_text("years of work")
    done = homing(*quiet, "--", "sleep", "0", HOMING_RECORD="data", **four_nodes)
    assert done.returncode == 2 and "HOMING_RECORD data:" in one_line(done.stderr)
    for more in (["--only", "bin/program"], []):
        found = variables(homing(*quiet, *more, "--", "env", HOMING_ONLY="bin/program"))
        assert found["HOMING_ONLY"] == str(tmp_path / "bin/program"), "a path means the same everywhere"


# Signals


def start(fake_library: Path, tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "homing", "run", "--summary", "none", "--", *words],
        env=environment(fake_library, tmp_path),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT]
)
def test_signals_sent_to_the_launcher_reach_the_program(
    fake_library: Path, tmp_path: Path, number: signal.Signals
) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 9' {name}; echo ready; for i in $(seq 200); do sleep 0.05; done"
    process = start(fake_library, tmp_path, "sh", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (9, f"got {name}\n")


def test_a_signal_that_the_program_does_not_handle_ends_both(fake_library: Path, tmp_path: Path) -> None:
    process = start(fake_library, tmp_path, "sh", "-c", "echo ready; exec sleep 60")
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    assert process.wait(timeout=PATIENCE) == -signal.SIGTERM


def state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_a_stopped_program_stops_the_launcher_and_both_go_on(fake_library: Path, tmp_path: Path) -> None:
    process = start(fake_library, tmp_path, "sh", "-c", "echo $$; kill -STOP $$; echo on; exit 4")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    wait_until(lambda: state(process.pid) == "T", "the launcher did not stop")
    assert state(child) == "T"
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (4, "on\n")


def test_a_program_that_is_continued_alone_takes_the_launcher_along(
    fake_library: Path, tmp_path: Path
) -> None:
    process = start(fake_library, tmp_path, "sh", "-c", "echo $$; kill -STOP $$; sleep 0.2; echo on; exit 4")
    assert process.stdout is not None
    child = int(process.stdout.readline())
    wait_until(lambda: state(process.pid) == "T", "the launcher did not stop")
    os.kill(child, signal.SIGCONT)
    out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (4, "on\n")


def in_terminal(command: list[str], env: dict[str, str], keys: dict[str, bytes]) -> str:
    """Run a command in a terminal of its own; type `keys[text]` when `text` appears. Returns all output."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, env)
    output = ""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        ready, _, _ = select.select([master], [], [], 0.2)
        try:
            data = os.read(master, 4096) if ready else b""
        except OSError:
            break
        if ready and not data:
            break
        output += data.decode()
        for text in [text for text in keys if text in output]:
            os.write(master, keys.pop(text))
    os.waitpid(pid, 0)
    os.close(master)
    return output.replace("\r", "")


COUNTER = """
import signal, time
count = 0
def handler(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, handler)
print("ready", flush=True)
end = time.monotonic() + 200
while not count and time.monotonic() < end: time.sleep(0.02)
time.sleep(0.3)
print("interrupts:", count, flush=True)
"""


def test_control_c_in_a_terminal_comes_once(fake_library: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "homing",
        "run",
        "--summary",
        "none",
        "--",
        sys.executable,
        "-c",
        COUNTER,
    ]
    output = in_terminal(command, environment(fake_library, tmp_path), {"ready": b"\x03"})
    assert "interrupts: 1" in output


def test_job_control_of_a_shell(fake_library: Path, tmp_path: Path) -> None:
    """Control-Z stops the job, fg continues it, and the status is the program's."""
    run = f"{sys.executable} -m homing run --summary none --"
    program = "sh -c 'echo ready; read word; echo \"read $word\"; exit 5'"
    script = f"{run} {program}; echo first $?; fg; echo then $?"
    output = in_terminal(
        ["bash", "-mc", script], environment(fake_library, tmp_path), {"ready": b"\x1a", "first": b"hello\n"}
    )
    assert "first 148" in output
    assert "read hello" in output
    assert "then 5" in output

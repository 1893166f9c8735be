"""Records that cannot be written as files: what homing did reaches the user through the launcher's memory, or
the summary says exactly what is known. The real library, on assumed nodes."""

from __future__ import annotations

import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from homing.channel import Channel
from homing.records import read_record
from tests.patience import PATIENCE
from tests.places import public_folder
from tests.python.conftest import HOMING, TREE, compile_c, environment

LIBRARY = Path(os.environ.get("HOMING_LIBRARY", TREE / "build" / "release" / "libhoming.so"))

pytestmark = pytest.mark.skipif(not LIBRARY.is_file(), reason=f"{LIBRARY} is not built")
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")

#: Works, after what its first argument says. Status 3.
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
enum { n = 1 << 18 };
static double grid[n];
static void refuse_to_open(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static void remove_folder(void) {
    char command[4200], *name = getenv("HOMING_RECORD"), *slash = name ? strrchr(name, '/') : 0;
    if (!slash) return;
    snprintf(command, sizeof command, "rm -r '%.*s'", (int)(slash - name), name);
    if (system(command)) abort();
}
int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (strstr(what, "nofile")) refuse_to_open();
    if (strstr(what, "close")) for (int i = 3; i < 5000; i++) close(i);
    for (int i = 0; i < n; i++) grid[i] = i;
    for (int iteration = 0; iteration < 30; iteration++) {
        if (iteration == 20 && strstr(what, "remove")) remove_folder();
        #pragma omp parallel for schedule(static)
        for (int i = 0; i < n; i++) grid[i] = grid[i] * 0.5 + 1;
    }
    printf("%.17g\n", grid[n / 2]);
    fflush(stdout);
    if (strstr(what, "kill")) kill(getpid(), SIGKILL);
    if (strstr(what, "again")) execl(words[0], words[0], "", (char *)0);
    return 3;
}
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every user may read, with the program and the library."""
    if not (public := public_folder()):
        pytest.skip("no folder here in which every user may run programs")
    folder = Path(tempfile.mkdtemp(prefix="homing-tests-", dir=public))
    folder.chmod(0o755)
    compile_c(folder / "sweeper", PROGRAM, "-fopenmp")
    shutil.copy(LIBRARY, folder / "libhoming.so")
    yield folder
    shutil.rmtree(folder)


class Runner:
    def __init__(self, place: Path, work: Path) -> None:
        self.place, self.work = place, work
        self.variables = environment(
            place / "libhoming.so",
            work,
            HOMING_ASSUME_NODES="4",
            OMP_NUM_THREADS="4",
            OMP_WAIT_POLICY="passive",
            H=f"{shlex.join(HOMING)} run",
            P=str(place / "sweeper"),
            PLACE=str(place),
        )

    def __call__(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script in which $H is `homing run` and $P the program."""
        return subprocess.run(
            ["sh", "-c", script],
            env=self.variables,
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture
def shell(place: Path, tmp_path: Path) -> Runner:
    return Runner(place, tmp_path)


def whole(done: subprocess.CompletedProcess[str], status: int = 3) -> None:
    """The summary is that of any run."""
    assert done.returncode == status, done.stderr
    assert "grid" in done.stderr and "iteration  " in done.stderr, done.stderr
    assert "did not end in order" not in done.stderr and "not known" not in done.stderr.split("time  ")[1]


# Everything comes back

NOBODY = "setpriv --reuid 65534 --clear-groups"
PRIVATE = (
    "unshare -m sh -c 'mount --bind $PLACE /mnt && mount -t tmpfs none /tmp && mkdir -p $PLACE && "
    "mount --bind /mnt $PLACE && exec $P'"
)
OTHER_ROOT = (
    "unshare -m sh -c 'mkdir r && mount --rbind / r && mount -t tmpfs none r/tmp && mkdir -p r/$PLACE && "
    "mount --bind $PLACE r/$PLACE && exec chroot r $P'"
)
BWRAP = "bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --ro-bind $PLACE $PLACE $P"


@root
@pytest.mark.parametrize(
    "command",
    [f"{NOBODY} $P", "runuser -u nobody -- $P", PRIVATE, OTHER_ROOT, BWRAP, f"{NOBODY} sh -c '$P & wait $!'"],
    ids=["setpriv", "runuser", "private tmp", "chroot", "bwrap", "a child of the shell"],
)
def test_a_program_that_cannot_write_its_record(command: str, shell: Runner) -> None:
    tool = command.split()[0]
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not here")
    if tool in ("unshare", "bwrap"):
        tried = re.sub(r"\$P\b", "true", command)
        if shell(tried).returncode:
            pytest.skip(f"{tool} may not do that here")
        shutil.rmtree(shell.work / "r", ignore_errors=True)
    whole(shell(f"$H -- {command}"))


@pytest.mark.parametrize("what", ["remove", "close,remove", "nofile"])
def test_a_program_that_loses_its_file(what: str, shell: Runner) -> None:
    done = shell(f"$H -- $P {what}")
    if what == "nofile":  # nothing can be read: not the machine, not the names of arrays
        assert done.returncode == 3 and "[data of sweeper]" in done.stderr
    else:
        whole(done)


def test_a_user_namespace(shell: Runner) -> None:
    if shell("unshare -Ur true").returncode:
        pytest.skip("no user namespaces here")
    whole(shell("$H -- unshare -U $P"))


@root
def test_a_full_disk(shell: Runner) -> None:
    script = "mkdir d; mount -t tmpfs -o size=400k none d && TMPDIR=d exec $H -- $P"
    done = shell(f"exec unshare -m sh -c '{script}'")
    if "unshare failed" in done.stderr or "permission denied" in done.stderr:
        pytest.skip("no mount namespaces here")
    whole(done)


def test_a_limit_on_file_sizes(shell: Runner) -> None:
    """A soft limit is the program's alone. Under a hard one there is room for key numbers, where not even the
    launcher may go beyond it."""
    done = shell("ulimit -S -f 200; $H -- $P")
    whole(done)
    assert "no record" not in done.stderr
    done = shell("ulimit -f 200; $H -- $P")
    assert done.returncode == 3
    if "grid" not in done.stderr:
        before, after = done.stderr.splitlines()
        assert before.startswith("homing run: no record can be written: ulimit -f allows")
        assert "known of it: " in after and "File too large" in after
    assert "no process reported" not in done.stderr


@root
def test_no_temporary_folder_at_all(shell: Runner) -> None:
    shell.variables["TMPDIR"] = "/tmp"
    script = (
        "mount --bind $PLACE /mnt; for d in /tmp /var/tmp; do mount -t tmpfs -o ro none $d || exit 77; done; "
        "cd /proc && HOMING_LIBRARY=/mnt/libhoming.so exec $H -- /mnt/sweeper"
    )
    done = shell(f"exec unshare -m sh -c '{script}'")
    if done.returncode in (1, 77):
        pytest.skip("no mount namespaces here")
    whole(done)


@root
def test_records_that_have_names_are_kept(shell: Runner) -> None:
    done = shell(f"$H --record r -- {NOBODY} $P")
    whole(done)
    record = read_record(str(shell.work / "r"))
    assert record.end is not None and record.areas and not record.truncated
    assert sorted(path.name for path in shell.work.glob("r*")) == ["r"]
    done = shell(f"$H --record p.%p -- {NOBODY} sh -c '$P & $P again; wait'")
    assert done.returncode == 0 and "the process with the largest areas" in done.stderr
    names = [path.name for path in shell.work.glob("p.*")]
    assert len(names) == 3 and len([name for name in names if name.endswith("-2")]) == 1
    assert [read_record(str(shell.work / name)).end is None for name in sorted(names)].count(True) == 1


def test_a_program_that_executes_itself_leaves_both_records(shell: Runner) -> None:
    done = shell("$H --record p.%p -- $P again")
    first, second = sorted(path.name for path in shell.work.glob("p.*"))
    assert done.returncode == 3 and second == f"{first}-2"
    shell("$H --record p.%p --summary none -- $P again")
    assert len(list(shell.work.glob("p.*"))) == 4, "an earlier run's are not in the way"


def test_what_lies_at_the_records_name_stays(shell: Runner) -> None:
    done = shell("$H --record p.%p -- sh -c 'echo years of work >p.$$; exec $P'")
    whole(done)
    (data,) = [path for path in shell.work.glob("p.*") if not path.name.endswith("-2")]
    assert data.read_text() == "years of work\n"
    assert read_record(f"{data}-2").end is not None


def test_a_script_that_names_the_record_itself_has_its_way(shell: Runner) -> None:
    done = shell("$H -- env HOMING_RECORD=mine $P")
    assert read_record(str(shell.work / "mine")).end is not None
    assert "is where HOMING_RECORD in its environment says" in done.stderr and "known of it" in done.stderr


# Some of it comes back


@root
def test_a_killed_program_of_another_user(shell: Runner) -> None:
    done = shell(f"$H -- {NOBODY} $P kill")
    assert "grid" in done.stderr and "those up to then" in done.stderr
    assert "end is missing" not in done.stderr


@root
def test_key_numbers_are_known_where_the_program_closed_everything(shell: Runner) -> None:
    done = shell(f"$H --json j -- {NOBODY} $P close")
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("homing: what was done is not known: the record of sweeper (process ")
    assert "could not be written (Permission denied; nor could it go to the launcher's memory: " in line
    iterations = int(line.split("known of it: ")[1].split(" iterations")[0])
    assert 10 <= iterations <= 30


def test_nothing_is_said_that_is_not_known(shell: Runner) -> None:
    done = shell("$H -- sh -c 'env -i $P; true'")
    assert "(homing was in 2 programs of the run; not heard of: one that is static, " in done.stderr
    compile_c(shell.work / "static", "int main(void) { return 4; }", "-static")
    assert "homing was in the one program of the run" in shell("$H -- env ./static").stderr
    done = shell("$H --only sweeper -- sh -c true; $H -- env HOMING=off $P")
    first, second = done.stderr.splitlines()
    assert first == "homing: nothing was done: no process named sweeper (--only) was seen"
    assert "(homing was in 2 programs of the run, in 1 of them switched off; not heard of" in second


@root
def test_a_program_of_another_user_that_hears_nothing_of_the_launcher(shell: Runner) -> None:
    script = 'exec 9>&-; for n in $(seq 3 5000); do eval "exec $n>&-"; done; exec setpriv --reuid 65534 $P'
    done = shell(f"$H -- bash -c '{script}'")
    assert done.returncode == 3
    assert "of another user with its inherited descriptors closed, or on another host)" in done.stderr


#: Starts four tasks; those from the number given on as on another host: what the launcher lent is not there.
MPIRUN = """#!/bin/bash
for rank in 0 1 2 3; do (
    export OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=4
    if [ $rank -ge $1 ]; then
        for n in $(seq 3 5000); do eval "exec $n>&-"; done
        unset HOMING_CHANNEL HOMING_RECORD
        export HOME=/nowhere
    fi
    exec "$2" ) & done
wait
"""


def test_tasks_on_other_hosts_are_not_taken_for_idle(shell: Runner) -> None:
    starter = shell.work / "mpirun"
    starter.write_text(MPIRUN)
    starter.chmod(0o755)
    some = "tasks left no record here, what was done in them is not known: "
    assert some not in shell(f"$H -- {starter} 4 $P").stderr
    partly = shell(f"$H -- {starter} 2 $P").stderr
    assert f"note: 2 of 4 {some}" in partly and partly.count("sweeper (rank ") >= 2
    nothing = shell(f"$H -- {starter} 0 $P").stderr
    assert nothing.startswith("homing: what was done is not known: no process reported a parallel region ")
    assert nothing.endswith("; mpirun ... homing run -- PROGRAM hears of each task\n")


# The program notices nothing


def test_descriptors_and_limits_are_those_without_homing(shell: Runner) -> None:
    code = (
        '#include <fcntl.h>\n#include <stdio.h>\nint main(void) { printf("%d\\n", open("/", 0)); return 0; }'
    )
    compile_c(shell.work / "opens", code)
    look = "./opens; ulimit -Sn; ulimit -Hn; ulimit -f; ls /proc/self/fd"
    for limit in ("ulimit -S -n 64", "ulimit -n 64"):
        bare = shell(f"{limit}; sh -c '{look}'").stdout.split()
        under = shell(f"{limit}; $H --summary none -- sh -c '{look}'").stdout.split()
        ((channel, times),) = (Counter(under) - Counter(bare)).items()
        assert times == 1 and not Counter(bare) - Counter(under)
        assert int(channel) >= 63


@pytest.mark.parametrize(
    "value", ["", ":", "1", "9:9:9:9:9", "3:1:2:3:4x", "-1:1:1:1:1", f"{2**64}:1:1:1:1", "%s:1:{dev}:{ino}:7"]
)
def test_a_variable_that_makes_no_sense_is_left_alone(value: str, shell: Runner) -> None:
    """Also where the descriptor is a file of the user's."""
    data = shell.work / "data"
    data.write_bytes(b"years of work" * 10_000)
    status = data.stat()
    value = value.replace("%s", "9").format(dev=status.st_dev, ino=status.st_ino)
    done = shell(f"LD_PRELOAD=$HOMING_LIBRARY HOMING_CHANNEL='{value}' HOMING_RECORD=r $P 9<>data")
    assert (done.returncode, done.stderr) == (3, "")
    assert data.read_bytes() == b"years of work" * 10_000
    assert read_record(str(shell.work / "r")).end is not None


# The launcher's end


def test_nothing_in_the_memory_is_believed() -> None:
    """Programs of other users may write anything there."""
    dice = random.Random(7)
    for _ in range(30):
        channel = Channel.make("/tmp/x.%p")
        assert channel is not None
        with channel.lent() as value:
            descriptor = int(value.split(":")[0])
            for _ in range(dice.randrange(1, 40)):
                at = dice.choice([72, 80, 128, 4096]) + 4 * dice.randrange(300)
                os.pwrite(descriptor, dice.randbytes(dice.choice([4, 8, 256])), at)
                slot = 4096 + 256 * dice.randrange(240)
                os.pwrite(descriptor, dice.choice([1, 2, 3]).to_bytes(4, "little"), slot)
                os.pwrite(descriptor, dice.choice([0, 2**40, 2**63]).to_bytes(8, "little"), slot + 48)  # used
            with pytest.raises(OSError):
                os.ftruncate(descriptor, 0)
        report = channel.report()
        assert len(report.slots) <= 240
        channel.close()


def test_the_value_is_as_long_in_all_runs() -> None:
    """A program's stack lies below its environment: counts that are to be the same depend on its length."""
    lengths = set()
    for token in (0, 7, 2**64 - 1):
        channel = Channel.make("")
        assert channel is not None
        channel._token = token
        with channel.lent() as value:
            assert [int(part) for part in value.split(":")][1::3] == [os.getpid(), token]
            lengths.add(len(value.partition(":")[2]))
    assert len(lengths) == 1


def test_the_limits_of_the_launcher_are_given_back() -> None:
    before = [resource.getrlimit(what) for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)]
    channel = Channel.make("")
    assert channel is not None and channel.pieces > 0
    with channel.lent(), channel.lent():
        pass
    channel.close()
    assert [resource.getrlimit(what) for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)] == before

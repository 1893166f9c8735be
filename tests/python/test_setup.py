"""Setting up on other people's machines: tools/packages.sh with an apt-get of this test's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

TREE = Path(__file__).resolve().parents[2]

#: What apt-get answers: libomp-19-dev drives libomp-dev out, held packages cannot be changed; an installation
#: leaves what the probes look for.
APT_GET = """#!/bin/sh
echo "$*" >>"$0.log"
for word; do
    case " $* $word" in
    *" -s "*libomp-19-dev) echo "Remv libomp-dev [1:14.0-55.7]" ;;
    *" -s "*held) echo "E: Held packages were changed and -y was used." >&2; exit 100 ;;
    *" -s "*) ;;
    *" install "*tool-one | *" install "*tool-two) : >"$DISK/$word" ;;
    esac
done
"""
TABLE = """# group\tprobe\tpackage\treason
build\tfile:{disk}/tool-one\ttool-one\tone tool
test?\tfile:{disk}/omp.h\tlibomp-19-dev\tclang's runtime
build\tfile:{disk}/tool-two\ttool-two\tanother tool
"""


class Machine:
    """A tree with its own table of packages, and a machine whose apt-get, apt-cache and id are these."""

    def __init__(self, folder: Path, root: bool = True, apt: bool = True) -> None:
        self.tree, self.disk, self.bin = folder / "the tree", folder / "disk", folder / "bin"
        for one in (self.tree / "tools", self.disk, self.bin):
            one.mkdir(parents=True)
        shutil.copy(TREE / "tools" / "packages.sh", self.tree / "tools")
        self.table(TABLE)
        self.command("id", f"#!/bin/sh\necho {0 if root else 1000}\n")
        if apt:
            self.command("apt-get", APT_GET)
            self.command("apt-cache", "#!/bin/sh\necho '  Candidate: 1.0'\n")
            self.command("dpkg-deb", "#!/bin/sh\n")
        needed = "bash sh mkdir cat sed awk sort grep tail head cut dirname flock sleep rm touch cmake"
        for name in needed.split():
            path = shutil.which(name)
            assert path is not None
            (self.bin / name).symlink_to(path)

    def table(self, text: str) -> None:
        (self.tree / "tools" / "packages.tsv").write_text(text.format(disk=self.disk), encoding="utf-8")

    def command(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text, encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def set_up(self, *groups: str) -> subprocess.CompletedProcess[str]:
        """Without HOME, as in some containers and batch systems."""
        chosen = {"PATH": os.fspath(self.bin), "DISK": os.fspath(self.disk), "LANG": "de_DE.UTF-8"}
        chosen["PYTHON"] = sys.executable
        words = [os.fspath(self.tree / "tools" / "packages.sh"), *groups]
        return subprocess.run(
            words, env=chosen, capture_output=True, text=True, check=False, timeout=PATIENCE
        )

    def asked(self) -> list[str]:
        log = self.bin / "apt-get.log"
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def test_users_package_is_never_removed(tmp_path: Path) -> None:
    """libomp-dev and libomp-19-dev exclude one another: clang's part is left out, and it is said."""
    machine = Machine(tmp_path)
    done = machine.set_up("build", "test")
    assert done.returncode == 0, done.stderr
    assert "going on without libomp-19-dev (clang's runtime): apt-get would remove libomp-dev" in done.stderr
    assert sorted(path.name for path in machine.disk.iterdir()) == ["tool-one", "tool-two"]
    installing = [line for line in machine.asked() if " install " in f" {line} " and "-s" not in line.split()]
    assert installing and all("--no-remove" in line and "libomp" not in line for line in installing)


def test_needed_package_that_removes_another_ends_set_up(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.table("build\tfile:{disk}/omp.h\tlibomp-19-dev\tthe runtime\n")
    done = machine.set_up("build")
    assert done.returncode == 2
    assert "libomp-19-dev is needed (the runtime), but apt-get would remove libomp-dev" in done.stderr
    assert all("-s" in line.split() for line in machine.asked())


def test_held_package_is_told(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.table("test?\tfile:{disk}/held\theld\tsome tests\n")
    done = machine.set_up("test")
    assert done.returncode == 0
    assert "going on without held (some tests): apt-get cannot install it: Held packages" in done.stderr


@pytest.mark.parametrize("apt", [True, False])
def test_ordinary_user_is_told_what_is_missing(tmp_path: Path, apt: bool) -> None:
    machine = Machine(tmp_path, root=False, apt=apt)
    done = machine.set_up("build", "test")
    assert done.returncode == 2
    for text in ("tool-one", "one tool", "tool-two"):
        assert text in done.stderr
    command = [line for line in done.stderr.splitlines() if "sudo apt-get install" in line]
    assert len(command) == apt
    assert all("--no-remove" in line and "libomp" not in line for line in command)
    assert all("-s" in line.split() for line in machine.asked()), "it installs nothing"


def test_ordinary_user_goes_on_without_what_may_be_missing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, root=False, apt=False)
    machine.table("test?\tfile:{disk}/omp.h\tlibomp-19-dev\tclang's runtime\n")
    done = machine.set_up("test")
    assert done.returncode == 0
    assert "libomp-19-dev" in done.stderr and "homing goes on without" in done.stderr


def test_old_cmake_is_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.table("")
    (machine.bin / "cmake").unlink()
    machine.command("cmake", "#!/bin/sh\necho 'cmake version 3.22.1'\n")
    done = machine.set_up("build")
    assert done.returncode == 2
    assert "cmake 3.22.1 is older than 3.25" in done.stderr


def test_two_set_ups_at_once_make_one_environment(tmp_path: Path) -> None:
    """`make` twice in one tree: the second waits, and finds the work done."""
    tree = tmp_path / "the tree"
    (tree / "tools").mkdir(parents=True)
    shutil.copy(TREE / "tools" / "venv.sh", tree / "tools")
    (tree / "requirements.txt").write_text("")
    python = tree / "python"
    python.write_text("#!/bin/sh\nmkdir -p .venv/bin\nsleep 0.3\ncp -f /bin/true .venv/bin/python\n")
    python.chmod(0o755)
    words = [os.fspath(tree / "tools" / "venv.sh")]
    chosen = {"PATH": os.environ["PATH"], "PYTHON": os.fspath(python)}
    both = [subprocess.Popen(words, env=chosen, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [one.communicate(timeout=PATIENCE)[1] for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    assert sum("Python packages into" in text for text in said) == 1, said
    assert (tree / ".venv" / "complete").exists()


@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME", "HOMING_CACHE"])
def test_where_nothing_can_be_kept_the_tree_has_a_cache_of_its_own(variable: str, tmp_path: Path) -> None:
    show = "show: ; @echo $${XDG_CACHE_HOME:-}:$${HOMING_CACHE:-}"
    read_only = f"mount --bind {tmp_path} {tmp_path} && mount -o remount,bind,ro {tmp_path}"
    kept = {"PATH": os.environ["PATH"], "HOME": "/nowhere", variable: os.fspath(tmp_path)}

    def cache(before: str) -> subprocess.CompletedProcess[str]:
        script = f'{before} && exec make --eval "$SHOW" show'
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", script],
            env={**kept, "SHOW": show},
            cwd=TREE,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    here = cache("true")
    if here.returncode:
        pytest.skip(f"no namespace of its own here: {here.stderr}")
    elsewhere = "" if variable == "HOME" else str(tmp_path)
    assert here.stdout == (f":{elsewhere}\n" if variable == "HOMING_CACHE" else f"{elsewhere}:\n")
    assert here.stderr == ""
    other = cache(read_only)
    assert other.stdout == f"{TREE}/.setup/cache:\n"
    assert other.stderr == f"homing: {tmp_path} cannot be written to: .setup/cache is used instead\n"

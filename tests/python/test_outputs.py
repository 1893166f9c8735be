"""The outputs of `homing run` and `homing report`: none takes the place of a record that is read, of another
one, or of a file that is no output of homing's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homing import cli
from homing.outputs import KINDS, output, why_kept
from homing.report.results import read_results
from homing.report.summary import print_summary
from tests.python.conftest import Command
from tests.python.record_writer import four_node_run

FLAGS = ("--json", "--html", "--perfetto", "--summary")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a record, source code and two names of one empty file."""
    monkeypatch.chdir(tmp_path)
    four_node_run().write(tmp_path / "k.hr")
    (tmp_path / "link").symlink_to("k.hr")
    os.link("k.hr", "hard")
    (tmp_path / "to-nothing").symlink_to("nothing")
    Path("source.c").write_text("int main(void) { return 0; }\n")
    Path("a").touch()
    os.link("a", "b")
    return tmp_path


def refused(words: list[str], capfd: pytest.CaptureFixture[str]) -> str:
    """The one line that refuses the command; nothing in the folder is changed."""
    before = {path: path.lstat().st_mtime_ns for path in Path().iterdir()}
    content = {path: path.read_bytes() for path in before if path.is_file()}
    assert cli.main(words) == 2, words
    said = capfd.readouterr()
    assert said.err.count("\n") == 1 and not said.out, said
    assert {path: path.lstat().st_mtime_ns for path in Path().iterdir()} == before
    assert {path: path.read_bytes() for path in content} == content
    return said.err


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("name", ["k.hr", "./k.hr", "link", "hard"])
def test_the_record_that_is_read_stays(
    flag: str, name: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert f"{flag} {name}: is the record that is read" in refused(["report", "k.hr", flag, name], capfd)


@pytest.mark.parametrize(
    ("first", "second"),
    [("same", "same"), ("same", "./same"), ("a", "b"), ("nothing", "to-nothing"), ("-", "-")],
)
def test_outputs_have_names_of_their_own(
    first: str, second: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pairs = [("--json", "--html"), ("--html", "--summary"), ("--json", "--perfetto")]
    for one, other in pairs:
        assert f"{one}, {other}" in refused(["report", "k.hr", one, first, other, second], capfd)
    for one, other in pairs[:2]:
        words = ["run", one, first, other, second, "--", "touch", "started"]
        assert f"{one}, {other}" in refused(words, capfd)
    if first != "-":
        assert "--record, --json" in refused(["run", "--json", second, "--record", first, "true"], capfd)


def test_the_summary_on_standard_output_counts(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for begin in (["report", "k.hr"], ["run"]):
        end = ["--", "true"] if begin == ["run"] else []
        for name in ("-", "stdout"):
            words = [*begin, "--json", "-", "--summary", name, *end]
            assert "--json, --summary: only one" in refused(words, capfd)
    assert cli.main(["report", "k.hr", "--json", "stdout"]) == 0, "a file of this name"
    assert Path("stdout").read_bytes().startswith(b"{")


@pytest.mark.parametrize("flag", FLAGS)
def test_what_is_no_output_of_its_kind_stays(
    flag: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begins = [["report", "hard"]] if flag == "--perfetto" else [["report", "hard"], ["run"]]
    four_node_run(pid=1).write(here / "old.hr")
    for begin in begins:
        for name in ("source.c", "old.hr"):
            end = ["--", "touch", "started"] if begin == ["run"] else []
            said = refused([*begin, flag, name, *end], capfd)
            assert f"{flag} {name}: is there, and holds no " in said


def test_an_earlier_output_an_empty_file_and_a_device_are_replaced(here: Path) -> None:
    for _ in range(2):
        for flag in FLAGS:
            for name in (f"out{flag}", f"empty{flag}", "/dev/null"):
                if name.startswith("empty") and not Path(name).exists():
                    Path(name).touch()
                assert cli.main(["report", "k.hr", flag, name]) == 0
    assert cli.main(["report", "k.hr", "--json", "/dev/null", "--html", "/dev/null"]) == 0
    for more in (["--map"], ["--compare", "k.hr"], []):
        for _ in range(2):
            assert cli.main(["report", "k.hr", *more, "--summary", "text"]) == 0


def test_each_kind_knows_its_files_and_no_others(here: Path) -> None:
    """What the lab and the launcher write, too: nothing was done, several processes."""
    four_node_run(rank=0).write(here / "r0")
    four_node_run(rank=1).write(here / "r1")
    assert cli.main(["report", "r0", "r1", "--json", "results", "--html", "page", "--perfetto", "trace"]) == 0
    print_summary(read_results(["r0", "r1"]), "summary")
    Path("counts").write_text('{\n "version": 1,')
    for kind in KINDS:
        for other in KINDS:
            assert (why_kept(other, kind) == "") == (kind == other), (kind, other)
    nothing = read_results([])
    print_summary(nothing, "summary")
    assert Path("summary").read_text().startswith("homing: nothing was done")
    assert not why_kept("summary", "summary")


def test_what_came_during_the_run_stays(homing: Command, tmp_path: Path) -> None:
    script = "for one in j s; do echo mine >$one; done; exit 6"
    done = homing("run", "--json", "j", "--summary", "s", "--", "sh", "-c", script)
    assert done.returncode == 6
    for name in ("j", "s"):
        assert (tmp_path / name).read_text() == "mine\n"
        assert f"{name}: is there, and holds no" in done.stderr


def test_the_launcher_refuses_the_same(homing: Command, tmp_path: Path) -> None:
    (tmp_path / "source.c").write_text("mine\n")
    for flags in (
        ["--json", "source.c"],
        ["--summary", "source.c"],
        ["--json", "x", "--summary", "./x"],
        ["--json", "x", "--record", "x"],
        ["--json", "--bind"],
    ):
        done = homing("run", *flags, "--", "touch", "started")
        assert done.returncode == 2, flags
        assert done.stderr.count("\n") == 1, done.stderr
        assert not (tmp_path / "started").exists() and not (tmp_path / "x").exists()
    assert (tmp_path / "source.c").read_text() == "mine\n"


def test_names_that_are_missing(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for flag in FLAGS:
        assert f"{flag}: the name is empty" in refused(["report", "k.hr", flag, ""], capfd)
        assert "--html is a flag" in refused(["report", "k.hr", flag, "--html", "x"], capfd)
    assert "--html is a flag" in refused(["run", "--json", "--html", "x", "--", "true"], capfd)


def test_an_output_that_cannot_be_written_does_not_hold_up_the_others(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["--json", "/dev/full", "--html", "/dev/full", "--perfetto", "t", "--summary", "s"]
    assert cli.main(["report", "k.hr", *words]) == 2
    assert capfd.readouterr().err.count("No space left on device") == 2
    assert Path("t").stat().st_size and Path("s").stat().st_size


def test_what_fails_on_the_way_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "page"
    with pytest.raises(UnicodeEncodeError), output(str(path), "page") as file:
        file.write("\udcff")
    assert not path.exists()

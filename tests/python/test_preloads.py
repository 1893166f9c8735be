"""Beside other preloaded libraries, in either order: as with the other library alone."""

from __future__ import annotations

import glob
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from homing.environment import preload
from tests.patience import PATIENCE
from tests.programs.build import OUTPUT, build
from tests.python.test_hooks import preloaded
from tests.python.test_programs import LIBRARY, TREE, run

FOREIGN = TREE / "tests" / "programs" / "foreign"

#: Where to look for each, the first that is there.
LIBRARIES = {
    "asan of gcc": ["gcc:libasan.so"],
    "tsan of gcc": ["gcc:libtsan.so"],
    "ubsan of gcc": ["gcc:libubsan.so"],
    "lsan of gcc": ["gcc:liblsan.so"],
    "asan of clang": ["/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-x86_64.so"],
    "tsan of clang": ["/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.tsan-x86_64.so"],
    "ubsan of clang": ["/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.ubsan_standalone-x86_64.so"],
    "jemalloc": ["/usr/lib/*/libjemalloc.so.2"],
    "tcmalloc": ["/usr/lib/*/libtcmalloc_minimal.so.4"],
    "mimalloc": ["/usr/lib/*/libmimalloc.so.2*"],
    "heaptrack": [
        "/usr/lib/heaptrack/libheaptrack_preload.so",
        "/usr/lib/*/heaptrack/libheaptrack_preload.so",
    ],
    "libnuma": ["/usr/lib/*/libnuma.so.1"],
    "eatmydata": ["/usr/lib/*/libeatmydata.so"],
    "fakeroot": ["/usr/lib/*/libfakeroot/libfakeroot-sysv.so"],
    "faketime": ["/usr/lib/*/faketime/libfaketime.so.1"],
    "faketime for threads": ["/usr/lib/*/faketime/libfaketimeMT.so.1"],
    "stdbuf": ["/usr/libexec/coreutils/libstdbuf.so"],
}
SETTINGS = {
    "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0",  # the first one is set by `homing run`, too
    "LSAN_OPTIONS": "detect_leaks=0",
    "TSAN_OPTIONS": "report_bugs=0",
    "_STDBUF_O": "L",
    "FAKETIME": "2020-01-01 00:00:00",
    "DUMP_HEAPTRACK_OUTPUT": "/dev/null",
}


def find(name: str) -> Path:
    for place in LIBRARIES[name]:
        if place.startswith("gcc:"):
            found = subprocess.run(
                ["gcc", f"-print-file-name={place[4:]}"], capture_output=True, text=True
            ).stdout.strip()
            if Path(found).is_absolute():
                return Path(found).resolve()
        elif matches := sorted(glob.glob(place)):
            return Path(matches[-1])
    pytest.skip(f"no {name} here")


@cache
def wrapper(*flags: str) -> Path:
    """tests/programs/foreign/wrapper.c, compiled."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    target = OUTPUT / ("wrapper" + "".join(flags) + ".so")
    command = ["gcc", "-O1", "-D_GNU_SOURCE", "-fno-builtin", "-shared", "-fPIC", *flags]
    subprocess.run([*command, FOREIGN / "wrapper.c", "-o", target], check=True, timeout=PATIENCE)
    return target


COMMANDS: list[list[str | Path]] = [
    ["no_openmp"],
    ["regions"],
    ["bash", "-c", "for i in 1 2 3; do echo $i | cat; done; exit 5"],
]


def same_in_both_orders(
    other: Path, folder: Path, extra: dict[str, str] | None = None, forks: bool = True
) -> None:
    """forks: the other one bears programs that fork."""
    extra = {**SETTINGS, **(extra or {})}
    for words in COMMANDS if forks else COMMANDS[:2]:
        program = words[0] if words[0] == "bash" else build(str(words[0]), "gcc")
        command = [program, *words[1:]]
        alone, told = run(command, {**extra, "LD_PRELOAD": str(other)}, folder)
        if alone.status < 0:
            continue  # the other one does not bear this program
        for order in (f"{other}:{LIBRARY}", f"{LIBRARY}:{other}"):
            outcome, errors = run(command, {**preloaded(folder), **extra, "LD_PRELOAD": order}, folder)
            assert outcome == alone, f"{order} {words}: {errors[-2000:]}\nalone: {told[-500:]}"


@pytest.mark.parametrize("name", LIBRARIES)
def test_beside(name: str, tmp_path: Path) -> None:
    # heaptrack's timer thread may hold heaptrack's lock while a program forks; the child then waits for it as
    # it ends, for ever.
    same_in_both_orders(find(name), tmp_path, forks=name != "heaptrack")


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_leaks_are_found_behind_the_library(compiler: str, tmp_path: Path) -> None:
    """A program built with LeakSanitizer that another one starts: what we know of its blocks is no use of
    them. The launcher does not preload into one that it starts itself."""
    source, program = tmp_path / "leak.c", tmp_path / "leak"
    source.write_text(
        "#include <stdlib.h>\n"
        "static void *volatile block;\n"
        "int main(void) {\n"
        "  for (int i = 0; i < 50; i++) block = malloc(i % 2 ? 1 << 20 : 100);\n"
        "  block = 0;\n"
        "  return 0;\n"
        "}\n"
    )
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    built = subprocess.run([compiler, "-g", "-fsanitize=leak", source, "-o", program], capture_output=True)
    if built.returncode:
        pytest.skip(f"no LeakSanitizer for {compiler} here")
    command: list[str | Path] = ["sh", "-c", "./leak; exit $?"]
    plain, errors = run(command, {}, tmp_path)
    if "LeakSanitizer: detected memory leaks" not in errors:
        pytest.skip(f"LeakSanitizer does not work here: {errors[-500:]}")
    outcome, told = run(command, preloaded(tmp_path), tmp_path)
    assert outcome == plain
    found = re.search(r"SUMMARY: .* leaked in (\d+) allocation", told)
    assert found and int(found[1]) > 45, told  # a register may still hold one or two


def test_the_launcher_puts_sanitizers_first() -> None:
    environment = {"LD_PRELOAD": "/usr/lib/liblsan.so.0 /usr/lib/libjemalloc.so.2:/usr/lib/libasan.so.8"}
    preload(environment, "/opt/libhoming.so", "/nowhere")
    assert environment["LD_PRELOAD"] == (
        "/usr/lib/liblsan.so.0:/usr/lib/libasan.so.8:/opt/libhoming.so:/usr/lib/libjemalloc.so.2"
    )


@pytest.mark.parametrize("flags", [(), ("-DEARLY",)], ids=["lazy", "constructor"])
def test_beside_a_library_that_is_not_ready_yet(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Its functions may be called by us only where the program calls them: they look up what is behind them,
    and until then die of a call."""
    same_in_both_orders(wrapper(*flags), tmp_path)


def test_beside_a_library_that_chooses_its_functions(tmp_path: Path) -> None:
    """IFUNC: a library's functions run while those in front of it are not relocated yet, us among them."""
    chooser, user = tmp_path / "libchooser.so", tmp_path / "libuser.so"
    shared = ["gcc", "-w", "-O1", "-D_GNU_SOURCE", "-fno-builtin", "-shared", "-fPIC"]
    subprocess.run([*shared, FOREIGN / "chooser.c", "-o", chooser], check=True, timeout=PATIENCE)
    # The choice is made where another library is relocated that takes the function's address.
    code = "int chosen(void); int (*pointer)(void) = chosen;"
    subprocess.run([*shared, "-xc", "-", "-o", user], input=code, text=True, check=True, timeout=PATIENCE)
    others = f"{user}:{chooser}"
    alone, _ = run(["/bin/true"], {"LD_PRELOAD": others}, tmp_path)
    assert alone.status == 0 and alone.stdout == "chosen\n"
    for order in (f"{LIBRARY}:{others}", f"{others}:{LIBRARY}", f"{user}:{LIBRARY}:{chooser}"):
        outcome, errors = run(["/bin/true"], {**preloaded(tmp_path), "LD_PRELOAD": order}, tmp_path)
        assert outcome == alone, f"{order}: {errors}"


def test_under_an_auditor(tmp_path: Path) -> None:
    """LD_AUDIT: every call between libraries may pass through it."""
    source = tmp_path / "audit.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <link.h>\n"
        "unsigned la_version(unsigned version) { return version; }\n"
        "unsigned la_objopen(struct link_map *map, Lmid_t id, uintptr_t *cookie) "
        "{ (void)map, (void)id, (void)cookie; return LA_FLG_BINDTO | LA_FLG_BINDFROM; }\n"
    )
    auditor = tmp_path / "audit.so"
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", auditor], check=True)
    program = build("regions", "gcc")
    plain, _ = run([program], {"LD_AUDIT": str(auditor)}, tmp_path)
    outcome, errors = run([program], {**preloaded(tmp_path), "LD_AUDIT": str(auditor)}, tmp_path)
    assert outcome == plain, errors


@pytest.mark.parametrize("tool", [["fakeroot"], ["faketime", "2020-01-01 00:00:00"], ["stdbuf", "-oL"]])
def test_under_a_tool_that_preloads(tool: list[str], tmp_path: Path) -> None:
    if not shutil.which(tool[0]):
        pytest.skip(f"no {tool[0]} here")
    command: list[str | Path] = [*tool, build("regions", "gcc")]
    plain, _ = run(command, {}, tmp_path)
    outcome, errors = run(command, preloaded(tmp_path), tmp_path)
    assert outcome == plain, errors

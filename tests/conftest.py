"""For all tests: signals as an interactive shell has them, and what runs beside what.

Started in the background (CI, nohup), a shell ignores some signals, and what is ignored stays ignored in
every program that a test starts.

`make test` runs in three processes (pytest-xdist). The tests of a file share what they build, so they stay
together; so do all that boot the guest, of which there is one at a time.
"""

from __future__ import annotations

import signal
from typing import Any

import hypothesis
import pytest

from tests.compilers import missing_for
from tests.places import use_a_cache_that_can_be_written, use_a_folder_that_runs_programs

_OFTEN_IGNORED = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGHUP,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGUSR1,
)
for _number in _OFTEN_IGNORED:
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

use_a_folder_that_runs_programs()
use_a_cache_that_can_be_written()

# Tests assert behaviour: on a busy machine an example takes what it takes.
hypothesis.settings.register_profile("homing", deadline=None)
hypothesis.settings.load_profile("homing")

_GUEST = "tests/lab"
#: These begin, so that no process is left with a long one at the end.
_LONG = (
    _GUEST,
    "test_programs",
    "test_unit_binary",
    "test_package",
    "test_simulator",
    "test_translate_program",
    "test_translate_kinds",
    "test_translate_parts",
    "test_translate_c_files",
    "test_translate_c_memory",
    "test_translate_random",
    "test_upmlib_bench",
    "test_small_blocks",
    "test_apps",
)


def _place(item: pytest.Item) -> int:
    """Smaller ones run earlier."""
    file = item.nodeid.partition("::")[0]
    return next((place for place, name in enumerate(_LONG) if name in file), len(_LONG))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests with a compiler of LLVM's among their parameters need one that works."""
    parameters = getattr(item, "callspec", None)
    if parameters is not None and (reason := missing_for(parameters.params.values())):
        pytest.skip(reason)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """By file, and the guest's files as one."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return _GUEST if file.startswith(_GUEST) else file

    return ByFile(config, log)

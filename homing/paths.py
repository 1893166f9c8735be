"""Where homing keeps what it makes once and uses again, and the one rule by which it trusts such a place.

What lies in a cache is compiled, linked or booted later, so it has to be this user's own. A cache folder is
used only where nobody but this user and the system can change what lies under its name:

- every folder on the way to it (links followed) belongs to the system or to this user, and nobody else may
  write to it; in a folder like /tmp, which all may write to but where names are their owners' (mode 1777),
  the next name has to belong to the system or to this user;
- the folder itself belongs to this user, and nobody else may write to it. It is made with mode 0700, and
  one of homing 0.1 that others may read is closed to them;
- a file in it is regular, this user's, and written to by nobody else; no link is followed. Files are written
  aside in the same folder and renamed.

Where a cache cannot be trusted, one line says so, and the work is done without it.

The folder: HOMING_CACHE, else `homing` below XDG_CACHE_HOME or ~/.cache.
"""

from __future__ import annotations

import atexit
import errno
import os
import stat
import sys

from homing.errors import UserError, os_reason
from homing.light import cache, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: More links on the way to a folder are a loop (the kernel's own limit, path_resolution(7)).
_MOST_LINKS = 40


class CacheError(UserError):
    """The cache cannot be trusted, or not be made: one line with the reason."""


def cache_base() -> str:
    """homing's folder in the user's cache folder, which need not exist. CacheError where there is no home
    folder that it could lie in."""
    if stated := os.environ.get("HOMING_CACHE", ""):
        return os.path.abspath(stated)
    # The XDG Base Directory Specification: a relative path is to be ignored. Without HOME the user database
    # has it.
    base, home = (os.environ.get(name, "") for name in ("XDG_CACHE_HOME", "HOME"))
    if os.path.isabs(base):
        return os.path.join(base, "homing")
    if not os.path.isabs(home):
        home = _home()
    if not os.path.isdir(home):
        raise CacheError(f"there is no home folder {home}; set HOMING_CACHE or XDG_CACHE_HOME")
    return os.path.join(home, ".cache", "homing")


def _home() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "~"


def distrust(folder: str) -> str:
    """Why a folder is not this user's alone, as the head of this file says; empty where it is, or where it
    is not there but could be made."""
    try:
        ours = _walk(os.path.abspath(folder))
    except OSError as error:
        return f"{folder}: {os_reason(error)}"
    except CacheError as error:
        return error.message
    if ours is None:
        return ""
    where, there = ours
    if there.st_uid != os.geteuid():
        return f"{where} belongs to user {there.st_uid}"
    return f"{where} can be written to by others" if _others_write(there) else ""


def _walk(path: str) -> tuple[str, os.stat_result] | None:
    """The folder behind `path` without links; None where it is not there. CacheError where somebody else
    could put another one into its place."""
    links = 0
    there, at = os.lstat("/"), "/"
    todo = [part for part in path.split("/") if part][::-1]
    while todo:
        part = todo.pop()
        if part in (".", ".."):
            at = os.path.dirname(at) if part == ".." else at
            there = os.lstat(at)
            continue
        shared = _check_parent(at, there)
        here = os.path.join(at, part)
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            return None
        if shared and not _ours_or_system(found.st_uid):
            raise CacheError(f"{here} belongs to user {found.st_uid}, in a folder that all may write to")
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise CacheError(f"{here}: too many links")
            target = os.readlink(here)
            if target.startswith("/"):
                at, there = "/", os.lstat("/")
            todo += [word for word in target.split("/") if word][::-1]
            continue
        if not stat.S_ISDIR(found.st_mode):
            raise CacheError(f"{here} is no folder")
        at, there = here, found
    return at, there


def _check_parent(path: str, there: os.stat_result) -> bool:
    """CacheError where somebody else may rename what lies in this folder. True: all may write to it, and
    its names are their owners'."""
    if not _ours_or_system(there.st_uid):
        raise CacheError(f"{path} belongs to user {there.st_uid}")
    if not _others_write(there):
        return False
    if there.st_mode & stat.S_ISVTX:
        return True
    raise CacheError(f"{path} can be written to by others")


def _ours_or_system(user: int) -> bool:
    """This user, root, or whoever owns the root folder: in a user namespace that is root under another
    number."""
    return user in (os.geteuid(), 0, os.lstat("/").st_uid)


def _others_write(there: os.stat_result) -> bool:
    """May anybody but the owner write? A group of one user (umask 002 makes everything its own) counts as
    the user."""
    if there.st_mode & stat.S_IWOTH:
        return True
    return bool(there.st_mode & stat.S_IWGRP) and not _private_group(there.st_gid, there.st_uid)


@cache
def _private_group(group: int, user: int) -> bool:
    """A group named after the user, whose only member is the user."""
    import grp
    import pwd

    if group == 0:
        return True
    try:
        owner, members = pwd.getpwuid(user).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return members.gr_name == owner and set(members.gr_mem) <= {owner}


def _file_problem(there: os.stat_result) -> str:
    """Why a file of a cache is not used; empty: it is this user's alone."""
    if not stat.S_ISREG(there.st_mode):
        return "is not a regular file"
    if there.st_uid != os.geteuid():
        return f"belongs to user {there.st_uid}"
    return "can be written to by others" if _others_write(there) else ""


def make_private(folder: str) -> None:
    """See to it that the folder is there, with mode 0700. CacheError where that cannot be, or where it
    cannot be trusted."""
    if problem := distrust(folder):
        raise CacheError(problem)
    try:
        if os.path.isdir(folder):
            if stat.S_IMODE(os.stat(folder).st_mode) & 0o077 and os.access(folder, os.W_OK):
                os.chmod(folder, 0o700)
            return
        parent = os.path.dirname(folder)
        if not os.path.isdir(parent):
            make_private(parent)
        # Somebody who is faster is looked at again below.
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    except OSError as error:
        raise CacheError(f"{folder}: {os_reason(error)}") from error
    if problem := distrust(folder):
        raise CacheError(problem)


class Cache:
    """One folder of homing's cache. Nothing here fails because of the cache: what cannot be kept there is
    made in the folder `instead`, or else in a temporary folder of this process."""

    def __init__(self, *parts: str, instead: str = "", quiet: bool = False) -> None:
        #: The folder; empty where it cannot be trusted.
        self.folder = ""
        self._instead = instead
        self._said = quiet
        try:
            base = cache_base()
            folder = os.path.join(base, *parts)
            for one in dict.fromkeys((base, folder)):
                make_private(one)
            self.folder = folder
        except CacheError as error:
            self._say(error.message)

    def _say(self, reason: str) -> None:
        if not self._said:
            self._said = True
            print(f"homing: the cache is not used: {' '.join(reason.split())}", file=sys.stderr)

    def read(self, name: str) -> bytes | None:
        """A file's bytes; None where there is none that can be trusted."""
        if not self.folder:
            return None
        path = os.path.join(self.folder, name)
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(file, "rb") as opened:
                problem = _file_problem(os.fstat(opened.fileno()))
                if not problem:
                    return opened.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            link = error.errno == errno.ELOOP
            problem = "is a link" if link else f"cannot be read: {os_reason(error)}"
        self._say(f"{path} {problem}")
        return None

    def find(self, name: str) -> str:
        """The path of a file or folder that can be trusted; empty where there is none. Nobody else can put
        another one there later: the cache's folder is this user's."""
        if not self.folder:
            return ""
        path = os.path.join(self.folder, name)
        try:
            there = os.lstat(path)
        except OSError:
            return ""
        problem = distrust(path) if stat.S_ISDIR(there.st_mode) else _file_problem(there)
        if not problem:
            return path
        self._say(problem if problem.startswith("/") else f"{path} {problem}")
        return ""

    def write(self, name: str, data: bytes) -> str:
        """Keep a file; its path."""

        def fill(path: str) -> None:
            with open(path, "wb") as file:
                file.write(data)

        return self.make(name, fill)

    def make(self, name: str, fill: Callable[[str], None]) -> str:
        """Have `fill` write the file (or what is in the folder) at the path that it is given, and keep it
        as `name`, which ends in / for a folder. The path where it is in the end. UserError where no
        temporary folder can be made; what `fill` raises."""
        plain = name.rstrip("/")
        if self.folder:
            try:
                return self._kept(plain, name != plain, fill)
            except OSError as error:
                self._say(f"{os.path.join(self.folder, plain)}: {os_reason(error)}")
        path = os.path.join(self._instead or _temporary_folder(), plain)
        try:
            if name != plain:
                os.makedirs(path, 0o700, exist_ok=True)
            fill(path)
        except OSError as error:
            raise UserError(f"{path}: {os_reason(error)}") from error
        return path

    def _kept(self, name: str, is_folder: bool, fill: Callable[[str], None]) -> str:
        path = os.path.join(self.folder, name)
        import tempfile

        ending = os.path.splitext(name)[1]  # compilers go by it
        if is_folder:
            aside = tempfile.mkdtemp(prefix=".", dir=self.folder)
        else:
            file, aside = tempfile.mkstemp(prefix=".", suffix=ending, dir=self.folder)
            os.close(file)
        try:
            fill(aside)
            if not is_folder:
                os.chmod(aside, 0o600)  # compilers write a new file in its place
            try:
                os.replace(aside, path)
            except OSError:
                # A folder does not take the place of one that another process was faster to make.
                if not (is_folder and os.path.isdir(path) and not distrust(path)):
                    raise
            return path
        finally:
            if is_folder:
                import shutil

                shutil.rmtree(aside, ignore_errors=True)
            else:
                with suppress(OSError):
                    os.unlink(aside)


@cache
def _temporary_folder() -> str:
    """A folder of this process, removed at its end."""
    import shutil
    import tempfile

    try:
        folder = tempfile.mkdtemp(prefix="homing-cache-")
    except OSError as error:
        raise UserError(f"no temporary folder can be made (TMPDIR): {os_reason(error)}") from error
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def main() -> int:
    """`python -m homing.paths FOLDER`, for tools/packages.sh: makes the folder, or says why it cannot be
    trusted (status 2)."""
    try:
        make_private(os.path.abspath(sys.argv[1]))
    except CacheError as error:
        said = f"the cache cannot be used: {error.message}; HOMING_CACHE names another folder"
        print(f"homing: {said}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main())

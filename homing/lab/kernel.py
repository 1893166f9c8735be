"""The guest's kernel: which image, its version, and its modules in load order."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from homing.files import open_regular
from homing.paths import CacheError, cache_base, distrust

from .errors import LabError

# What the guest needs beyond a kernel with a serial console: the paravirtual bus, the shared folders, the
# writable layer on top of them.
REQUIRED_MODULES = ("virtio_pci", "virtiofs", "overlay")
DEFAULT_SERIES = "6.1"
PACKAGES = {"6.1": "linux-image-cloud-amd64", "6.12": "linux-image-6.12-cloud-amd64"}

_HEADER_MAGIC_AT = 0x202
_VERSION_POINTER_AT = 0x20E
_SETUP_BASE = 0x200


@dataclass(frozen=True)
class Kernel:
    image: Path
    version: str  # as in /lib/modules/VERSION
    modules: Path  # /lib/modules/VERSION


def version_key(version: str) -> tuple[int, ...]:
    """Sorts 6.1.0-9 before 6.1.0-56 and 6.1 before 6.12."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def read_image_version(image: Path) -> str:
    """The version string inside an x86 bzImage (Documentation/arch/x86/boot.rst, field kernel_version)."""
    try:
        with open_regular(image) as file:
            head = file.read(0x8200)
    except PermissionError:
        raise LabError(f"{image}: not readable; allow it with: sudo chmod a+r {image}") from None
    except OSError as error:
        raise LabError(f"{image}: {error.strerror}") from None
    if head[_HEADER_MAGIC_AT : _HEADER_MAGIC_AT + 4] != b"HdrS":
        raise LabError(f"{image}: not an x86 Linux kernel image (bzImage)")
    start = int.from_bytes(head[_VERSION_POINTER_AT : _VERSION_POINTER_AT + 2], "little") + _SETUP_BASE
    text = head[start : start + 256].split(b"\0")[0].decode("ascii", "replace")
    if not text.split():
        raise LabError(f"{image}: the kernel image names no version")
    return text.split()[0]


def _series(version: str) -> str:
    return ".".join(version.split(".")[:2]).split("-")[0]


def unpacked() -> Path | None:
    """Where set-up (tools/packages.sh) unpacks kernels that are not installed: boot/ and lib/modules/. None
    where there is no such folder. CacheError where it cannot be told, or the folder cannot be trusted."""
    folder = os.path.join(cache_base(), "kernels")
    if problem := distrust(folder):
        raise CacheError(problem)
    return Path(folder) if os.path.isdir(folder) else None


def installed(*boots: Path) -> list[Path]:
    """Kernel images in these folders: Debian's cloud kernels (small, made for virtio) first, then by age."""
    images = [path for boot in boots for path in boot.glob("vmlinuz-*") if path.is_file()]
    return sorted(
        images,
        key=lambda path: ("cloud" in path.name, version_key(path.name.removeprefix("vmlinuz-"))),
        reverse=True,
    )


def find_kernel(
    wanted: str | None, boot: Path = Path("/boot"), modules_root: Path = Path("/lib/modules")
) -> Kernel:
    """The kernel to boot.

    wanted: a path to a vmlinuz, or a series such as "6.1" or "6.12" (the newest installed one of it), or
    None: the newest of series 6.1, or else the newest there is.
    """
    if wanted is not None and ("/" in wanted or Path(wanted).is_file()):
        image = Path(wanted)
        version = read_image_version(image)
        return _with_modules(image, version, modules_root)
    if wanted is not None and not re.fullmatch(r"\d+\.\d+", wanted):
        raise LabError(f"kernel '{wanted}': give a series such as 6.1 or 6.12, or the path of a vmlinuz")
    folder, unseen = None, ""
    try:
        folder = unpacked()
    except CacheError as error:
        unseen = f"the kernels that homing unpacked are not used: {error.message}"
    images = installed(boot, *([folder / "boot"] if folder else []))
    series = wanted or DEFAULT_SERIES
    chosen = [image for image in images if _series(image.name.removeprefix("vmlinuz-")) == series]
    if not chosen and wanted is None:
        chosen = images
    if not chosen:
        missing = f"no Linux {series} kernel image in {boot}"
        if unseen:
            raise LabError(f"{missing}, and {unseen}")
        if series == DEFAULT_SERIES:
            raise LabError(f"{missing}: fetch one with: homing lab --setup")
        package = PACKAGES.get(series, f"linux-image-{series}-cloud-amd64")
        raise LabError(f"{missing}: apt-get install {package}")
    if unseen:
        print(f"homing: {unseen}", file=sys.stderr)
    return _with_modules(chosen[0], read_image_version(chosen[0]), modules_root)


def _with_modules(image: Path, version: str, modules_root: Path) -> Kernel:
    # A kernel that was unpacked somewhere has its modules beside it.
    beside = image.parent.parent / "lib" / "modules" / version
    modules = beside if (beside / "modules.dep").is_file() else modules_root / version
    if not (modules / "modules.dep").is_file():
        raise LabError(f"{modules}: no modules of kernel {image}; install its linux-image package")
    return Kernel(image, version, modules)


def _module_name(path: str) -> str:
    """kernel/fs/fuse/virtio_fs.ko.xz -> virtio_fs; file names use - and _ alike."""
    return Path(path).name.split(".ko")[0].replace("-", "_")


def load_order(kernel: Kernel, wanted: tuple[str, ...] = REQUIRED_MODULES) -> list[Path]:
    """Module files in an order in which each can be inserted; what is built into the kernel is left out."""
    dependencies: dict[str, list[str]] = {}
    files: dict[str, Path] = {}
    for line in (kernel.modules / "modules.dep").read_text().splitlines():
        path, _, needed = line.partition(":")
        name = _module_name(path)
        files[name] = kernel.modules / path
        dependencies[name] = [_module_name(other) for other in needed.split()]
    builtin_file = kernel.modules / "modules.builtin"
    builtin = (
        {_module_name(line) for line in builtin_file.read_text().split()} if builtin_file.is_file() else set()
    )

    order: list[Path] = []
    done: set[str] = set()

    def visit(name: str) -> None:
        if name in done or name in builtin:
            return
        done.add(name)
        if name not in files:
            raise LabError(
                f"{kernel.modules}: kernel {kernel.version} has no module '{name}', which the lab needs"
            )
        # modules.dep lists all dependencies, the deepest last.
        for dependency in reversed(dependencies[name]):
            visit(dependency)
        order.append(files[name])

    for name in wanted:
        visit(name)
    return order


def read_module(path: Path) -> bytes:
    """A module's uncompressed ELF bytes, from .ko, .ko.xz, .ko.gz or .ko.zst."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    if path.suffix == ".zst":
        zstd = shutil.which("zstd")
        if zstd is None:
            raise LabError(f"{path}: needs zstd to unpack it: apt-get install zstd")
        return subprocess.run([zstd, "-dc", os.fspath(path)], check=True, stdout=subprocess.PIPE).stdout
    return data

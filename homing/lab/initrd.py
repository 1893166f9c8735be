"""The guest's first file system, a cpio archive: busybox, the init script and the kernel's modules."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from homing.paths import Cache

from .errors import LabError
from .kernel import Kernel, load_order, read_module

INIT_SCRIPT = Path(__file__).with_name("guest_init.sh")
_BUSYBOX = (Path("/usr/lib/initramfs-tools/bin/busybox"), Path("/bin/busybox"), Path("/usr/bin/busybox"))
_FORMAT = "1"  # part of the cache key: raise it when the archive's layout changes


@dataclass(frozen=True)
class Entry:
    """One file of a cpio archive. mode includes the file type; device is (major, minor) of a device node."""

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def cpio(entries: Iterable[Entry]) -> bytes:
    """A cpio archive in the "newc" format that the kernel unpacks (its Documentation: buffer-format.rst)."""
    archive = bytearray()

    def append(number: int, entry: Entry) -> None:
        name = entry.name.encode() + b"\0"
        fields = (
            number,
            entry.mode,
            0,  # user
            0,  # group
            1,  # links
            0,  # time: the same input gives the same archive
            len(entry.data),
            0,
            0,  # device that holds the file
            *entry.device,
            len(name),
            0,  # no checksum in this format
        )
        archive.extend(b"070701" + b"".join(b"%08X" % field for field in fields) + name)
        archive.extend(bytes(-len(archive) % 4))
        archive.extend(entry.data)
        archive.extend(bytes(-len(archive) % 4))

    number = 0
    for number, entry in enumerate(entries, start=1):
        append(number, entry)
    append(0, Entry("TRAILER!!!", 0))
    archive.extend(bytes(-len(archive) % 512))
    return bytes(archive)


def is_static(executable: bytes) -> bool:
    """True for a 64-bit ELF file without an interpreter (PT_INTERP): it runs where there are no libraries."""
    if executable[:5] != b"\x7fELF\x02":
        return False
    table = int.from_bytes(executable[32:40], "little")
    size = int.from_bytes(executable[54:56], "little")
    count = int.from_bytes(executable[56:58], "little")
    kinds = [
        int.from_bytes(executable[table + i * size : table + i * size + 4], "little") for i in range(count)
    ]
    return 3 not in kinds


def find_busybox(candidates: Iterable[Path] = _BUSYBOX) -> Path:
    found_dynamic = False
    for path in candidates:
        if path.is_file():
            if is_static(path.read_bytes()):
                return path
            found_dynamic = True
    why = "the installed busybox is not static" if found_dynamic else "no busybox here"
    raise LabError(f"{why}, the guest's first program: apt-get install busybox-static")


def contents(kernel: Kernel, busybox: Path, init_script: Path = INIT_SCRIPT) -> list[Entry]:
    folders = ("bin", "dev", "proc", "sys", "modules", "lower", "upper", "root", "control")
    entries = [Entry(name, stat.S_IFDIR | 0o755) for name in folders]
    entries.append(Entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)))
    entries.append(Entry("dev/null", stat.S_IFCHR | 0o666, device=(1, 3)))
    entries.append(Entry("bin/busybox", stat.S_IFREG | 0o755, busybox.read_bytes()))
    entries.append(Entry("init", stat.S_IFREG | 0o755, init_script.read_bytes()))
    for number, module in enumerate(load_order(kernel)):
        name = f"modules/{number:02}-{module.name.split('.ko')[0]}.ko"
        entries.append(Entry(name, stat.S_IFREG | 0o644, read_module(module)))
    return entries


def build(kernel: Kernel) -> Path:
    """The archive for this kernel, from the cache if what goes into it is unchanged."""
    busybox = find_busybox()
    key = hashlib.sha256()
    for part in (_FORMAT, kernel.version, str((kernel.modules / "modules.dep").stat().st_mtime_ns)):
        key.update(part.encode() + b"\0")
    key.update(INIT_SCRIPT.read_bytes())
    key.update(f"{busybox} {busybox.stat().st_size} {busybox.stat().st_mtime_ns}".encode())
    cache = Cache()
    name = f"lab-initrd-{kernel.version}-{key.hexdigest()[:16]}.cpio"
    return Path(cache.find(name) or cache.write(name, cpio(contents(kernel, busybox))))

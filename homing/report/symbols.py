"""Names of functions and variables of C++ as their author wrote them, short enough for a table."""

from __future__ import annotations

from homing.late import re
from homing.light import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

#: Template arguments of a name that take more room than this are shortened.
WIDTH = 24
_LONGEST = 1 << 14


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL | None:
    import ctypes

    for name in ("libstdc++.so.6", "libc++abi.so.1"):
        try:
            library = ctypes.CDLL(name)
            library.__cxa_demangle.restype = ctypes.c_void_p
            text, other = ctypes.c_char_p, ctypes.c_void_p
            library.__cxa_demangle.argtypes = [text, text, other, other]
            return library
        except (OSError, AttributeError):
            continue
    return None


@lru_cache(maxsize=4096)
def demangled(symbol: str) -> str:
    """What the C++ runtime's demangler makes of a symbol; the symbol itself where there is none, or it is
    none of C++."""
    library = _library() if symbol.startswith("_Z") and len(symbol) < _LONGEST else None
    if library is None:
        return symbol
    import ctypes

    text = library.__cxa_demangle(symbol.encode("utf-8", "surrogateescape"), None, None, None)
    if not text:
        return symbol
    try:
        return ctypes.string_at(text).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


def _depths(text: str) -> list[int]:
    """How many brackets are open at each letter; those of operators count, and end where all do."""
    depth, depths = 0, []
    for letter in text:
        depth -= letter in ")>]}" and depth > 0
        depths.append(depth)
        depth += letter in "(<[{"
    return depths


def without_parameters(name: str) -> str:
    """A function's demangled name without its parameters, its result and what follows: ns::Grid<int>::at."""
    lambda_of, called, _ = name.rpartition("::operator()(")
    if called and re.search(r"(\{lambda.*\}|\$_\d+|'lambda.*')$", lambda_of):
        return lambda_of
    if "operator" in name or name == "main program":
        return name
    name = name.split(" [clone")[0].removesuffix(" const")
    depths = _depths(name)
    if name.endswith(")"):
        begin = max((at for at, depth in enumerate(depths) if depth == 0 and name[at] == "("), default=0)
        if begin > 0:
            name, depths = name[:begin], depths[:begin]
    space = max((at for at, depth in enumerate(depths) if depth == 0 and name[at] == " "), default=-1)
    return name[space + 1 :]


def shortened(name: str, width: int = WIDTH) -> str:
    """A name whose template arguments are cut where they take more than `width` characters: Grid<double,
    ...>."""
    out, at = "", 0
    depths = _depths(name)
    while at < len(name):
        if name[at] == "<" and depths[at] == 0 and not out.endswith("operator"):
            ends = (k for k in range(at + 1, len(name)) if depths[k] == 0 and name[k] == ">")
            end = next(ends, len(name) - 1)
            inside = name[at + 1 : end]
            if len(inside) > width:
                cut = inside[: width - 3]
                inside = (cut.rpartition(",")[0] + ", " if "," in cut else cut) + "..."
            out += f"<{inside}>"
            at = end + 1
        else:
            out += name[at]
            at += 1
    return out


def readable_symbol(symbol: str) -> str:
    """A symbol as its programmer wrote it, where the compiler's scheme is known: Fortran module procedures
    and arrays, OpenMP's outlined functions."""
    symbol = re.sub(r"(\.(isra|part|constprop|cold|lto_priv)(\.\d+)?)+$", "", symbol)
    symbol = re.sub(r"(\._omp_fn\.\d+|\.omp_outlined(_debug__)?(\.\d+)?|\.\.omp_par(\.\d+)?)+$", "", symbol)
    symbol = demangled(symbol)
    if symbol in ("MAIN__", "_QQmain"):
        return "main program"
    gfortran = re.fullmatch(r"__(\w+?)_MOD_(\w+)", symbol)
    if gfortran:
        return f"{gfortran[1]}::{gfortran[2]}"
    flang = re.fullmatch(r"_QM([a-z0-9_]+?)[EPF]+([a-z0-9_]+)", symbol)
    if flang:
        return f"{flang[1]}::{flang[2]}"
    return symbol

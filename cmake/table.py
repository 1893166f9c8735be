"""Write a C++ table from one of homing's TOML files: table.py options|flags|launchers|starters SOURCE TARGET.

Standard library only: it runs before anything is installed.
"""

import os
import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def option_line(option: dict) -> str:  # type: ignore[type-arg]
    choices = ",".join(option.get("choices", []))
    texts = ", ".join(quoted(text) for text in (option["env"], option["default"], choices))
    most = float(option.get("most", "inf"))
    number = f"{most!r}" if most < float("inf") else "__builtin_inf()"
    return f"HOMING_OPTION({option['name']}, {texts}, {option['kind']}, {number})"


def flag_line(option: dict) -> str:  # type: ignore[type-arg]
    choices = ",".join(option.get("choices", []))
    most = float(option.get("most", "inf"))
    number = f"{most!r}" if most < float("inf") else "__builtin_inf()"
    texts = (quoted(option["env"]), quoted(option.get("flag", "")), option["kind"], quoted(choices), number)
    return f"HOMING_FLAG({', '.join(texts)})"


def starter_line(name: str) -> str:
    return f"HOMING_STARTER({quoted(name)})"


def launcher_line(launcher: dict) -> str:  # type: ignore[type-arg]
    lists = (
        "{" + ", ".join(quoted(name) for name in launcher.get(key, [])) + "}"
        for key in ("rank", "size", "batch", "step")
    )
    return "{" + ", ".join(lists) + "},"


def main() -> None:
    what, source, target = sys.argv[1:4]
    key, line = {
        "options": ("option", option_line),
        "flags": ("option", flag_line),
        "launchers": ("launcher", launcher_line),
        "starters": ("starters", starter_line),
    }[what]
    with open(source, "rb") as file:
        rows = tomllib.load(file)[key]
    lines = [
        f"// Written by cmake/table.py from homing/{os.path.basename(source)}: do not edit.",
        "// clang-format off",
        *map(line, rows),
    ]
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()

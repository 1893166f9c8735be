"""Write the C++ table of options from homing/options.toml.

Standard library only: it runs before anything is installed.
"""

import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main() -> None:
    source, target = sys.argv[1:3]
    with open(source, "rb") as file:
        options = tomllib.load(file)["option"]
    lines = [
        "// Written by cmake/options_table.py from homing/options.toml: do not edit.",
        "// clang-format off",
    ]
    for option in options:
        choices = ",".join(option.get("choices", []))
        texts = ", ".join(quoted(text) for text in (option["env"], option["default"], choices))
        most = float(option.get("most", "inf"))
        number = f"{most!r}" if most < float("inf") else "__builtin_inf()"
        lines.append(f"HOMING_OPTION({option['name']}, {texts}, {option['kind']}, {number})")
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()

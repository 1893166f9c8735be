"""Write the C++ table of launchers from homing/launchers.toml.

Standard library only: it runs before anything is installed.
"""

import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]


def main() -> None:
    source, target = sys.argv[1:3]
    with open(source, "rb") as file:
        launchers = tomllib.load(file)["launcher"]
    lines = [
        "// Written by cmake/launchers_table.py from homing/launchers.toml: do not edit.",
        "// clang-format off",
    ]
    for launcher in launchers:
        lists = (
            "{" + ", ".join(f'"{name}"' for name in launcher.get(key, [])) + "}"
            for key in ("rank", "size", "batch", "step")
        )
        lines.append("{" + ", ".join(lists) + "},")
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()

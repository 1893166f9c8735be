"""usage: python tools/site_pages.py FOLDER

What the documentation's site has beside docs/: the command line, generated from the same tables as the help,
and CONTRIBUTING, SECURITY and CHANGELOG; written into a copy of docs/ in FOLDER. Links that lead out of the
copy (to sources, to results) become plain text there.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TREE))

from homing import help, manual  # noqa: E402
from homing.cli import COMMANDS  # noqa: E402

#: Pages of the tree's root that the site has, too.
ROOT = ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "CITATION.cff", "LICENSE")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def commands_page() -> str:
    """Every command's help."""
    lines = ["# The command line", "", "Written from the table that the command itself is made of.", ""]
    for name, command in manual.commands(*COMMANDS).items():
        screens = list(help.SCREENS) if name == "run" else ["common"]
        lines += [f"## homing {name}", "", "```text", help.screen(command, screens).rstrip(), "```", ""]
    return "\n".join(lines)


def rewritten(text: str, page: Path, root: Path) -> str:
    """The page's text, whose links stay within the site. `page`: where it lies below `root`."""

    def link(match: re.Match[str]) -> str:
        target = match[3]
        if re.match(r"[a-z]+:", target):
            return match[0]
        there = (page.parent / target).resolve()
        if there.is_relative_to(root.resolve()) and there.exists():
            return match[0]
        inside = root / Path(target).name
        if inside.exists() and inside.suffix == ".md":
            up = "../" * len(page.relative_to(root).parent.parts)
            return f"{match[1]}[{match[2]}]({up}{inside.name}{match[4] or ''})"
        return match[2]

    return _LINK.sub(link, text)


def write(folder: Path) -> None:
    """The site's pages, in a folder that is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(TREE / "docs", folder)
    (folder / "reference").mkdir(exist_ok=True)
    (folder / "reference/commands.md").write_text(commands_page())
    for name in ROOT:
        if name.endswith(".md"):
            shutil.copy(TREE / name, folder / name)
    for page in folder.rglob("*.md"):
        page.write_text(rewritten(page.read_text(), page, folder))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(Path(sys.argv[1]))

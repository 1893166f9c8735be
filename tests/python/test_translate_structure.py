"""homing/translate keeps to the design: short functions, modules that import one another in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
TRANSLATE = TREE / "homing" / "translate"
LONGEST_FUNCTION = 80


def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(TRANSLATE.rglob("*.py")):
        words = path.relative_to(TREE).with_suffix("").parts
        found[".".join(words).removesuffix(".__init__")] = ast.parse(path.read_text())
    return found


def imported(tree: ast.Module, known: dict[str, ast.Module]) -> Iterator[str]:
    """The modules that it imports when it is loaded: not those in functions, nor those for types alone."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports name the whole path"
            names = [f"{node.module}.{name.name}" for name in node.names]
            yield from (name if name in known else str(node.module) for name in names)
        else:
            waiting.extend(ast.iter_child_nodes(node))


def test_no_function_is_longer_than_a_page() -> None:
    found = {
        f"{name}.{node.name}": node.end_lineno - node.lineno + 1
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None
    }
    assert {name: lines for name, lines in found.items() if lines > LONGEST_FUNCTION} == {}


def test_no_modules_import_one_another() -> None:
    known = modules()
    graph = {name: {one for one in imported(tree, known) if one in known} for name, tree in known.items()}
    while leaves := {name for name, others in graph.items() if not others & graph.keys()}:
        graph = {name: others for name, others in graph.items() if name not in leaves}
    assert graph == {}, "these import one another"


#: What the modules of a folder may import, beside their own folder's. Those of no folder are texts, trees and
#: positions (for all), and the command and what it begins with (for none of these).
FOLDERS = {
    "directives": (),
    "front": ("directives",),
    "plan": ("directives", "front"),
    "write": ("directives", "front", "plan"),
    "targets": ("directives", "front", "plan", "write"),
}
ABOVE = ("translation", "command", "compile")


def test_folders_import_downwards_only() -> None:
    known = modules()
    wrong = []
    for name, tree in known.items():
        folder = name.split(".")[2] if name.count(".") > 1 else ""
        for other in imported(tree, known) if folder in FOLDERS else ():
            its = other.split(".")[2] if other.startswith("homing.translate.") else ""
            allowed = its == folder or its in FOLDERS[folder] or its not in (*FOLDERS, *ABOVE)
            wrong += [] if allowed else [f"{name} imports {other}"]
    assert wrong == []

"""The import graph of the package as its sources say it: lazy and type-only imports count as any other."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

FLOORS = ("rules", "engine", "interop")
Node = TypeVar("Node", bound=Hashable)


class Import(NamedTuple):
    """One name that a module imports: from which module, under which name, on which line."""

    source: str
    target: str
    name: str
    line: int


@dataclass
class Structure:
    """Modules of the three floors by their dotted names, and the imports between them."""

    files: dict[str, Path]
    imports: list[Import] = field(default_factory=list)

    def package(self, module: str) -> str:
        """The folder of a module, as a package: that of `irgrad.engine.ir.model` is `irgrad.engine.ir`."""
        return module if self.files[module].name == "__init__.py" else module.rpartition(".")[0]


def read(repository: Path) -> Structure:
    """The modules below `repository` and what each imports, wherever in it the import stands."""
    files: dict[str, Path] = {}
    for floor in FLOORS:
        for file in sorted((repository / floor).rglob("*.py")):
            parts = ("irgrad", *file.relative_to(repository).with_suffix("").parts)
            files[".".join(parts).removesuffix(".__init__")] = file
    structure = Structure(files)
    for module, file in files.items():
        for node in ast.walk(ast.parse(file.read_text())):
            for wanted, name in _wanted(node, structure.package(module)):
                target = _module(wanted, files)
                if target and target != module:
                    structure.imports.append(Import(module, target, name, getattr(node, "lineno", 0)))
    return structure


def _wanted(node: ast.AST, package: str) -> list[tuple[str, str]]:
    """The dotted names that an import statement asks for, and the last part of each."""
    if isinstance(node, ast.Import):
        return [(alias.name, "") for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        parents = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*parents, *([node.module] if node.module else [])])
    return [(f"{base}.{alias.name}", alias.name) for alias in node.names]


def _module(name: str, files: dict[str, Path]) -> str | None:
    while name and name not in files:
        name = name.rpartition(".")[0]
    return name or None


def circles(nodes: Iterable[Node], after: Callable[[Node], Iterable[Node]]) -> list[list[Node]]:
    """The sets of two and more nodes that reach each other (Tarjan's strongly connected components)."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    waiting: set[Node] = set()
    found: list[list[Node]] = []
    for start in nodes:
        if start in index:
            continue
        work = [(start, iter(sorted(after(start), key=repr)))]
        index[start] = low[start] = len(index)
        stack.append(start)
        waiting.add(start)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    waiting.add(other)
                    work.append((other, iter(sorted(after(other), key=repr))))
                    break
                if other in waiting:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                    waiting.difference_update(component)
                    found.append(component)
    return [component for component in found if len(component) > 1]

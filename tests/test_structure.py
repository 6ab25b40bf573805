"""The house keeps its shape: imports go down, what is below works without what is above, objects change their own
attributes, and opcodes are listed in one table. Counts that are no limits are printed (`pytest -s`)."""

from __future__ import annotations

import ast
import operator
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from floors import ORDER, package
from foreign_writes import writes
from structure import Structure, circles, read

from irgrad.engine.ir.opcodes import OPCODES

REPOSITORY = Path(__file__).resolve().parents[1]

DATA = frozenset(
    "Value Argument Instruction Block Function Module GlobalVariable GlobalAlias CallInfo StructType Builder".split()
)
"""The model of LLVM's IR is data that passes edit, and a builder stands where a pass puts it: their attributes may be
written from anywhere."""


@cache
def _structure() -> Structure:
    return read(REPOSITORY)


def _upward() -> dict[tuple[str, str], set[str]]:
    structure, found = _structure(), defaultdict(set)
    for item in structure.imports:
        source, target = package(structure, item.source), package(structure, item.target)
        if ORDER.index(target) > ORDER.index(source):
            found[source, target].add(f"{item.source}:{item.line} imports {item.target}")
    return found


def test_every_package_has_its_place_in_the_order() -> None:
    structure = _structure()
    packages = {package(structure, module) for module in structure.files}
    assert packages <= set(ORDER), "a new package: say in tests/floors.py above which others it stands"


def test_imports_go_down() -> None:
    found = {pair: sorted(lines) for pair, lines in _upward().items()}
    assert not found, found


def test_shapes_of_loops_stand_behind_one_interface() -> None:
    """What derives asks the schedule of a function's loops, and knows none of the files behind it."""
    structure, behind = _structure(), set()
    for item in structure.imports:
        if package(structure, item.source).startswith("engine.differentiate") and ".schedule." in item.target:
            behind.add(item.target.removeprefix("irgrad.engine.schedule."))
    assert behind == {"loop_schedule"}


def test_imports_make_no_circle() -> None:
    structure, after = _structure(), defaultdict(set)
    for item in structure.imports:
        after[item.source].add(item.target)
        source, target = package(structure, item.source), package(structure, item.target)
        if source != target:
            after[source].add(target)
    assert not circles(ORDER, lambda name: after[name])
    assert not circles(structure.files, lambda name: after[name])


def _floors(*words: str) -> str:
    run = subprocess.run(
        [sys.executable, str(REPOSITORY / "tests/floors.py"), *words], capture_output=True, text=True, check=False,
        cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-4000:]
    return run.stdout


@pytest.mark.long
def test_each_package_can_be_imported_without_those_above() -> None:
    assert not [line for line in _floors("import").splitlines() if line.startswith("failed: ")]


@pytest.mark.long
def test_the_lower_packages_are_tested_without_what_is_above() -> None:
    said = _floors("test")
    print(said)
    ran = [line for line in said.splitlines() if " test files, " in line]
    assert len(ran) >= 14 and not any(": 0 test files" in line for line in ran)


@pytest.mark.long
def test_objects_change_their_own_attributes() -> None:
    found = defaultdict(set)
    for write in writes(_structure().files):
        if write.owner not in DATA:
            module = write.module.removeprefix("irgrad.")
            found[f"{write.owner}.{write.attribute}"].add(f"{module}:{write.line}")
    said = "written from outside of the class: give it a method, or its constructor an argument"
    assert not found, f"{said}: { {name: sorted(places) for name, places in found.items()} }"


def test_the_search_for_writes_finds_them(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text(
        "class A:\n    def __init__(self) -> None:\n        self.x = 0\n        self.b = B()\n"
        "    @property\n    def p(self) -> int: ...\n    @p.setter\n    def p(self, v: int) -> None: ...\n"
        "class B:\n    pass\ndef own(a: A) -> None:\n    a.x = 1\ndef made() -> A: ...\n"
    )
    second.write_text(
        "from first import A, made\n"
        "def f(a: A, other: object) -> None:\n    a.x = 1\n    a.b.y += 1\n    a.p = 1\n    other.x = 1\n"
        "class C:\n    def __init__(self, a: A) -> None:\n        self.a = a\n        self.x = 1\n"
        "    def g(self) -> None:\n        self.a.x, z = 1, 2\n        made().x = 3\n        a = made()\n"
        "        del a.x\n"
        "class D(A):\n    def h(self, a: A) -> None:\n        a.x = 1\n"
    )
    found = {(w.owner, w.attribute, w.line) for w in writes({"first": first, "second": second})}
    assert found == {("A", "x", 3), ("B", "y", 4), ("A", "x", 12), ("A", "x", 13), ("A", "x", 15)}


def _listed(node: ast.AST) -> list[str]:
    """The names that a literal lists, as members, as words of a string, or as keys of a table of plain values."""
    if isinstance(node, ast.Set | ast.Tuple | ast.List):
        return [e.value for e in node.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        words = node.value.split()
        return words if all(word.replace("_", "").isalnum() for word in words) else []
    if isinstance(node, ast.Dict) and node.values and all(
        isinstance(value, ast.Constant) and not isinstance(value.value, str) for value in node.values
    ):  # fmt: skip
        return [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return []


def _sets_of_opcodes(tree: ast.AST) -> Iterator[tuple[int, list[str]]]:
    for node in ast.walk(tree):
        names = _listed(node)
        pythons = all(hasattr(operator, name) for name in names) and not set(names) <= set(OPCODES)
        if len(set(names) & set(OPCODES)) >= 3 and not pythons:  # `add`, `sub`, `truediv`, ...: operators of Python
            yield getattr(node, "lineno", 0), names


@pytest.mark.long
def test_opcodes_are_listed_in_one_table() -> None:
    found = []
    for module, file in _structure().files.items():
        # the operations of rules' expressions are no opcodes, although some have the same names
        if not module.startswith(("irgrad.engine.ir.", "irgrad.rules.expressions.")):
            tree = ast.parse(file.read_text())
            strings = _documentation(tree)
            found += [f"{module}:{line} {names}" for line, names in _sets_of_opcodes(tree) if line not in strings]
    assert not found, f"ask engine/ir/opcodes.py for a trait: {found}"


def _documentation(tree: ast.AST) -> set[int]:
    return {n.lineno for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)}


def test_the_search_for_opcodes_finds_them() -> None:
    source = """
A = {"phi", "select", "freeze"}
B = "add sub mul".split()
C = ("br", "ret")
D = {"fdiv": 4, "frem": 20, "sdiv": 6}
E = ("add", "sub", "mul", "truediv")
F = {"add": f, "sub": g, "mul": h}
"""
    assert [line for line, _ in sorted(_sets_of_opcodes(ast.parse(source)))] == [2, 3, 5]


@pytest.mark.long
def test_counts_are_printed() -> None:
    """They tell where to look; none of them is a limit."""
    counts: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    structure = _structure()
    for module, file in structure.files.items():
        text = file.read_text()
        folders[package(structure, module)] += 1
        lines[module.split(".")[1]] += text.count("\n")
        if module.startswith("irgrad.engine.ir."):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Compare):
                named = [n for n in ast.walk(node) if isinstance(n, ast.Constant) and n.value in OPCODES]
                counts["comparisons of opcodes outside ir"] += bool(named)
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
                by_number = node.value.attr == "operands" and isinstance(node.slice, ast.Constant)
                counts["operands[k] outside ir"] += by_number
    counts["imports that go up"] = sum(map(len, _upward().values()))
    counts["writes of the model's attributes"] = sum(w.owner in DATA for w in writes(structure.files))
    print("", *(f"{count:6} {name}" for name, count in counts.items()), sep="\n")
    print(*(f"{count:6} lines of {name}" for name, count in lines.items()), sep="\n")
    print(*(f"{count:6} files in {name}" for name, count in folders.most_common(12)), sep="\n")
    assert counts and lines


def test_nothing_else_lies_at_the_top() -> None:
    """A file that a command wrote by mistake is no part of the project."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=False, cwd=REPOSITORY)
    top = {line.split("/")[0] for line in listed.stdout.splitlines()}
    hidden = {name for name in top if name.startswith(".")}
    assert top - hidden <= {"CHANGELOG.md", "LICENSE", "README.md", "benchmarks", "docs", "engine", "examples",
                            "interop", "mkdocs.yml", "pyproject.toml", "rules", "tests"}  # fmt: skip

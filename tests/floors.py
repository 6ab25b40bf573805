"""The order of the packages, bottom first, and a process in which everything above one of them cannot be imported.

    python tests/floors.py import            import every module of every package with what is above blocked
    python tests/floors.py test              run the tests of the lower packages, by `GROUPS`, the same way
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from structure import Structure, read

ORDER: Sequence[str] = """
    rules.errors rules.expressions rules.definitions rules.table rules.blas rules.lapack rules
    engine.support engine.ir engine.ir.text engine.parallel engine.runtime
    engine.analyses engine.analyses.control engine.analyses.memory engine.analyses.evolution engine.analyses.types
    engine.analyses.activity
    engine.normalise.reinterpret engine.normalise.exceptions engine.normalise.x86 engine.normalise
    engine.differentiate.layout engine.differentiate.shared engine.differentiate.primitives engine.differentiate.shadow
    engine.legality engine.schedule engine.widen
    engine.differentiate.custom_rules engine.differentiate.tape engine.differentiate.forward
    engine.differentiate.reverse engine.differentiate
    engine.codegen engine.pipeline engine.threads engine.signature engine.kernel engine.functions engine.batches
    engine.constructs engine.grids engine.report engine.rulecheck engine.enzyme engine
    interop.loaders interop.programs interop.jax interop.torch interop.tensorflow interop interop.facade
""".split()
"""A package imports from those in front of it, and from no other."""
GROUPS = {
    "rules": ["rules.errors", "rules.expressions", "rules.definitions", "rules.table", "rules"],
    "engine.support": ["engine.support"],
    "engine.ir.text": ["engine.ir", "engine.ir.text"],
    "engine.runtime": ["engine.runtime"],
    "engine.analyses.activity": ["engine.analyses.control", "engine.analyses.memory", "engine.analyses.evolution",
                                 "engine.analyses.types", "engine.analyses.activity"],
}  # fmt: skip
"""Packages whose tests are run together, with what is above the first of the words blocked."""
LEFT_OUT = {
    "tests/engine/support/test_foreign.py::test_jax_values_have_one": "the bridge for JAX is a module of interop, "
    "found by its name",
    "tests/engine/support/test_foreign.py::test_numpy_and_python_values_have_no_bridge": "who a value of another type "
    "belongs to is asked above",
}
"""Tests that need what is above although their file does not import it, and why."""
FRAMEWORKS = {"torch", "tensorflow"}
"""Libraries whose bridges are not imported where they are not installed."""
REPOSITORY = Path(__file__).resolve().parents[1]


def package(structure: Structure, module: str) -> str:
    """The package of a module, as `ORDER` names it."""
    return structure.package(module).removeprefix("irgrad.")


def above(structure: Structure, floor: str) -> set[str]:
    """The modules of packages above a package, but for the `__init__` of packages in which lower ones lie."""
    top = ORDER.index(floor)
    found = {module for module in structure.files if ORDER.index(package(structure, module)) > top}
    around = {".".join(parts[:end]) for module in structure.files.keys() - found
              for parts in [module.split(".")] for end in range(len(parts))}  # fmt: skip
    return found - around


class Blocked(importlib.abc.MetaPathFinder):
    """Refuses the import of some modules."""

    def __init__(self, floor: str, modules: set[str]) -> None:
        self.floor = floor
        self.modules = modules

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in self.modules:
            raise ImportError(f"`{name}` is above `{self.floor}`")
        return None


def import_all(structure: Structure) -> None:
    """Import the modules of each package in a process of its own, and name those that failed."""
    for floor in sorted({package(structure, module) for module in structure.files}, key=ORDER.index):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = _import(structure, floor)
            finally:
                os._exit(status)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            print(f"failed: {floor}", flush=True)


def _import(structure: Structure, floor: str) -> int:
    sys.meta_path.insert(0, Blocked(floor, above(structure, floor)))
    for module in sorted(structure.files):
        if package(structure, module) == floor and not module.endswith("__main__"):
            try:
                importlib.import_module(module)
            except ImportError as error:
                print(f"{module}: {error}", flush=True)
                if error.name not in FRAMEWORKS:
                    return 1
    return 0


# -- tests -------------------------------------------------------------------------------------------------------------


def tests_of(floor: str) -> list[Path]:
    """The test files of a package's modules, without those of the packages in it."""
    return sorted((REPOSITORY / "tests" / floor.replace(".", "/")).glob("test_*.py"))


def reaches(structure: Structure, file: Path) -> set[str]:
    """The modules of the package that a test file imports, by itself or through the helpers of the tests."""
    found: set[str] = set()
    seen: set[Path] = set()
    work = [file]
    while work:
        current = work.pop()
        if current in seen:
            continue
        seen.add(current)
        for name in _imported(ast.parse(current.read_text())):
            if name == "irgrad" or name.startswith("irgrad."):
                found.add(_module(structure, name))
            else:
                work += _helper(name)
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _module(structure: Structure, name: str) -> str:
    while name and name not in structure.files:
        name = name.rpartition(".")[0]
    return name or "irgrad"  # the package itself, which hands on names of interop


def _helper(name: str) -> list[Path]:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        file = REPOSITORY.joinpath("tests", *parts[:end]).with_suffix(".py")
        if file.is_file():
            return [file]
    return []


def without_what_is_above(structure: Structure, top: str, floor: str) -> tuple[list[Path], dict[Path, set[str]]]:
    """The test files of a package that need nothing above `top`, and the others with what they need."""
    blocked = above(structure, top)
    # `irgrad.engine` and the like: names that a package in which this one lies hands on from above it
    handed = {"irgrad", "irgrad.engine"}
    low, high = [], {}
    for file in tests_of(floor):
        needs = reaches(structure, file) & (blocked | handed)
        if needs:
            high[file] = needs
        else:
            low.append(file)
    return low, high


def run_tests(structure: Structure, top: str) -> int:
    """Run them; the status of pytest."""
    import pytest

    files = []
    for floor in GROUPS[top]:
        low, high = without_what_is_above(structure, top, floor)
        files += low
        for file, needs in high.items():
            print(f"left out: {file.relative_to(REPOSITORY)} needs {', '.join(sorted(needs))}")
        print(f"{floor}: {len(low)} test files, {len(high)} left out", flush=True)
    sys.meta_path.insert(0, Blocked(top, above(structure, top)))
    for test, why in LEFT_OUT.items():
        print(f"left out: {test}: {why}", flush=True)
    leave = [f"--deselect={test}" for test in LEFT_OUT]
    return int(pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", *leave, *map(str, files)]))


def main(words: Sequence[str]) -> int:
    """The number of what failed."""
    structure = read(REPOSITORY)
    if words[0] == "import":
        import_all(structure)
        return 0
    failed = 0
    for top in words[1:] or GROUPS:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = run_tests(structure, top)
            finally:
                sys.stdout.flush()
                os._exit(status)
        failed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

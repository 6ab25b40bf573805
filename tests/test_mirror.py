"""The tree of tests mirrors the tree of code: every module has its test file, every test file its module."""

from __future__ import annotations

from pathlib import Path

FLOORS = ("rules", "engine", "interop")
# Modules whose behaviour is tested under another name; each needs its reason.
TESTED_ELSEWHERE: dict[str, str] = {}


def _modules(repository: Path) -> set[str]:
    """Modules with code of their own, as `engine/codegen/jit`."""
    found = set()
    for floor in FLOORS:
        for file in (repository / floor).rglob("*.py"):
            if file.name not in ("__init__.py", "__main__.py"):
                found.add(file.relative_to(repository).with_suffix("").as_posix())
    return found


def _tested(name: str, modules: set[str]) -> str | None:
    """The module that a test file `engine/codegen/test_jit_leaks` is about: the longest name it begins with."""
    folder, _, stem = name.rpartition("/")
    words = stem.removeprefix("test_").split("_")
    for count in range(len(words), 0, -1):
        candidate = f"{folder}/{'_'.join(words[:count])}"
        if candidate in modules:
            return candidate
    return None


def _test_files(repository: Path) -> list[str]:
    root = repository / "tests"
    return [
        file.relative_to(root).with_suffix("").as_posix()
        for floor in FLOORS
        for file in (root / floor).rglob("test_*.py")
    ]


def test_every_test_file_has_its_module(repository: Path) -> None:
    modules = _modules(repository)
    # test_init.py stands for a package's __init__.py
    orphans = [
        name for name in _test_files(repository) if not name.endswith("/test_init") and not _tested(name, modules)
    ]
    assert not orphans, f"test files without a module of that name: {sorted(orphans)}"


def test_every_module_has_its_test_file(repository: Path) -> None:
    modules = _modules(repository)
    covered = {_tested(name, modules) for name in _test_files(repository)}
    missing = modules - covered - set(TESTED_ELSEWHERE)
    assert not missing, f"modules without a test file of their name: {sorted(missing)}"


def test_exceptions_are_still_needed(repository: Path) -> None:
    stale = set(TESTED_ELSEWHERE) - _modules(repository)
    assert not stale

"""The package list against the disk, the lazy face, and what `import irgrad` costs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

FLOORS = ("rules", "engine", "interop")


def _project(repository: Path) -> dict[str, object]:
    with (repository / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def test_every_package_on_disk_is_listed(repository: Path) -> None:
    listed = set(_project(repository)["tool"]["setuptools"]["packages"])  # type: ignore[index]
    on_disk = {"irgrad"}
    for floor in FLOORS:
        for init in (repository / floor).rglob("__init__.py"):
            parts = init.parent.relative_to(repository).parts
            if parts != ("interop", "facade"):
                on_disk.add(".".join(("irgrad", *parts)))
    assert listed == on_disk


def test_data_files_are_shipped(repository: Path) -> None:
    patterns = _project(repository)["tool"]["setuptools"]["package-data"]["*"]  # type: ignore[index]
    for floor in FLOORS:
        for file in (repository / floor).rglob("*"):
            if file.is_file() and file.suffix not in (".py", ".pyc"):
                assert any(file.match(pattern) for pattern in patterns), f"{file} is not shipped"


def test_folders_with_code_are_packages(repository: Path) -> None:
    for floor in FLOORS:
        for file in (repository / floor).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), f"{file.parent} lacks __init__.py"


def test_links_for_the_checkers_point_to_the_floors(repository: Path, tmp_path: Path) -> None:
    for _ in range(2):  # made again, they are the same
        subprocess.run(["bash", str(repository / ".ci" / "links"), str(tmp_path)], check=True, timeout=60)
    tree = tmp_path / "irgrad"
    assert sorted(entry.name for entry in tree.iterdir()) == sorted([*FLOORS, "__init__.py", "py.typed"])
    for floor in FLOORS:
        assert (tree / floor).resolve() == repository / floor
    for file in ("__init__.py", "py.typed"):
        assert (tree / file).resolve() == repository / "interop" / "facade" / file


def test_every_public_name_is_handed_on() -> None:
    import irgrad

    for name in irgrad.__all__:
        assert getattr(irgrad, name) is not None
    assert set(irgrad.__all__) <= set(dir(irgrad))
    with pytest.raises(AttributeError, match="no attribute 'nothing_of_this_name'"):
        irgrad.nothing_of_this_name  # noqa: B018


def test_every_engine_name_is_handed_on() -> None:
    from irgrad import engine

    for name in engine.__all__:
        assert callable(getattr(engine, name)), name


def test_no_module_takes_the_name_of_a_function(repository: Path) -> None:
    """`irgrad.engine.batch` would be the module once anything in it is imported."""
    from irgrad import engine, rules

    for package, folder in ((engine, "engine"), (rules, "rules")):
        beside = {path.stem for path in (repository / folder).iterdir()}
        assert not beside & set(package.__all__)


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


def test_import_brings_in_nothing_heavy() -> None:
    code = (
        "import sys, irgrad; heavy = {'numpy', 'llvmlite', 'jax', 'jaxlib', 'plum', 'scipy', 'subprocess'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert _python(code) == "[]"


def test_import_reads_one_file_of_irgrad() -> None:
    code = (
        "import sys; before = set(sys.modules); import irgrad; new = set(sys.modules) - before; "
        "print(sorted(name for name in new if name.partition('.')[0] == 'irgrad'), len(new) < 20)"
    )
    assert _python(code) == "['irgrad'] True"


def test_version_is_the_one_of_the_project(repository: Path) -> None:
    import irgrad

    assert irgrad.__version__ == _project(repository)["project"]["version"]  # type: ignore[index]

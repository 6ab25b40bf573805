"""What README and docs/ show is run as it stands there (see `doc_blocks`); what they say about the sources holds."""

from __future__ import annotations

import ast
import inspect
import re
import runpy
import shutil
import tomllib
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from doc_blocks import BUILD, Session, blocks
from toolchains import missing

import irgrad
from irgrad.engine.enzyme import names
from irgrad.engine.support import limits

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = ("python", "setup", "c", "cpp", "console", *BUILD)
KNOWN = {*RUN, "text", "sh"}


def _with(*languages: str) -> list[Path]:
    return [page for page in PAGES if any(row.language in languages for row in blocks(page))]


def _name(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_block_says_what_it_is(page: Path) -> None:
    unknown = [row.place for row in blocks(page) if row.language not in KNOWN]
    assert not unknown, f"blocks that nothing runs have to be `text`: {unknown}"
    assert page.read_text(encoding="utf-8").count("\n```") == 2 * sum(row.language != "setup" for row in blocks(page))


@pytest.mark.parametrize("page", _with("python"), ids=_name)
def test_python_runs(page: Path, tmp_path: Path) -> None:
    rows = [row for row in blocks(page) if row.language in ("python", "setup")]
    wanted = {row.place: re.match(r"# needs (\w+)\n", row.text) for row in rows}
    lacking = {found[1] for found in wanted.values() if found is not None and missing(found[1])}
    output = Session(tmp_path).python([row for row in rows if (wanted[row.place] or [""] * 2)[1] not in lacking])
    if lacking:
        warnings.warn(f"{page.name}: without {', '.join(sorted(lacking))}, whose blocks were not run", stacklevel=1)
    if page.name == "README.md":
        assert "the derivatives agree" in output


@pytest.mark.parametrize("page", _with("c", "cpp", "console"), ids=_name)
def test_programs_and_commands_run(page: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    for row in blocks(page):
        if row.language in BUILD:
            if shutil.which(row.language) is None:
                pytest.skip(f"{row.language} is not installed")
            session.build_file(row)
        elif row.language in ("c", "cpp"):
            session.c(row)
        elif row.language == "console":
            session.console(row)


# What the pages say about the sources.

FLOORS = ("rules", "engine", "interop")
parsed = pytest.mark.xdist_group("sources")  # one worker parses them once


@cache
def _trees() -> tuple[ast.Module, ...]:
    files = [file for floor in FLOORS for file in sorted((ROOT / floor).rglob("*.py"))]
    return tuple(ast.parse(file.read_text(encoding="utf-8")) for file in files)


def _text(node: ast.expr) -> str:
    """A string of the source; what it formats is a line feed, which no line of a page has."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "\n" for part in node.values)
    return ""


@cache
def _strings() -> tuple[str, ...]:
    """The strings in the sources that are not documentation."""
    found = []
    for tree in _trees():
        plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in plain | inner:
                found.append(_text(node))
    return tuple(dict.fromkeys(filter(None, found)))


def _heads(page: str) -> list[str]:
    """The messages that a page quotes between double backticks."""
    return [head.strip() for head in re.findall(r"``(?!`)(.+?)``", page)]


def _pattern(head: str) -> re.Pattern[str]:
    """A quoted message as an expression: `...` is what the source formats, with or without words around it."""
    return re.compile(r"[^`]*".join(re.escape(part) for part in head.split("...")))


def _said(head: str) -> bool:
    """Whether some source has this message."""
    longest, pattern = max(head.split("..."), key=len), _pattern(head)
    return any(longest in text and pattern.search(text) for text in _strings())


def _errors() -> str:
    return (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")


@parsed
def test_quoted_messages_are_in_the_sources() -> None:
    heads = _heads(_errors())
    assert len(heads) > 150
    missing = [head for head in heads if not _said(head)]
    assert not missing, f"no source says: {missing}"


@parsed
def test_a_message_that_no_source_has_is_found() -> None:
    assert not _said("`...` has dtype ..., wanted a colour")
    assert _said("`...` has dtype ..., wanted ...")


def _raised() -> dict[str, str]:
    """The first words of every error that is made with a literal, and what makes it."""
    makers = {*re.findall(r"^\| `(\w+)` \|", _errors(), re.M), "refuse", "_refuse"}
    found = {}
    for tree in _trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            # what is refused stands behind where: names, attributes and calls
            said = next((arg for arg in node.args if not isinstance(arg, ast.Name | ast.Attribute | ast.Call)), None)
            if name in makers and said is not None and re.search(r"\w", text := _text(said)):
                found[text] = f"{name}: {ast.unparse(said)}"
    return found


@parsed
def test_every_message_is_documented() -> None:
    patterns = list(map(_pattern, _heads(_errors())))
    raised = _raised()
    assert len(raised) > 300
    missing = [said for text, said in raised.items() if not any(pattern.search(text) for pattern in patterns)]
    assert not missing, "docs/errors.md does not explain:\n" + "\n".join(missing)


@parsed
def test_every_class_of_error_and_warning_is_documented() -> None:
    classes: dict[str, list[str]] = {}
    for tree in _trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
    public = {"IRGradError"}
    while more := {name for name, bases in classes.items() if public.intersection(bases)} - public:
        public |= more
    warnings = {name for name, bases in classes.items() if any(base.endswith("Warning") for base in bases)}
    assert {"OneAtATime", "RuleCheckFailed"} <= public and len(warnings) > 3
    documented = set(re.findall(r"^\| `(\w+)` \|", _errors(), re.M))
    assert documented == {name for name in public | warnings if not name.startswith("_")}


@parsed
def test_every_variable_of_the_environment_is_documented() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"IRGRAD_[A-Z_]+", page))
    prefix = r"\bIRGRAD_[A-Z_]*[A-Z]\b"
    read = {name for text in _strings() for name in re.findall(prefix, text)}
    read |= {f"IRGRAD_MAX_{name}" for name in limits.DEFAULTS}
    for file in (ROOT / "tests").rglob("*.py"):
        read |= set(re.findall(rf'environ(?:\.get\(|\[)"({prefix})"', file.read_text(encoding="utf-8")))
    assert documented == read


@pytest.mark.parametrize(("heading", "function"), [("load", irgrad.load), ("lib.kernel", irgrad.Library.kernel)])
def test_every_keyword_is_documented(heading: str, function: Callable[..., object]) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    documented = re.findall(r"^\| `(\w+)` \|", section, re.M)
    assert documented == [name for name in inspect.signature(function).parameters if name != "self"]


def test_every_extra_is_documented() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `irgrad\[(\w+)\]` \|", page, re.M)) == set(extras)


def test_every_word_of_the_notation_is_documented() -> None:
    page = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    words = [f"enzyme_{word}" for word in (*names.ACTIVITIES, *names.SWITCHES, *names.VALUED, *names.BATCH)]
    missing = [word for word in (*names.DERIVATIVES, *names.PLAIN, *words) if not re.search(rf"`{word}\b", page)]
    assert not missing


def test_every_function_of_the_engine_is_documented() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    functions = [name for name in irgrad.engine.__all__ if name.islower()]
    missing = [name for name in functions if not re.search(rf"`{name}\b", page)]
    assert not missing


_PATH = re.compile(r"(?<![\w./-])((?:engine|rules|interop|tests|examples|benchmarks|docs|\.ci)/[\w./-]*\w)")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "benchmarks" / "README.md"], ids=_name)
def test_every_path_exists(page: Path) -> None:
    named = {*_PATH.findall(page.read_text(encoding="utf-8"))}
    missing = sorted(path for path in named if not (ROOT / path).exists() and not list(ROOT.glob(f"{path}*")))
    assert not missing


def test_how_it_works_names_every_package() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    packages = [init.parent for floor in FLOORS for init in (ROOT / floor).rglob("__init__.py")]
    missing = sorted(str(folder) for folder in packages if f"`{folder.relative_to(ROOT).as_posix()}/`" not in page)
    assert not missing


def test_stages_are_what_the_engine_makes_of_the_function() -> None:
    """`python docs/stages.py` would change nothing."""
    stages = runpy.run_path(str(ROOT / "docs" / "stages.py"))
    page = stages["PAGE"].read_text(encoding="utf-8")
    assert page.count(stages["BEGIN"]) == page.count(stages["END"]) == 1
    shown = page.split(stages["BEGIN"] + "\n")[1].split(stages["END"])[0]
    assert shown == stages["section"](), "python docs/stages.py"


def test_stages_leave_out_what_depends_on_the_machine() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    assert not re.search(r"![0-9]|\btarget (triple|datalayout)|attributes #|#[0-9]|/tmp/", page)


def _decisions() -> list[tuple[str, list[str]]]:
    """The file and the names of each row of "Where is it decided?"."""
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1:-1] for row in page.split("## Where is it decided?")[1].splitlines() if row.count("|") > 4]
    return [(re.findall(r"`([^`]+)`", row[2])[0], re.findall(r"`([^`]+)`", row[3])) for row in rows[2:]]


def test_where_is_it_decided() -> None:
    """What is to be looked for stands in the file: a function, a class, or a name that is assigned or called."""
    found = _decisions()
    assert len(found) >= 20
    missing = []
    for file, wanted in found:
        text = (ROOT / file).read_text(encoding="utf-8")
        for name in wanted:
            if not re.search(rf"^(?:.*\b(?:def|class) )?{name}\b|\b{name}\(", text, re.M):
                missing.append(f"{file}: {name}")
    assert not missing


def _anchor(title: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_anchors_exist(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
        there = (page.parent / target) if target else page
        titles = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.M)
        assert anchor in {_anchor(title) for title in titles}, f"{page.name}: {target}#{anchor}"

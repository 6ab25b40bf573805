"""Passes: named steps over a module, run in order; each can be seen, timed and verified.

    IRGRAD_PRINT_AFTER=NAME[,NAME]|all   the module after these passes, on stderr
    IRGRAD_PRINT_TO=FOLDER               in files of a folder instead, numbered in the order in which passes ran
    IRGRAD_VERIFY=1                      the module is verified after each pass (tests set it)
    IRGRAD_PROGRESS=2                    seconds and instructions of each pass, on stderr

The variables are read when a list of passes starts.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irgrad.engine.codegen.llvm import parse, target_machine
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_definitions, verify_module
from irgrad.rules.errors import IRInvalid

__all__ = [
    "Code", "Pass", "PassRun", "Settings", "about", "function_pass", "llvm_pass", "model_pass", "observed", "recorded",
    "run_passes", "table", "text_pass",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """What passes are told.

    roots:   functions that stay visible; keep: functions that stay calls, since a rule is registered for them (or None)
    preopt:  whether a function is optimised before it is differentiated
    leaving: whether exceptions that leave a root reach its caller
    members: whether indices of arrays that are members are bounded (see `member_arrays.py`)
    level:   LLVM's speed level; strict_fp: whether every operation stays as it is
    machine: LLVM's target machine for what is lowered, None for that of `prepare`
    functions: those that passes over functions change, None for all
    vector_math: whether calls of libm may become vector calls; approximate: only those that may be approximated, of a
        CPU with these features
    stoppable: whether signals end the loops of the first root, which is an entry; or `polls.HANDLER`
    """

    roots: tuple[str, ...] = ()
    keep: Callable[[str], bool] | None = None
    preopt: bool = True
    leaving: bool = False
    members: bool = False
    level: int = 3
    strict_fp: bool = False
    machine: Any = None
    functions: frozenset[str] | None = None
    vector_math: bool = True
    approximate: str = ""
    stoppable: bool | str = False


class Code:
    """A module on its way: as text, as a model (`ir.model.Module`), or as LLVM's own. One of them is current; another
    is made from that when it is asked for, and is current from then on."""

    __slots__ = ("_llvm", "_machine", "_model", "_text", "changes", "notes", "roots")

    def __init__(self, text: str | None = None, model: Module | None = None, roots: Sequence[str] = ()) -> None:
        self._text, self._model, self._llvm = text, model, None
        self._machine: Any = None
        self.roots = tuple(roots)
        self.notes: set[str] = set()
        self.changes = 0  # that passes over the model counted

    def note(self, word: str, holds: bool = True) -> None:
        """Note something about the module for the passes behind, if it holds."""
        self.notes |= {word} if holds else set()

    def forget(self, word: str) -> None:
        """Take a note back."""
        self.notes -= {word}

    def count(self, made: object) -> None:
        """Count the changes that a pass over the model made, if it says how many."""
        self.changes += made if isinstance(made, int) else 0

    @property
    def text(self) -> str:
        """As text; what only reads it leaves the current form as it is."""
        if self._text is None:
            self._text = to_text(self._model) if self._model is not None else str(self._llvm)
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self.close()
        self._text, self._model = text, None

    @property
    def model(self) -> Module:
        """As a model that passes change."""
        if self._model is None:
            text = self.text
            self.close()
            self._model = read(text, roots=list(self.roots) or None)
        self._text = None
        return self._model

    @property
    def llvm(self) -> Any:
        """As a module of LLVM that passes change."""
        if self._llvm is None:
            text = self.text
            self._model = None
            self._llvm = parse(text)
        self._text = None
        return self._llvm

    @property
    def form(self) -> str:
        """"text", "model" or "llvm"."""
        return "model" if self._model is not None else "llvm" if self._llvm is not None else "text"

    def has_function(self, prefix: str) -> bool:
        """Whether a function has a name that begins so."""
        if self._text is None and self._llvm is not None:
            return any(function.name.startswith(prefix) for function in self._llvm.functions)
        return outline(self.text).has_prefix(prefix)

    def machine(self, cpu: str, level: int) -> Any:
        """A target machine for passes of LLVM that are no code generation."""
        if self._machine is None:
            self._machine = target_machine(cpu, opt=level, jit=True)
        return self._machine

    def take(self) -> Any:
        """LLVM's module, which is the caller's from then on."""
        module, self._llvm = self.llvm, None
        return module

    def instructions(self) -> int:
        """How many instructions the functions have that were read."""
        if self._model is not None:
            return sum(len(block.instructions) for fn in self._model.functions.values() for block in fn.blocks)
        if self._llvm is not None:
            return sum(1 for fn in self._llvm.functions for block in fn.blocks for _ in block.instructions)
        return sum(line.startswith("  ") for line in self.text.splitlines())

    def close(self) -> None:
        """Give LLVM's memory back."""
        if self._llvm is not None:
            self._llvm.close()
            self._llvm = None


@dataclass(frozen=True, slots=True)
class Pass:
    """A step with a name. form: "text", "model" or "llvm", or "code" for one that looks for itself."""

    name: str
    run: Callable[[Code, Settings], object]
    form: str
    about: str


def about(function: Callable[..., object]) -> str:
    """The first paragraph of a function's docstring, in one line."""
    return (function.__doc__ or "").strip().partition("\n\n")[0].replace("\n", " ")


def text_pass(name: str, function: Callable[[str], str]) -> Pass:
    """A pass over the text of a module."""

    def run(code: Code, settings: Settings) -> None:
        changed = function(code.text)
        if changed is not code.text:
            code.text = changed

    return Pass(name, run, "text", about(function))


def model_pass(name: str, function: Callable[[Module], object]) -> Pass:
    """A pass over the model of a module. It may return how many changes it made."""

    def run(code: Code, settings: Settings) -> None:
        made = function(code.model)
        code.count(made)

    return Pass(name, run, "model", about(function))


def function_pass(name: str, function: Callable[[Module, Function], object]) -> Pass:
    """A pass over each function that has a body."""

    def run(code: Code, settings: Settings) -> None:
        module = code.model
        for fn in [fn for fn in module.functions.values() if fn.blocks]:
            if settings.functions is None or fn.name in settings.functions:
                function(module, fn)

    return Pass(name, run, "model", about(function))


def llvm_pass(name: str, function: Callable[[Code, Settings], object]) -> Pass:
    """A pass over a module of LLVM's own; the function asks for it by `code.llvm`, or leaves the code alone."""
    return Pass(name, function, "llvm", about(function))


# -- running and watching ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PassRun:
    """One run of a pass. seconds: wall time; instructions: of the module after it."""

    name: str
    seconds: float
    instructions: int


@dataclass
class _Watch:
    """What is done after each pass."""

    printed: frozenset[str]
    folder: str
    verified: bool
    told: bool
    runs: list[PassRun] | None

    def after(self, step: Pass | str, code: Code, seconds: float) -> None:
        name = step if isinstance(step, str) else step.name
        if self.runs is not None or self.told:
            run = PassRun(name, seconds, code.instructions())
            if self.runs is not None:
                self.runs.append(run)
            if self.told:
                print(table([run]), file=sys.stderr)
        if self.verified:
            _verify(name, code)
        if self.printed and ("all" in self.printed or name in self.printed):
            self._print(name, code)

    def _print(self, name: str, code: Code) -> None:
        text = code.text if code.form == "text" else to_text(code.model) if code.form == "model" else str(code.llvm)
        if not self.folder:
            print(f"; -- after {name} --\n{text}", file=sys.stderr)
            return
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{next(_NUMBER):04d}-{name}.ll").write_text(text, encoding="utf-8", errors="surrogateescape")


_NUMBER = itertools.count(1)
_RUNS: ContextVar[list[PassRun] | None] = ContextVar("irgrad_passes", default=None)


def _watch() -> _Watch | None:
    """What the environment asks for, None for nothing."""
    names = frozenset(name for name in os.environ.get("IRGRAD_PRINT_AFTER", "").split(",") if name)
    verified, runs = os.environ.get("IRGRAD_VERIFY", "") not in ("", "0"), _RUNS.get()
    told = os.environ.get("IRGRAD_PROGRESS", "") == "2"
    if not names and not verified and not told and runs is None:
        return None
    return _Watch(names, os.environ.get("IRGRAD_PRINT_TO", ""), verified, told, runs)


def _verify(name: str, code: Code) -> None:
    problems: list[str] = []
    if code.form == "model":
        problems = verify_module(code.model)
    elif code.form == "llvm":
        try:
            code.llvm.verify()
        except RuntimeError as error:
            problems = [str(error)]
    if problems:
        raise IRInvalid(f"the module is not well formed after the pass `{name}`", which="\n".join(problems[:5]),
                        because="the pass, or one before it that was not verified, is wrong",
                        fix=f"report it, with the module before: IRGRAD_PRINT_AFTER=all (to see what {name} changed)")


def defined(module: Module) -> None:
    """Each value of the module is defined where it is used, or IRInvalid is raised. It is asked before a derivative is
    made: what its sweeps keep in memory has no order that LLVM could check."""
    problems = verify_definitions(module)
    if problems:
        raise IRInvalid("the module to be differentiated is not well formed", which="\n".join(problems[:5]),
                        because="a pass before differentiation is wrong",
                        fix="report it; IRGRAD_VERIFY=1 names the pass")


def run_passes(passes: Sequence[Pass], code: Code, settings: Settings) -> Code:
    """Run the passes on the code, in order. Raises what they raise; IRInvalid where a pass left a broken module and
    `IRGRAD_VERIFY` is set."""
    watch = _watch()
    for step in passes:
        start = time.perf_counter()
        step.run(code, settings)
        if watch is not None:
            watch.after(step, code, time.perf_counter() - start)
    return code


@contextmanager
def observed(name: str, code: Code) -> Iterator[None]:
    """A step that is not a pass of a list (the making of a derivative), seen, timed and verified like one."""
    start = time.perf_counter()
    yield
    watch = _watch()
    if watch is not None:
        watch.after(name, code, time.perf_counter() - start)


@contextmanager
def recorded() -> Iterator[list[PassRun]]:
    """`with recorded() as runs:` collects the passes that run inside, in this thread."""
    runs: list[PassRun] = []
    token = _RUNS.set(runs)
    try:
        yield runs
    finally:
        _RUNS.reset(token)


def table(runs: Sequence[PassRun]) -> str:
    """Runs of passes as lines: milliseconds, instructions after it, name."""
    return "\n".join(f"{run.seconds * 1e3:10.2f} ms {run.instructions:9d}  {run.name}" for run in runs)

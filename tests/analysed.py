"""C or IR text in, `Facts` out, for the tests of the analyses. Roots are written in normal form (pointers only)."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from irgrad.engine.analyses.activity.facts import Facts
from irgrad.engine.ir.model import Function, Instruction, Module, Value
from irgrad.engine.ir.text.reader import read

FLAGS = "-O2 -fno-vectorize -fno-slp-vectorize -fno-unroll-loops -fno-math-errno -fno-sanitize=undefined".split()


@cache
def ir_of(source: str, flags: tuple[str, ...] = ()) -> str:
    """LLVM IR that clang makes of a C program."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "prog.c")
        path.write_text(source)
        command = [
            sys.executable,
            "-m",
            "ziglang",
            "cc",
            *FLAGS,
            *flags,
            "-S",
            "-emit-llvm",
            str(path),
            "-o",
            str(path.with_suffix(".ll")),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return path.with_suffix(".ll").read_text()


def facts_of(text: str, root: str, dup: set[int]) -> Facts:
    """Analyse IR text."""
    module: Module = read(text, roots=[root])
    return Facts(module, module.functions[root], dup)


def facts_of_c(source: str, root: str, dup: set[int], *flags: str) -> Facts:
    """Analyse a C program."""
    return facts_of(ir_of(source, flags), root, dup)


def named(fn: Function, name: str) -> Value:
    """An argument or instruction by its name."""
    for arg in fn.args:
        if arg.name == name:
            return arg
    for instr in fn.instructions():
        if instr.name == name:
            return instr
    raise KeyError(name)


def all_of(facts: Facts, opcode: str, fn: str | None = None) -> list[Instruction]:
    """Instructions of one opcode, in one function or all reachable ones."""
    functions = facts.pointers.functions if fn is None else [facts.module.functions[fn]]
    return [i for f in functions for i in f.instructions() if i.opcode == opcode]


def normal_form(text: str) -> list[str]:
    """The module as LLVM prints it, without the comment that holds its name."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    return [line for line in str(module).splitlines() if not line.startswith("; ModuleID")]

"""The hostile set: modules that LLVM accepts and that then kill or hang the process are refused, each in a process."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.text.validate import validate
from irgrad.rules.errors import IRInvalid

BODY = "define double @f(double %x) {{\n{}\n  ret double %x\n}}\n"
HOSTILE = {
    "inline asm": (BODY.format('  call void asm sideeffect "garbage $9", "=&{nope}"()'), "inline assembly"),
    "module asm": ('module asm ".garbage"\n', "assembly at module level"),
    "unknown intrinsic": (
        "declare double @llvm.sine.f64(double)\n" + BODY.format("  %y = call double @llvm.sine.f64(double %x)"),
        "an intrinsic that LLVM does not know",
    ),
    "target intrinsic": (
        'target triple = "x86_64-unknown-linux-gnu"\ndeclare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n'
        + BODY.format("  %y = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"),
        "an intrinsic that LLVM does not know",
    ),
    "unresolved symbol": (
        "declare void @nowhere()\n" + BODY.format("  call void @nowhere()"),
        "a symbol that nothing defines",
    ),
    "unresolved varargs": (
        "declare i32 @nowhere(ptr, ...)\n" + BODY.format("  call i32 (ptr, ...) @nowhere(ptr null)"),
        "a symbol that nothing defines",
    ),
    "unresolved variable": (
        "@v = external global double\n" + BODY.format("  %y = load double, ptr @v"),
        "a symbol that nothing",
    ),
    "undeclared symbol": (BODY.format("  call void @nowhere()"), "a symbol that this module defines"),
    "scalable vector": (BODY.format("  %y = alloca <vscale x 4 x double>"), "a vector of fixed length"),
    "huge alloca": (BODY.format("  %y = alloca [1099511627776 x i8]"), "too much stack memory"),
    "huge count": (BODY.format("  %y = alloca i8, i64 -1"), "too much stack memory"),
    "many allocas": (
        BODY.format("\n".join(f"  %y{i} = alloca [1000000 x i8]" for i in range(9))),
        "too much stack memory",
    ),
    "alignment": (BODY.format("  %y = alloca i8, align 4294967296"), "an alignment that is too large"),
    "deep constant": ("@x = global i64 " + "add (i64 1, i64 " * 20000 + "1" + ")" * 20000 + "\n", "nested too deeply"),
    "deep metadata": ("!0 = " + "!{" * 20000 + "}" * 20000 + "\n", "nested too deeply"),
    "deep structs": (
        "%T0 = type { i8 }\n" + "".join(f"%T{i} = type {{ %T{i - 1} }}\n" for i in range(1, 5000)),
        "nested too deeply",
    ),
    "wide integer": (BODY.format("  %y = sdiv i8388607 5, 3"), "an integer type that is too wide"),
    "long vector": (
        BODY.format("  %y = fadd <1000000 x double> zeroinitializer, zeroinitializer"),
        "a vector that is too long",
    ),
    "huge global": ("@x = global [1099511627776 x i8] zeroinitializer\n", "the global variables are too large"),
    "block address": (
        "@x = global ptr blockaddress(@f, %e)\ndefine void @f() {\n  br label %e\ne:\n  ret void\n}\n",
        "the address of a block",
    ),
    "recursive type": ("%T = type { %T, i8 }\n@x = global %T zeroinitializer\n", "a struct that contains itself"),
    "recursive alias": ("@a = alias i8, ptr @b\n@b = alias i8, ptr @a\n", "an alias of itself"),
    "convention": ("define amdgpu_kernel void @k() {\n  ret void\n}\n", "a calling convention"),
    "collector": ('define void @k() gc "nope" {\n  ret void\n}\n', "a garbage collector"),
    "not dominating": (
        "define i32 @f(i1 %c) {\n  br i1 %c, label %a, label %b\n"
        "a:\n  %x = add i32 1, 2\n  br label %b\nb:\n  ret i32 %x\n}\n",
        "does not dominate",
    ),
    "opaque": ("%T = type opaque\n" + BODY.format("  %y = alloca %T"), "memory of a type without size"),
    "lazy": (BODY.format('  call void asm sideeffect "garbage", ""()'), "inline assembly"),
    "wide address": (
        "@h = global i8 0\n@x = global i128 ptrtoint (ptr @h to i128)\n" + BODY.format("  %y = load i128, ptr @x"),
        "an initial value that no object file can hold",
    ),
    "tagged address": (
        "@h = global i8 0\n@x = global { i64 } { i64 xor (i64 ptrtoint (ptr @h to i64), i64 1) }\n"
        + BODY.format("  %y = load i64, ptr @x"),
        "an initial value that no object file can hold",
    ),
    "nul": ("declare void @f()\n\0garbage", "NUL byte"),
}

WORKER = """
import sys
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.text.validate import validate
from irgrad.rules.errors import IRGradError
try:
    validate(read(sys.stdin.read()), lambda name: name in ("sin", "malloc"))
except IRGradError as error:
    print(error)
    sys.exit(7)
"""


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_modules_are_refused(case: str) -> None:
    text, words = HOSTILE[case]
    done = subprocess.run(
        [sys.executable, "-c", WORKER], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 7, done.stderr[-500:]
    assert words in done.stdout, done.stdout


def test_lazy_bodies_are_looked_into() -> None:
    text = "define void @a() {\n  ret void\n}\n" + HOSTILE["lazy"][0]
    module = read(text, roots=["a"])
    assert module.functions["f"].lazy is not None
    with pytest.raises(IRInvalid, match="inline assembly"):
        validate(module)


def test_four_parts() -> None:
    with pytest.raises(IRInvalid) as caught:
        validate(read(HOSTILE["unknown intrinsic"][0]))
    error = caught.value
    assert error.where == "@f, block %1" or error.where.startswith("@f, block %")
    assert error.which == "@llvm.sine.f64"
    assert "did you mean `llvm.sin" in error.fix


def test_the_corpus_is_accepted(corpus: dict[str, str]) -> None:
    for name, text in corpus.items():
        if not name.startswith("data"):  # it takes the address of a block
            validate(read(text))


def test_empty_assembly_is_harmless() -> None:
    validate(read(BODY.format('  call void asm sideeffect "", "~{memory}"()')))


FUZZ = """
import random, sys

from irgrad.engine.ir.printer import to_text
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.text.validate import validate
from irgrad.rules.errors import IRGradError
seed, count, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
rng = random.Random(seed)
lines = open(path).read().splitlines()
words = sorted({w for line in lines for w in line.split()})
refused = accepted = 0
for step in range(count):
    mutant = list(lines)
    for _ in range(rng.randint(1, 3)):
        k = rng.randrange(len(mutant))
        what = rng.random()
        if what < 0.2:
            del mutant[k]
        elif what < 0.4:
            mutant.insert(k, rng.choice(lines))
        else:
            parts = mutant[k].split(" ")
            j = rng.randrange(len(parts))
            if what < 0.7:
                parts[j] = rng.choice(words)
            elif parts[j]:
                c = rng.randrange(len(parts[j]))
                parts[j] = parts[j][:c] + rng.choice("(){}[]<>,%@!0129-\\"xi* ") + parts[j][c + rng.randint(0, 1):]
            mutant[k] = " ".join(parts)
    try:
        module = read("\\n".join(mutant))
        validate(module, lambda name: True)
        to_text(module)
        accepted += 1
    except IRGradError:
        refused += 1
print(refused, accepted)
"""


def fuzz(text: str, tmp_path: object, seed: int, count: int) -> tuple[int, int]:
    """Read and validate mutants of a module in a worker. Anything but an IRGradError ends it with a traceback."""
    path = f"{tmp_path}/seed.ll"
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)
    done = subprocess.run(
        [sys.executable, "-c", FUZZ, str(seed), str(count), path],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1500:]
    refused, accepted = map(int, done.stdout.split())
    return refused, accepted


def function_texts(text: str) -> str:
    """The module without metadata, so that mutations meet code."""
    return "\n".join(line.split(", !")[0] for line in text.splitlines() if not line.startswith(("!", "    #dbg")))


def test_mutants_are_refused_or_accepted(corpus: dict[str, str], tmp_path: object) -> None:
    refused, accepted = fuzz(corpus["loops-Os"], tmp_path, 1, 60)
    assert refused > 10 and accepted > 0


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["loops-O0", "data-O1", "wide-O3"])
def test_many_mutants(corpus: dict[str, str], tmp_path: object, unit: str) -> None:
    refused, _ = fuzz(corpus[unit], tmp_path, random.Random(unit).randrange(1000), 1500)
    assert refused > 100

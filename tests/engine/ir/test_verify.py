"""The structural verifier finds each kind of damage, and nothing in sound functions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Block, ConstInt, Function, Instruction, const_float
from irgrad.engine.ir.text.reader import read
from irgrad.engine.ir.verify import verify_definitions, verify_function, verify_module

TEXT = """
declare double @g(double)
define double @f(double %x, ptr %p, i1 %c, i32 %i) {
entry:
  %a = fadd double %x, 1.0
  br i1 %c, label %left, label %right
left:
  %b = call double @g(double %a)
  br label %join
right:
  %l = load double, ptr %p
  %w = sext i32 %i to i64
  br label %join
join:
  %r = phi double [ %b, %left ], [ %l, %right ]
  %s = select i1 %c, double %r, double %a
  store double %s, ptr %p
  ret double %s
}
"""


def sound() -> Function:
    return read(TEXT).functions["f"]


def test_sound_functions(corpus: dict[str, str]) -> None:
    assert verify_function(sound()) == []
    for text in corpus.values():
        assert verify_module(read(text)) == []


def at(function: Function, name: str) -> Instruction:
    return next(i for i in function.instructions() if i.name == name)


def drop_terminator(f: Function) -> None:
    f.blocks[1].instructions.pop()


def two_terminators(f: Function) -> None:
    f.blocks[1].instructions.append(Instruction("unreachable", ty.VOID))


def use_before(f: Function) -> None:
    entry = f.entry
    entry.instructions[0].operands[0] = at(f, "b")


def foreign_operand(f: Function) -> None:
    at(f, "a").operands[0] = sound().args[0]


def foreign_block(f: Function) -> None:
    f.entry.terminator.blocks[0] = Block("elsewhere")


def wrong_phi(f: Function) -> None:
    phi = at(f, "r")
    phi.operands.pop()
    phi.blocks.pop()


def phi_not_first(f: Function) -> None:
    join = f.blocks[3].instructions
    join[0], join[1] = join[1], join[0]


def mixed_types(f: Function) -> None:
    at(f, "a").operands[1] = const_float(ty.F32, 1.0)


def wrong_argument(f: Function) -> None:
    at(f, "b").operands[0] = ConstInt(ty.I32, 1)


def missing_argument(f: Function) -> None:
    at(f, "b").operands.pop(0)


def wrong_return(f: Function) -> None:
    f.blocks[3].terminator.operands[0] = ConstInt(ty.I32, 1)


def narrowing_sext(f: Function) -> None:
    at(f, "w").type = ty.I8


def load_from_number(f: Function) -> None:
    at(f, "l").operands[0] = f.args[0]


def unknown_opcode(f: Function) -> None:
    at(f, "a").opcode = "fsquare"


def twice(f: Function) -> None:
    f.blocks[1].instructions.insert(0, at(f, "a"))


def undefined(f: Function) -> None:
    f.entry.instructions.pop(0)


DAMAGE: dict[Callable[[Function], None], str] = {
    drop_terminator: "does not end with a terminator",
    two_terminators: "a terminator in the middle",
    use_before: "does not dominate",
    foreign_operand: "argument %x of another function",
    foreign_block: "is not one of this function",
    wrong_phi: "are not the predecessors (%left, %right)",
    phi_not_first: "a phi behind another instruction",
    mixed_types: "operands of types `double` and `float`",
    wrong_argument: "argument 0 has type `i32`, not `double`",
    missing_argument: "0 arguments; `double (double)` takes 1",
    wrong_return: "a return of `i32`, not `double`",
    narrowing_sext: "a cast from `i32` to `i8`",
    load_from_number: "an address of type `double`",
    unknown_opcode: "`fsquare` is no opcode of LLVM",
    twice: "stands in two places",
    undefined: "operand %a is not defined in this function",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda d: d.__name__)
def test_damage_is_found(damage: Callable[[Function], None]) -> None:
    function = sound()
    damage(function)
    problems = verify_function(function)
    assert any(DAMAGE[damage] in problem for problem in problems), problems


def test_a_long_chain_of_blocks_needs_no_recursion() -> None:
    lines = [f"b{i}:\n  br label %b{i + 1}" for i in range(20_000)]
    text = "define void @f() {\n" + "\n".join(lines) + "\nb20000:\n  ret void\n}\n"
    assert verify_function(read(text).functions["f"]) == []


TYPES = (mixed_types, wrong_argument, missing_argument, wrong_return, narrowing_sext, load_from_number, unknown_opcode)


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda d: d.__name__)
def test_definitions_are_verified_without_types(damage: Callable[[Function], None]) -> None:
    module = read(TEXT)
    damage(module.functions["f"])
    problems = verify_definitions(module)
    assert problems == [] if damage in TYPES else any(DAMAGE[damage] in problem for problem in problems)

"""Programs made ready for the search for calls of the notation: a function that is passed on is seen at the call.

Local variables become values, and functions around the call (C++ templates, lambdas as pointers) are inlined. Static
variables of addresses that nothing writes are constants.
"""

from __future__ import annotations

import re

from irgrad.engine.analyses.memory.objects import holds_address
from irgrad.engine.enzyme.calls import PREFIX
from irgrad.engine.ir.model import ConstAggregate, ConstExpr, GlobalVariable, Instruction, Module, Value
from irgrad.engine.ir.quoting import bare_name
from irgrad.engine.ir.text.entities import cut
from irgrad.engine.ir.text.outline import function_bodies
from irgrad.engine.ir.uses import uses_of

__all__ = ["settle_statics", "simplified"]

_SYMBOL = re.compile(r'@(?:"[^"]*"|[-\w$.]+)', re.ASCII)
_GIVEN = re.compile(r"call [^@\n]*@[\w.]*__enzyme_\w*\((?:ptr [^,()]*sret[^,%]*%[^,]*, )?ptr (?:noundef )?%")
_NAMES = re.compile(r"\{\n(?:[-\w.$]+:[^\n]*\n)?  ret ptr @[^\n]*\n\}")
_WRAPPERS = 4  # templates around templates around the call


def simplified(text: str, whole: bool, preopt: bool) -> str:
    """The text of the program without local variables and wrappers that hide which function is differentiated; indices
    of arrays in structs stay what they are (see `member_arrays.py`). whole, preopt: see `lower`."""
    from irgrad.engine.codegen.llvm import binding, parse, target_machine
    from irgrad.engine.codegen.member_arrays import has_indices
    from irgrad.engine.codegen.prepare import strip_target

    llvm = binding()
    module = parse(strip_target(text))
    machine, tuning = target_machine(), llvm.create_pipeline_tuning_options(speed_level=1)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    registers = llvm.create_new_function_pass_manager()
    registers.add_sroa_pass()
    typed = {name for name, body in function_bodies(text).items() if PREFIX not in body and has_indices(body)}

    builder = llvm.create_pass_builder(machine, tuning)

    def simplify() -> None:
        for fn in module.functions:
            if not fn.is_declaration and (preopt or PREFIX in str(fn)):
                (registers if fn.name in typed else passes).run(fn, builder)

    simplify()
    for _ in range(_WRAPPERS):
        names = _wrappers(str(module))
        if not names:
            break
        for fn in (fn for fn in module.functions if fn.name in names and not any(map(_apart, fn.attributes))):
            fn.add_function_attribute("alwaysinline")
            if whole or fn.linkage.name.startswith("linkonce"):
                fn.linkage = "internal"
        inline = llvm.create_new_module_pass_manager()
        inline.add_always_inliner_pass()
        inline.add_global_dead_code_eliminate_pass()
        inline.run(module, builder)
        simplify()
    result = str(module)
    module.close()
    return result


def _apart(attributes: bytes) -> bool:
    return b"noinline" in attributes


def _wrappers(text: str) -> set[str]:
    """Functions that differentiate what they are given (C++ templates around the call), and with them those that do
    nothing but name a function (a lambda as a pointer): they have to be inlined."""
    given, names = set(), set()
    for entity in cut(text):
        if entity.body is None or (symbol := _SYMBOL.search(text, entity.start, entity.end)) is None:
            continue
        if text.find(PREFIX, *entity.body) >= 0 and _GIVEN.search(text, *entity.body):
            given.add(bare_name(symbol[0]))
        elif _NAMES.search(text, entity.start, entity.end):
            names.add(bare_name(symbol[0]))
    return (given | names) - {"main"} if given else given


def settle_statics(module: Module) -> None:
    """Mark static variables that hold addresses from the start, and are only read, as constants: `static double *work =
    buffer;` is another name of the buffer, in a derivative too."""
    from irgrad.engine.ir.text.reader import materialise

    found = {
        var for var in module.globals.values()
        if not var.constant and {"internal", "private"} & set(var.head.split()) and holds_address(var.init)
        and not (var.name or "").startswith(("llvm.", PREFIX))
    }  # fmt: skip
    for var in module.globals.values():
        found -= set(_inside(var.init)) if var.init is not None else set()
    for fn in module.functions.values() if found else ():
        if fn.lazy is not None and any(var.name in fn.lazy for var in found if var.name):
            materialise(fn, module)
        users = uses_of(fn.blocks)
        for value, instrs in users.items():
            found -= {var for var in _inside(value) if not all(_reads(instr, value, users) for instr in instrs)}
    for var in found:
        var.constant = True


def _inside(value: Value | None) -> list[GlobalVariable]:
    """The variables whose address a constant is made of."""
    if isinstance(value, GlobalVariable):
        return [value]
    parts = value.operands if isinstance(value, ConstExpr) else value.elems if isinstance(value, ConstAggregate) else ()
    return [var for part in parts for var in _inside(part)]


def _reads(instr: Instruction, address: Value, users: dict[Value, list[Instruction]]) -> bool:
    """An instruction does nothing with an address but read from it, or from behind it."""
    if instr.opcode == "load":
        return True
    if instr.opcode != "getelementptr" or instr.operands[0] is not address:
        return False
    return all(_reads(user, instr, users) for user in users.get(instr, ()))

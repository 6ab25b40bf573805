"""Library functions that get a body, so that they are differentiated like any other code.

    qsort(base, n, size, compare)   a stable merge sort (glibc sorts so too), one copy per call: its element size and
                                    comparison are known in most programs, and so is what it moves
    bsearch(key, base, n, size, compare)    the same for a search
    &sin, &exp, ...                 a function that only calls the one whose address is taken, which has a rule
                                    (of the tables, or of the user)
"""

from __future__ import annotations

from irgrad.engine.analyses.memory.call_effects import COMPARES
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.model import (
    Block,
    CallInfo,
    ConstAggregate,
    Constant,
    ConstExpr,
    ConstInt,
    Function,
    GlobalAlias,
    Instruction,
    Module,
    Value,
)

__all__ = ["adopt", "expand_library"]

_QSORT = """
declare noalias ptr @malloc(i64)
declare void @free(ptr captures(none))
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1)
{declared}
define internal void @{name}(ptr %base, i64 %n, i64 %bytes, ptr %compare) {{
entry:
  %total = mul i64 %n, {size}
  %two = icmp ugt i64 %n, 1
  br i1 %two, label %start, label %out
start:
  %spare = call ptr @malloc(i64 %total)
  br label %pass
pass:
  %width = phi i64 [ 1, %start ], [ %double, %merged ]
  br label %pair
pair:
  %low = phi i64 [ 0, %pass ], [ %high, %paired ]
  %mid0 = add i64 %low, %width
  %mid = call i64 @llvm.umin.i64(i64 %mid0, i64 %n)
  %high0 = add i64 %mid, %width
  %high = call i64 @llvm.umin.i64(i64 %high0, i64 %n)
  br label %take
take:
  %k = phi i64 [ %low, %pair ], [ %k1, %taken ]
  %i = phi i64 [ %low, %pair ], [ %i1, %taken ]
  %j = phi i64 [ %mid, %pair ], [ %j1, %taken ]
  %left = icmp ult i64 %i, %mid
  %right = icmp ult i64 %j, %high
  %both = and i1 %left, %right
  br i1 %both, label %ask, label %taken
ask:
  %ia = mul i64 %i, {size}
  %pa = getelementptr i8, ptr %base, i64 %ia
  %ja = mul i64 %j, {size}
  %pb = getelementptr i8, ptr %base, i64 %ja
  %order = call i32 {compare}(ptr %pa, ptr %pb) {compares}
  %first = icmp sle i32 %order, 0
  br label %taken
taken:
  %is = phi i1 [ %left, %take ], [ %first, %ask ]
  %from = select i1 %is, i64 %i, i64 %j
  %froma = mul i64 %from, {size}
  %fromp = getelementptr i8, ptr %base, i64 %froma
  %ka = mul i64 %k, {size}
  %kp = getelementptr i8, ptr %spare, i64 %ka
  call void @llvm.memcpy.p0.p0.i64(ptr %kp, ptr %fromp, i64 {size}, i1 false)
  %i2 = add i64 %i, 1
  %j2 = add i64 %j, 1
  %i1 = select i1 %is, i64 %i2, i64 %i
  %j1 = select i1 %is, i64 %j, i64 %j2
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, %high
  br i1 %more, label %take, label %paired
paired:
  %again = icmp ult i64 %high, %n
  br i1 %again, label %pair, label %merged
merged:
  call void @llvm.memcpy.p0.p0.i64(ptr %base, ptr %spare, i64 %total, i1 false)
  %double = shl i64 %width, 1
  %unsorted = icmp ult i64 %double, %n
  br i1 %unsorted, label %pass, label %done
done:
  call void @free(ptr %spare)
  br label %out
out:
  ret void
}}
declare i64 @llvm.umin.i64(i64, i64)
"""

_BSEARCH = """
{declared}
define internal ptr @{name}(ptr %key, ptr %base, i64 %n, i64 %bytes, ptr %compare) {{
entry:
  br label %next
next:
  %low = phi i64 [ 0, %entry ], [ %low1, %moved ]
  %high = phi i64 [ %n, %entry ], [ %high1, %moved ]
  %left = icmp ult i64 %low, %high
  br i1 %left, label %ask, label %none
ask:
  %sum = add i64 %low, %high
  %mid = lshr i64 %sum, 1
  %offset = mul i64 %mid, {size}
  %p = getelementptr i8, ptr %base, i64 %offset
  %order = call i32 {compare}(ptr %key, ptr %p) {compares}
  %same = icmp eq i32 %order, 0
  br i1 %same, label %found, label %moved
moved:
  %below = icmp slt i32 %order, 0
  %mid1 = add i64 %mid, 1
  %low1 = select i1 %below, i64 %low, i64 %mid1
  %high1 = select i1 %below, i64 %mid, i64 %high
  br label %next
found:
  br label %out
none:
  br label %out
out:
  %result = phi ptr [ %p, %found ], [ null, %none ]
  ret ptr %result
}}
"""
_WITH_CALLBACK = {"qsort": (_QSORT, 4), "bsearch": (_BSEARCH, 5)}  # text, number of arguments


def expand_library(module: Module) -> None:
    """Give bodies to the library functions that the module calls with callbacks or takes the address of."""
    for fn in list(module.functions.values()):
        for instr in list(fn.instructions()) if fn.blocks else ():
            if instr.opcode == "call" and instr.callee_name in _WITH_CALLBACK:
                text, count = _WITH_CALLBACK[instr.callee_name]
                if len(instr.args) == count:
                    instr.operands[-1] = _expanded(module, instr, text)
    _wrap_addressed(module)


def adopt(module: Module, text: str) -> None:
    """Add the functions of `text` to the module; what the module already has under a name stays."""
    from irgrad.engine.ir.text.reader import read

    replaced: dict[Value, Value] = {}
    added = []
    for name, fn in read(text).functions.items():
        if name in module.functions:
            replaced[fn] = module.functions[name]
        else:
            module.functions[name] = fn
            added.append(fn)
    for fn in added:
        for instr in fn.instructions():
            instr.operands = [replaced.get(o, o) for o in instr.operands]


def _expanded(module: Module, call: Instruction, template: str) -> Function:
    """The function for one call: the last two arguments are the size of an element and the comparison."""
    size, compare = call.args[-2], call.args[-1]
    number = 0
    while (name := f"irgrad.{call.callee_name}.{number}") in module.functions:
        number += 1
    known = isinstance(compare, Function)
    text = template.format(
        name=name,
        size=size.value if isinstance(size, ConstInt) else "%bytes",
        compare=f'@"{compare.name}"' if known else "%compare",
        compares=COMPARES,
        declared=f'declare i32 @"{compare.name}"(ptr, ptr)' if known else "",
    )
    adopt(module, text)
    return module.functions[name]


# -- addresses of functions without a body -------------------------------------------------------------------------


def _wrap_addressed(module: Module) -> None:
    """Use a function with a body wherever the address of a maths function is taken."""
    made: dict[Value, Function] = {}

    def changed(value: Value) -> Value:
        if isinstance(value, Function):
            wanted = _is_maths(value) or _is_ruled(module, value)
            return made.setdefault(value, _wrapper(module, value)) if wanted else value
        if isinstance(value, ConstAggregate):
            elems = [changed(e) for e in value.elems]
            same = all(a is b for a, b in zip(elems, value.elems, strict=True))
            return value if same else ConstAggregate(value.type, elems)  # type: ignore[arg-type]
        if isinstance(value, ConstExpr):
            operands = [changed(o) for o in value.operands]
            if all(a is b for a, b in zip(operands, value.operands, strict=True)):
                return value
            return ConstExpr(value.opcode, value.type, operands, value.flags, value.elem)
        return value

    for var in module.globals.values():
        if not isinstance(var, GlobalAlias) and var.init is not None:
            new = changed(var.init)
            assert isinstance(new, Constant)
            var.init = new
    for fn in list(module.functions.values()):
        if fn in made.values() or not fn.blocks:
            continue
        for instr in fn.instructions():
            last = len(instr.operands) - 1 if instr.is_call else len(instr.operands)
            for i, operand in enumerate(instr.operands[:last]):
                if isinstance(operand, Function | ConstAggregate | ConstExpr):
                    instr.operands[i] = changed(operand)


def _is_maths(fn: Function) -> bool:
    """A declared function with a rule, called with floats."""
    if not fn.is_declaration or fn.ftype.vararg or fn.name is None or fn.name.startswith("llvm."):
        return False
    if not any(t.is_fp for t in fn.ftype.params):
        return False
    from irgrad.rules import lookup

    return lookup.find(fn.name) is not None


def _is_ruled(module: Module, fn: Function) -> bool:
    """A function whose body a rule hides: the rule is looked up where it is called by name."""
    return module.rules is not None and fn in module.rules.hidden and not fn.ftype.vararg


def _wrapper(module: Module, fn: Function) -> Function:
    name = f"irgrad.calling.{fn.name}"
    if name in module.functions:
        return module.functions[name]
    wrapper = Function(name, fn.ftype)
    wrapper.head = "internal"
    wrapper.tail = "nounwind"
    wrapper.ret_attrs = fn.ret_attrs
    for arg, same in zip(wrapper.args, fn.args, strict=True):
        arg.attrs = same.attrs
    block = Block("entry")
    block.function = wrapper
    wrapper.blocks.append(block)
    b = Builder(block)
    result = b.call(fn, list(wrapper.args))
    result.call = CallInfo(fn.ftype, ret_attrs=fn.ret_attrs, arg_attrs=[arg.attrs for arg in fn.args])
    if fn.ftype.ret is ty.VOID:
        b.ret()
    else:
        b.ret(result)
    module.functions[name] = wrapper
    return wrapper

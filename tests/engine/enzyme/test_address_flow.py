"""Where an address goes: through arithmetic, choices, memory and calls."""

from __future__ import annotations

import pytest

from irgrad.engine.enzyme.address_flow import AddressFlow, accessed, address, moves_memory
from irgrad.engine.ir.text.reader import read
from irgrad.rules.errors import Unsupported

HEAD = """declare ptr @give()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @free(ptr)
define void @own(ptr %p) {
  ret void
}
"""


def _flow(body: str, *, whole: bool = True) -> AddressFlow:
    text = f"{HEAD}define void @f(ptr %x, ptr %y, i1 %c, i64 %i) {{\n  %a = call ptr @give()\n{body}\n  ret void\n}}\n"
    module = read(text)
    flow = AddressFlow(module, module.functions["f"], whole=whole)
    return flow.follow(lambda instr: instr.is_call and instr.callee_name == "give", "skipped.")


def test_accesses_through_arithmetic_and_choices() -> None:
    flow = _flow("  %p = getelementptr double, ptr %a, i64 %i\n  %q = select i1 %c, ptr %p, ptr %a\n"
                 "  %v = load double, ptr %q\n  store double %v, ptr %p\n  store double 1.0, ptr %x")  # fmt: skip
    assert [access.opcode for access in flow.accesses] == ["load", "store"]
    assert all(flow.origins[address(access)] is not None for access in flow.accesses)
    assert {str(accessed(access)) for access in flow.accesses} == {"double"}
    load = next(access for access in flow.accesses if access.opcode == "load")
    origin = flow.origins[address(load)]
    assert origin is not None and flow.stays(load, origin) and not flow.kept


def test_a_choice_of_ordinary_memory_is_any() -> None:
    body = "  %q = select i1 %c, ptr %x, ptr %a\n  %v = load double, ptr %q"
    assert list(_flow(body).origins.values())[-1] is None
    with pytest.raises(Unsupported, match="cannot be followed"):
        _flow(body, whole=False)


def test_what_is_kept_makes_each_loaded_pointer_any() -> None:
    flow = _flow("  store ptr %a, ptr %x\n  %p = load ptr, ptr %y\n"
                 "  %v = load double, ptr %p\n  call void @free(ptr %p)")  # fmt: skip
    assert flow.kept and [str(accessed(access)) for access in flow.accesses] == ["double"]
    with pytest.raises(Unsupported, match="cannot be followed"):
        _flow("  store ptr %a, ptr %x", whole=False)


def test_calls() -> None:
    flow = _flow("  call void @own(ptr %a)\n  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 8, i1 false)")
    assert [moves_memory(call) for call in flow.calls] == [False, True]
    with pytest.raises(Unsupported, match="cannot be followed"):
        _flow("  call void @free(ptr %a)")

"""Split forward mode of a root: a program runs the function, which keeps a log, and its tangents later."""

from __future__ import annotations

from irgrad.engine.analyses.control.cache import get
from irgrad.engine.analyses.control.cfg import Cfg
from irgrad.engine.differentiate.forward.replay import (
    RESTORED,
    RUNTIME,
    SAVED,
    TANGENT,
    Tangents,
    plan_of,
    record,
    refuse_log,
)
from irgrad.engine.differentiate.layout.shadow_types import shadow_type
from irgrad.engine.differentiate.roots import Derived, drain, forget_globals, root_function
from irgrad.engine.differentiate.shared.conventions import Abi
from irgrad.engine.differentiate.shared.unit import Unit
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import Function, Module
from irgrad.engine.ir.quoting import quoted_name
from irgrad.engine.ir.text.reader import read

__all__ = ["derive_split_forward"]


def derive_split_forward(unit: Unit, abi: Abi) -> Derived:
    """Add both halves to the module. `request.log` is False for a second half without a log, which a function may have
    that writes over none of its inputs."""
    plan = plan_of(unit)
    if not unit.request.log:
        refuse_log(unit, plan)

    def emit(unit: Unit, fn: Function, target: Function, abi: Abi) -> None:
        Tangents(unit, fn, target, abi, plan).generate(get(Cfg, fn).rpo)

    unit.emit_with(forward=emit)
    module, fname, name = unit.module, unit.request.function, unit.request.name(abi.shadow)
    _add(module, RUNTIME)
    shadow = str(shadow_type(ty.PTR, unit.width))
    params = [kind for s in abi.shadow for kind in ((ty.PTR, shadow_type(ty.PTR, unit.width)) if s else (ty.PTR,))]
    body = root_function(module, f"{name}.body", params)
    emit(unit, unit.root, body, abi)
    drain(unit)
    forget_globals(unit, body)
    record(unit, plan)
    every = [f"{shadow if i else 'ptr'} %{'as'[i]}{n}" for n, s in enumerate(abi.shadow) for i in range(1 + s)]
    values = ", ".join(f"ptr %a{n}" for n in range(len(abi.shadow)))
    _add(module, f"""
declare void @{quoted_name(fname)}({', '.join('ptr' for _ in abi.shadow)})
declare void @{quoted_name(body.name or '')}({', '.join(map(str, params))})
declare ptr @irgrad.log.chunk(i64)
declare void @irgrad.log.enter(ptr)
@irgrad.log.at = external thread_local global ptr
@irgrad.log.end = external thread_local global ptr
@irgrad.log.arena = external thread_local global ptr
define {{ ptr }} @{quoted_name(name)}({', '.join([*every, 'ptr %arena'])}) nounwind {{
{SAVED}  store ptr %arena, ptr @irgrad.log.arena, align 8
  %chunk = call ptr @irgrad.log.chunk(i64 0)
  call void @irgrad.log.enter(ptr %chunk)
  call void @{quoted_name(fname)}({values})
{RESTORED}  %out = insertvalue {{ ptr }} poison, ptr %chunk, 0
  ret {{ ptr }} %out
}}
define void @{quoted_name(name + TANGENT)}({', '.join([*every, 'ptr %log'])}) nounwind {{
{SAVED}  %none = icmp eq ptr %log, null
  br i1 %none, label %go, label %begin
begin:
  call void @irgrad.log.enter(ptr %log)
  br label %go
go:
  call void @{quoted_name(body.name or '')}({', '.join(every)})
{RESTORED}  ret void
}}
""")
    return Derived(name, tuple(sorted(unit.activity.scratch)), unit.facts)


def _add(module: Module, text: str) -> None:
    """Add what a text defines and the module lacks."""
    found = read(text)
    for var in found.globals.values():
        if var.name not in module.globals:
            module.globals[var.name or ""] = var
    for fn in found.functions.values():
        if fn.name not in module.functions:
            module.functions[fn.name or ""] = fn

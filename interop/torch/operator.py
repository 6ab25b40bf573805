"""The operator `irgrad::call`, which stands for a program in graphs: `torch.compile`, `torch.export`, `make_fx`.

It takes the name of a plan (see `Plan.name`) and the operands. Its gradient is made of calls of itself.
"""

# pyright: reportMissingImports=false, reportPrivateImportUsage=false, reportAttributeAccessIssue=false
# pyright: reportIncompatibleMethodOverride=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import torch

from irgrad.interop.torch.function import NAMED, Plan, gradients_of
from irgrad.rules.errors import IRGradError, ShapeError, Unsupported

__all__: list[str] = []

_IN_GRAPHS: dict[str, Plan] = {}
"""Plans that a graph may name: they live as long as the process."""

_LIBRARY = torch.library.Library("irgrad", "DEF")
_LIBRARY.define("call(str program, Tensor[] operands) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag,))


def _plan(name: str) -> Plan:
    plan = _IN_GRAPHS.get(name) or NAMED.get(name)
    if plan is None:
        raise IRGradError(
            f"no program has the name `{name}` in this process",
            where="`torch.ops.irgrad.call`",
            because="a graph names programs of kernels, and this kernel has not been called here",
            fix="load the kernel and call the function that was compiled once, without the graph",
        )
    return plan


def _call(program: str, operands: list[torch.Tensor]) -> list[torch.Tensor]:
    plan = _plan(program)
    for value in operands:
        if not value.is_cpu:
            raise Unsupported(
                f"an argument of `{plan.spec.kernel.name}` is on the device {value.device}",
                where=f"`{plan.spec.kernel.signature}`",
                because="a kernel that is called with tensors runs on the CPU",
                fix="x.cpu(); for NVIDIA's GPUs call the kernel from JAX",
            )
    wanted = [(shape, kind.name) for shape, kind in plan.native.operands]
    axes = len(plan.batch)
    for value, (shape, kind) in zip(operands, wanted, strict=True):
        front = all(n in (1, size) for n, size in zip(value.shape, shape[:axes], strict=False))
        if not front or tuple(value.shape[axes:]) != shape[axes:] or value.dtype is not getattr(torch, kind):
            raise ShapeError(f"an operand of `irgrad::call` is a {tuple(value.shape)} of {value.dtype}", which=program,
                             because=f"wanted a {shape} of {kind}", fix="call the kernel, it makes the operands")
    return list(plan.compute(operands))


def _fake(program: str, operands: list[torch.Tensor]) -> list[torch.Tensor]:
    plan = _plan(program)
    _IN_GRAPHS[program] = plan
    device = operands[0].device if operands else None
    return [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in plan.made]


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.plan = _plan(inputs[0])
    ctx.save_for_backward(*inputs[1])
    ctx.needed = [x.requires_grad for x in inputs[1]]


def _backward(ctx: Any, cotangents: Any) -> Any:
    return None, gradients_of(ctx.plan, ctx.saved_tensors, ctx.needed, cotangents)


_LIBRARY.impl("call", _call, "CompositeExplicitAutograd")
torch.library.register_fake("irgrad::call", _fake, lib=_LIBRARY)
torch.library.register_autograd("irgrad::call", _backward, setup_context=_setup, lib=_LIBRARY)

"""Gradients as kernels of a device: PTX with a header that tells how to launch it.

For `f64 energy(f64[n,3] pos, f64[n] mass, i64 n)` and wrt `pos` it is

    __global__ void energy_grad(const double *pos, double *pos_grad, const double *mass, int64_t n, double *value,
                                int64_t samples, void *tape, int64_t tape_bytes);

Each array has a row for each sample, but those that all samples share. It ADDS each sample's gradient to its row of
`pos_grad`. Names in shapes that are no parameters of the function are parameters of the kernel, behind the others.
"""

from __future__ import annotations

from collections.abc import Collection

from irgrad.engine.functions.gradients import Gradient
from irgrad.engine.grids.grid import open_grid
from irgrad.engine.grids.grid_text import GridParameter, GridSlot
from irgrad.engine.grids.threads_of_loops import for_device
from irgrad.engine.signature.dtypes import DTYPES
from irgrad.engine.signature.slots import RETURN, Slot
from irgrad.rules.errors import SignatureError

__all__ = ["ONE", "arranged", "gradient_grid", "gradient_header"]

ONE = {"f64": 0x3FF0000000000000, "f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


def gradient_grid(gradient: Gradient, name: str, shared: Collection[str] = (), *, device: bool = True) -> str:
    """The module of the kernel `name`. shared: arguments that all samples share; integers by value always are.

    device: False for the same as a function of the host, which runs one thread

    Raises SignatureError for a name that is no argument, Unsupported for what a device cannot run.
    """
    gradient = gradient.valued(for_device(gradient.kernel))
    parameters, slots = arranged(gradient, shared)
    return open_grid(gradient.program, name, parameters, slots, device=device)


def arranged(gradient: Gradient, shared: Collection[str]) -> tuple[list[GridParameter], list[GridSlot]]:
    """The parameters of the kernel, and how a thread has the pointers of the program (that with the value)."""
    signature = gradient.kernel.signature
    names = [p.name for p in signature.parameters]
    for name in shared:
        if name not in names:
            raise SignatureError(f"no argument is named `{name}`", because=f"they are {', '.join(names)}",
                                 fix="name one of them")  # fmt: skip
        if name in {names[i] for i in gradient.positions}:
            raise SignatureError(f"`{name}` is differentiated, and cannot be shared",
                                 because="its gradient has a row for each sample",
                                 fix="leave it out of the shared ones, and add the rows up")  # fmt: skip
    parameters: list[GridParameter] = []
    slots = [_slot(gradient, slot, shared, parameters) for slot in gradient.program.slots]
    said = {p.name for p in parameters if p.by_value}
    sizes = {name for slot in slots for extent in slot.shape for name in extent.names()} - said
    parameters += [GridParameter(name, DTYPES["i64"], by_value=True) for name in sorted(sizes)]
    return parameters, slots


def _slot(gradient: Gradient, slot: Slot, shared: Collection[str], parameters: list[GridParameter]) -> GridSlot:
    p, dtype, shape = slot.parameter, slot.dtype, tuple(slot.parameter.shape or ())
    if slot.role == "scratch":
        return GridSlot(slot.name, dtype, "zero", shape)
    if slot.index == gradient.target and slot.steps:
        return GridSlot(slot.name, dtype, "bits", bits=ONE[dtype.name])
    name = "value" if p.name == RETURN else f"{p.name}_grad" if slot.steps else p.name
    whole = slot.role == "in" and (p.name in shared or not (p.is_array or dtype.is_float))
    by_value = whole and not p.is_array
    parameters.append(GridParameter(name, dtype, by_value))
    if slot.role == "in":
        return GridSlot(name, dtype, "in place", shape, name, () if by_value else (not whole,))
    return GridSlot(name, dtype, "zero" if slot.role == "out" else "keep", shape, target=name)


def gradient_header(
    gradient: Gradient, name: str, architecture: str, shared: Collection[str] = (), tape: str = ""
) -> str:
    """What a launch has to know, as a comment and a prototype. tape: the bytes of a sample's tape, as a formula."""
    gradient = gradient.valued()
    declared, slots = arranged(gradient, shared)
    held = {slot.target or slot.source: slot for slot in slots}
    rows, parameters = [], []
    for p in declared:
        if p.by_value:
            parameters.append(f"{p.dtype.c_name} {p.name}")
            continue
        slot = held[p.name]
        parameters.append(f"{'' if slot.target else 'const '}{p.dtype.c_name} *{p.name}")
        extents = "".join(f"[{extent}]" for extent in slot.shape)
        each = slot.target or slot.axes[0]
        rows.append(f" *   {p.name}: {'[samples]' if each else 'all samples share it: '}{extents}")
    arrays = "\n".join(rows)
    return f"""/* Gradient of
 *     {gradient.kernel.signature}
 * for {architecture}, made by irgrad. One sample a thread at a time: any grid of any blocks is right.
{arrays}
 *   samples: how many; tape: memory of the device, tape_bytes for each THREAD of the launch (aligned to 16)
 *   tape_bytes: a sample needs {tape or "what `irgrad explain` says"}, each array rounded up to 16; a launch
 *     with less fails
 * It ADDS the gradient of each sample to its row. Arrays must not overlap.
 */
extern "C" __global__ void {name}({', '.join(parameters)},
    int64_t samples, void *tape, int64_t tape_bytes);
"""

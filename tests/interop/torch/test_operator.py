"""Kernels in graphs: torch.compile, make_fx, torch.export, and the operator itself."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings

import pytest
from torch_kernels import ORACLES, arguments, kernel, same, torch

import irgrad
from irgrad.interop.torch.call import _Caller

NAMES = tuple(ORACLES)
BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.long)]


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()


def _plan(name):
    """The operator's name of a call, and its operands."""
    args = arguments(name)
    caller = kernel(name).adapters.setdefault("torch", _Caller(kernel(name)))
    caller(args)
    (plan,) = {p for key, p in caller._known.items() if all(x.shape in key for x in args)}
    return plan.name, list(args)


@pytest.mark.parametrize("name", NAMES)
def test_opcheck(name):
    program, operands = _plan(name)
    grown = [x.clone().requires_grad_() for x in operands]
    for rows in (operands, grown):
        torch.library.opcheck(torch.ops.irgrad.call.default, (program, rows))


def test_the_operator_is_differentiable_by_itself():
    program, operands = _plan("energy")
    pos = operands[0].requires_grad_()
    (out,) = torch.ops.irgrad.call(program, [pos, operands[1]])
    (gradient,) = torch.autograd.grad(out, pos, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), pos)
    want = ORACLES["energy"](pos, operands[1])
    (first,) = torch.autograd.grad(want, pos, create_graph=True)
    same([gradient, second], [first, torch.autograd.grad(first.square().sum(), pos)[0]])


def test_a_name_that_nobody_knows():
    with pytest.raises(irgrad.IRGradError, match=r"no program has the name `nothing\.0`"):
        torch.ops.irgrad.call("nothing.0", [torch.ones(1)])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_compile(name, backend):
    def loss(f):
        def summed(*args):
            out = f(*(x * 1.5 for x in args))
            return sum((row.sin() ** 2).sum() for row in (out if isinstance(out, tuple) else (out,)))

        return summed

    ours = tuple(x.requires_grad_() for x in arguments(name))
    theirs = tuple(x.requires_grad_() for x in arguments(name))
    compiled = torch.compile(loss(kernel(name)), fullgraph=True, backend=backend)
    got, want = compiled(*ours), loss(ORACLES[name])(*theirs)
    same(got, want)
    got.backward()
    want.backward()
    same([x.grad for x in ours], [x.grad for x in theirs])
    with torch.no_grad():
        same(compiled(*ours), want.detach())


@pytest.mark.parametrize("backend", BACKENDS)
def test_compile_of_transforms(backend):
    pos, mass = arguments("energy")
    energy = kernel("energy")
    many = torch.stack([pos, 2 * pos, 3 * pos])
    for make in (lambda f: torch.func.grad(f), lambda f: torch.func.vmap(torch.func.grad(f), (0, None)),
                 lambda f: torch.func.jacfwd(f, 1)):  # fmt: skip
        first = many if "vmap" in make.__code__.co_names else pos
        compiled = torch.compile(lambda p, m, make=make: make(energy)(p, m) + 0, fullgraph=True, backend=backend)
        same(compiled(first, mass), make(ORACLES["energy"])(first, mass))


def test_compile_with_shapes_names_numbers_and_trees():
    pos, mass = arguments("energy")
    energy, chain, power = kernel("energy"), kernel("chain"), kernel("power")
    compiled = torch.compile(lambda p, m: energy(mass=m, pos=p), fullgraph=True, backend="aot_eager")
    for n in (4, 3, 2, 4):
        same(compiled(pos[:n], mass[:n]), ORACLES["energy"](pos[:n], mass[:n]))
    _, x, z = arguments("chain")
    compiled = torch.compile(lambda x: chain(0.25, x, z)[0], fullgraph=True, backend="aot_eager")
    same(compiled(x), torch.sin(0.25 * x) * z)
    compiled = torch.compile(lambda s, x: chain(s, x, z)[0], fullgraph=True, backend="aot_eager")
    for factor in (0.5, 0.7, 0.9):
        same(compiled(factor, x), torch.sin(factor * x) * z)
    base = torch.tensor(1.5, dtype=torch.float64)
    compiled = torch.compile(lambda v, k: power(v, k), fullgraph=True, backend="aot_eager")
    for k in (2, 3, 4):
        same(compiled(base, k), base**k)
    tree = kernel("chain").tree({"x": "x"}, {"z": "z"}, returns={"y": "y", "z": "z"}, fixed={"a": 0.5})
    compiled = torch.compile(lambda x: tree({"x": x}, {"z": x})["y"] * 1, fullgraph=True, backend="aot_eager")
    same(compiled(x), torch.sin(0.5 * x) * x)


@pytest.mark.long
def test_the_first_call_of_a_kernel_may_be_compiled():
    """In a process where nothing has met a tensor yet, and torch was imported after the kernel was made."""
    code = """
import irgrad
k = irgrad.load("double f(double x) { return x * x * x; }").kernel("f")
import torch
x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
torch.compile(lambda v: k(v) + 1, fullgraph=True, backend="aot_eager")(x).backward()
assert x.grad == 12
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_compiled_functions_tell_kernels_apart():
    """Kernels of the same content, and one that is gone."""
    lib = irgrad.load("double f(double x) { return x * x; }\ndouble g(double x) { return 3 * x; }")
    one, same_again, other = lib.kernel("f"), lib.kernel("f"), lib.kernel("g")
    x = torch.tensor(2.0, dtype=torch.float64)
    compiled = torch.compile(lambda k, v: k(v) + 1, fullgraph=True, backend="eager")
    assert [compiled(k, x).item() for k in (same_again, one, other, one)] == [5, 5, 7, 5]
    del same_again
    gc.collect()
    torch.compiler.reset()
    assert compiled(one, x) == 5


def test_a_status_under_compile():
    good, bad = torch.ones(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    solve = kernel("solve")
    compiled = torch.compile(lambda a, b: solve(a, b) * 2, fullgraph=True, backend="aot_eager")
    same(compiled(good, good), 2 * good)
    with pytest.raises(irgrad.KernelError, match="the matrix is singular"):
        compiled(bad, good)


def test_make_fx_and_export():
    from torch.fx.experimental.proxy_tensor import make_fx

    pos, mass = arguments("energy")
    graph = make_fx(torch.func.vmap(torch.func.grad(kernel("energy")), (0, None)))(torch.stack([pos, pos]), mass)
    assert "irgrad.call" in graph.code
    same(graph(torch.stack([pos, 2 * pos]), mass)[1], torch.func.grad(ORACLES["energy"])(2 * pos, mass))

    energy = kernel("energy")

    class Energy(torch.nn.Module):
        def forward(self, pos, mass):
            return energy(pos, mass) * 2

    exported = torch.export.export(Energy(), (pos, mass)).module()
    same(exported(2 * pos, mass), 2 * ORACLES["energy"](2 * pos, mass))


def test_under_modes_that_watch_every_operation():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    pos, mass = arguments("energy")
    want = kernel("energy")(pos, mass)
    with Watch():
        got = kernel("energy")(pos, mass)
    same(got, want)
    assert seen == ["irgrad.call.default"]


def test_torch_jit_trace_records_the_call():
    pos, mass = arguments("energy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated; what it records without the operator would be wrong
        traced = torch.jit.trace(lambda p, m: kernel("energy")(p, m) * 2, (pos, mass))
    same(traced(3 * pos, mass), 2 * ORACLES["energy"](3 * pos, mass))

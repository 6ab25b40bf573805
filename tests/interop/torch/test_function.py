"""Derivatives by autograd and torch.func, of every order, against the same function written with torch."""

from __future__ import annotations

import gc
import threading
import tracemalloc

import pytest
from torch_kernels import ORACLES, arguments, kernel, library, same, torch

import irgrad

F = torch.func
NAMES = tuple(ORACLES)
DOUBLE = ("chain", "energy")


def _sum(name):
    """A scalar function of the first arguments, and the oracle's."""

    def scalar(function):
        def summed(*args):
            out = function(*args)
            rows = out if isinstance(out, tuple) else (out,)
            return sum((row * row).sum() for row in rows)

        return summed

    return scalar(kernel(name)), scalar(ORACLES[name])


def _grown(args):
    return tuple(x.clone().requires_grad_() for x in args)


@pytest.mark.parametrize("name", NAMES)
def test_values_and_backward(name):
    ours, theirs = _grown(arguments(name)), _grown(arguments(name))
    same(kernel(name)(*ours), ORACLES[name](*theirs))
    mine, wanted = _sum(name)
    mine(*ours).backward()
    wanted(*theirs).backward()
    same([x.grad for x in ours], [x.grad for x in theirs])


def test_backward_reads_the_tape_of_the_call():
    source = """
        #include <math.h>
        void march(const double *x, double w, double *y, double *end, long n) {
            double s = w;
            for (long i = 0; i < n; i++) { s = tanh(s * x[i]) + x[i]; y[i] = s * s; }
            *end = s;
        }"""
    signature = "void(f64[n] x, f64 w, out f64[n] y, out f64 end, i64 n)"

    def gradients(tape, graph):
        march = irgrad.load(source).kernel("march", signature, tape=tape)
        x = torch.linspace(0.2, 0.9, 5, dtype=torch.float64, requires_grad=True)
        w = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
        y, end = march(x, w)
        kept = sum(row.dtype is torch.uint8 for row in y.grad_fn.saved_tensors)
        rows = [*torch.autograd.grad(end, (x, w), retain_graph=True)]
        rows += torch.autograd.grad((y.sum() + end) ** 2, (x, w), create_graph=graph, retain_graph=True)
        if graph:
            rows += torch.autograd.grad(rows[-1] + (rows[-2] ** 2).sum(), (x, w), retain_graph=True)
        rows += torch.autograd.grad(y, x, torch.eye(5, dtype=torch.float64), is_grads_batched=True)
        return kept, rows

    for graph in (False, True):
        (kept, ours), (none, theirs) = gradients("store", graph), gradients("recompute", graph)
        assert (kept, none) == (1, 0)
        same(ours, theirs)


@pytest.mark.parametrize("name", DOUBLE)
def test_gradcheck_and_gradgradcheck(name):
    given = _grown(arguments(name))
    options = {"check_batched_grad": True, "atol": 1e-4}
    assert torch.autograd.gradcheck(
        kernel(name), given, check_forward_ad=True, check_batched_forward_grad=True, **options
    )
    assert torch.autograd.gradgradcheck(
        kernel(name), given, check_fwd_over_rev=True, check_rev_over_rev=True, **options
    )


def test_gradcheck_of_floats():
    given = _grown(arguments("wave"))
    assert torch.autograd.gradcheck(kernel("wave"), given, eps=1e-2, atol=2e-2, rtol=2e-2, check_forward_ad=True)


@pytest.mark.parametrize("name", NAMES)
def test_transforms(name):
    args = arguments(name)
    every = tuple(range(len(args)))
    mine, wanted = _sum(name)
    same(F.grad(mine, argnums=every)(*args), F.grad(wanted, argnums=every)(*args))
    moves = arguments(name, seed=5)
    same(F.jvp(kernel(name), args, moves), F.jvp(ORACLES[name], args, moves))
    (out, pull), (other, push) = F.vjp(kernel(name), *args), F.vjp(ORACLES[name], *args)
    same(out, other)
    same(pull(out), push(out))
    for jacobian in (F.jacrev, F.jacfwd):
        same(jacobian(kernel(name), argnums=every)(*args), jacobian(ORACLES[name], argnums=every)(*args))
    wanted_hessian = F.hessian(wanted, argnums=every)(*args)
    for make in (F.hessian, lambda f, argnums: F.jacrev(F.jacrev(f, argnums), argnums),
                 lambda f, argnums: F.jacrev(F.jacfwd(f, argnums), argnums),
                 lambda f, argnums: F.jacfwd(F.jacfwd(f, argnums), argnums)):  # fmt: skip
        same(make(mine, argnums=every)(*args), wanted_hessian)


@pytest.mark.parametrize("name", NAMES)
def test_vmap(name):
    args = arguments(name)
    many = tuple(torch.stack([x, 2 * x, x - 1, x * x + 1, 3 - x]) for x in args)
    mine, wanted = _sum(name)
    every = tuple(range(len(args)))
    same(F.vmap(kernel(name))(*many), F.vmap(ORACLES[name])(*many))
    shared = (0, *[None] * (len(args) - 1))
    for axes in (0, shared):
        rows = many if axes == 0 else (many[0], *args[1:])
        same(F.vmap(F.grad(mine, every), axes)(*rows), F.vmap(F.grad(wanted, every), axes)(*rows))
        same(F.vmap(F.hessian(mine), axes)(*rows), F.vmap(F.hessian(wanted), axes)(*rows))

        def summed(f, rows=rows, axes=axes):
            return lambda last: F.vmap(f, axes)(*rows[:-1], last).sum()

        same(F.grad(summed(mine))(rows[-1]), F.grad(summed(wanted))(rows[-1]))
        same(F.hessian(summed(mine))(rows[-1]), F.hessian(summed(wanted))(rows[-1]))


def test_vmap_of_vmap_with_axes_anywhere():
    pos, mass = arguments("energy")
    grid = torch.stack([torch.stack([pos * (i + j + 1) for i in range(3)], -1) for j in range(2)])  # [2, n, 3, 3]
    weights = torch.stack([mass, 2 * mass])

    def twice(f):
        return F.vmap(F.vmap(f, (2, None), out_dims=1), (0, 0))

    same(twice(F.grad(kernel("energy")))(grid, weights), twice(F.grad(ORACLES["energy"]))(grid, weights))
    same(twice(F.grad(kernel("energy"), 1))(grid, weights), twice(F.grad(ORACLES["energy"], 1))(grid, weights))
    same(twice(F.jacfwd(kernel("energy"), 1))(grid, weights), twice(F.jacfwd(ORACLES["energy"], 1))(grid, weights))


def test_mixed_modes_of_third_order():
    args = arguments("chain")
    mine, wanted = _sum("chain")
    for f, g in [(F.jacfwd(F.jacrev(F.jacfwd(mine))), F.jacfwd(F.jacrev(F.jacfwd(wanted)))),
                 (F.jacrev(F.hessian(mine, 1), 2), F.jacrev(F.hessian(wanted, 1), 2))]:  # fmt: skip
        same(f(*args), g(*args))


def test_closures_and_what_does_not_need_a_gradient():
    pos, mass = arguments("energy")
    pos.requires_grad_()
    same(F.grad(lambda m: kernel("energy")(pos, m))(mass), F.grad(lambda m: ORACLES["energy"](pos, m))(mass))
    out = kernel("energy")(pos, mass)
    assert out.requires_grad and torch.autograd.grad(out, pos)[0].shape == pos.shape
    assert not kernel("energy")(pos.detach(), mass).requires_grad
    with torch.no_grad():
        assert not kernel("energy")(pos, mass).requires_grad
    with torch.inference_mode():
        same(kernel("energy")(pos, mass), out.detach())


def test_forward_mode():
    pos, mass = arguments("energy")
    move = torch.ones_like(pos)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(pos, move)
        got = torch.autograd.forward_ad.unpack_dual(kernel("energy")(dual, mass))
        want = torch.autograd.forward_ad.unpack_dual(ORACLES["energy"](dual, mass))
        same([got.primal, got.tangent], [want.primal, want.tangent])
        y, z = kernel("chain")(torch.tensor(0.3, dtype=torch.float64), mass, mass)  # nothing moves
        assert torch.autograd.forward_ad.unpack_dual(y).tangent is None and z.shape == mass.shape


@pytest.mark.parametrize("vectorize", [False, True])
def test_autograd_functional(vectorize):
    A = torch.autograd.functional
    args = arguments("chain")
    same(
        A.jacobian(kernel("chain"), args, vectorize=vectorize), A.jacobian(ORACLES["chain"], args, vectorize=vectorize)
    )
    pos, mass = arguments("energy")
    f, g = (lambda p: kernel("energy")(p, mass)), (lambda p: ORACLES["energy"](p, mass))
    same(A.hessian(f, pos, vectorize=vectorize), A.hessian(g, pos, vectorize=vectorize))
    if vectorize:
        strategy = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
        same(A.hessian(f, pos, **strategy), A.hessian(g, pos, **strategy))
    move = torch.ones_like(pos)
    for name in ("hvp", "vhp", "jvp"):
        same(getattr(A, name)(f, pos, move), getattr(A, name)(g, pos, move))


def test_hooks_and_graphs_that_are_kept():
    pos, mass = _grown(arguments("energy"))
    seen = []
    out = kernel("energy")(pos, mass)
    out.register_hook(lambda g: seen.append(float(g)) or 3 * g)
    out.backward(retain_graph=True)
    first = pos.grad.clone()
    out.backward()
    same(pos.grad, 2 * first)
    assert seen == [1.0, 1.0]
    other = pos.detach().clone().requires_grad_()
    (3 * ORACLES["energy"](other, mass.detach())).backward()
    same(first, other.grad)


def test_checkpoint():
    from torch.utils.checkpoint import checkpoint

    pos, mass = _grown(arguments("energy"))
    for reentrant in (False, True):
        pos.grad = mass.grad = None
        checkpoint(lambda p, m: kernel("energy")(p * 2, m) ** 2, pos, mass, use_reentrant=reentrant).backward()
        want = torch.autograd.grad(ORACLES["energy"](pos * 2, mass) ** 2, (pos, mass))
        same([pos.grad, mass.grad], want)


def test_saved_tensors_that_were_changed_are_an_error():
    pos, mass = _grown(arguments("energy"))
    moved = pos * 1
    out = kernel("energy")(moved, mass)
    moved.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_tensors_that_are_not_contiguous_expanded_or_empty():
    pos, mass = arguments("energy")
    for make in (lambda: pos.t().contiguous().t(), lambda: pos.repeat(2, 1)[::2], lambda: pos[:1].expand(4, 3),
                 lambda: torch.cat([pos, pos])[2:6], lambda: pos.flip(0)):  # fmt: skip
        ours, theirs = make().clone(memory_format=torch.preserve_format), make().clone()
        a, b = make().detach(), ours
        same(kernel("energy")(a, mass), ORACLES["energy"](theirs, mass))
        a, b = a.requires_grad_(), theirs.detach().requires_grad_()
        same(torch.autograd.grad(kernel("energy")(a, mass), a), torch.autograd.grad(ORACLES["energy"](b, mass), b))
    none = torch.zeros(0, dtype=torch.float64, requires_grad=True)
    a = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    y, z = kernel("chain")(a, none, none)
    (y.sum() + z.sum()).backward()
    assert y.shape == z.shape == none.grad.shape == (0,) and a.grad == 0
    assert F.vmap(kernel("chain"), (None, 0, 0))(a, torch.zeros(3, 0).double(), torch.zeros(3, 0).double())[
        0
    ].shape == (3, 0)


def test_zeros_that_torch_has_not_written():
    x = torch._efficientzerotensor((4,), dtype=torch.float64)
    a, z = torch.tensor(0.5, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    same(kernel("chain")(a, x, z), ORACLES["chain"](a, torch.zeros(4, dtype=torch.float64), z))


def test_several_outputs_of_which_some_are_integers():
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    count, twice = kernel("positive")(x)
    assert count == 2 and count.dtype == torch.int64 and not count.requires_grad
    twice.sum().backward()
    same(x.grad, 4 * x.detach())
    jac = F.jacfwd(lambda v: kernel("positive")(v)[1])(x.detach())
    same(jac, torch.diag(4 * x.detach()))
    assert F.vmap(kernel("positive"))(torch.stack([x, -x]).detach())[0].tolist() == [2, 1]


def test_kernels_that_are_not_differentiated_further():
    count = library().kernel("positive", "i64(f64[n] x, i64 n, out f64[n] twice)")
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    out, _ = count(x)
    with pytest.raises(RuntimeError, match="does not require grad"):
        out.backward()


def test_a_training_loop_does_not_grow():
    target = torch.linspace(-1, 1, 6, dtype=torch.float64)
    a = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    x, z = torch.ones(6, dtype=torch.float64, requires_grad=True), torch.ones(6, dtype=torch.float64)
    best = torch.optim.Adam([a, x], lr=0.02)

    def steps(number):
        for _ in range(number):
            best.zero_grad()
            loss = ((kernel("chain")(a, x, z)[0] - target) ** 2).sum()
            loss.backward()
            best.step()
        gc.collect()
        return loss.item()

    first = steps(20)
    tracemalloc.start()
    try:
        steps(50)
        before = tracemalloc.get_traced_memory()[0]
        last = steps(1000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert last < 0.01 * first and grown < 50_000


def test_threads():
    """Each thread has a backward pass of its own; and autograd runs others on its threads."""
    args = arguments("energy", n=8)
    _, wanted = _sum("energy")
    mine, _ = _sum("energy")
    want = F.grad(wanted)(*args)
    wrong = []

    def work():
        for _ in range(50):
            pos = args[0].clone().requires_grad_()
            mine(pos, args[1]).backward()
            if not torch.allclose(pos.grad, want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_status_is_an_error_in_every_transform():
    import irgrad

    good, bad = torch.ones(3, dtype=torch.float64), torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    solve = kernel("solve")
    same(F.grad(lambda a: solve(a, good).sum())(2 * good), -good / 4)
    for call in (lambda: solve(bad, good), lambda: solve(bad.clone().requires_grad_(), good),
                 lambda: F.grad(lambda a: solve(a, good).sum())(bad),
                 lambda: F.vmap(solve, (0, None))(torch.stack([good, bad]), good)):  # fmt: skip
        with pytest.raises(irgrad.KernelError, match="the matrix is singular"):
            call()
    same(solve(good, good), good)


def test_a_thousand_steps_of_training_take_no_more_memory():
    from pathlib import Path

    pos, mass = arguments("energy")
    pos.requires_grad_()
    chosen = torch.optim.SGD([pos], lr=1e-4)

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    seen = []
    for step in range(1100):
        chosen.zero_grad()
        loss = kernel("energy")(pos, mass) + (pos**2).sum()
        loss.backward()
        chosen.step()
        if step in (99, 1099):
            seen.append((resident(), float(loss.detach())))
    assert seen[1][1] < seen[0][1] and seen[1][0] - seen[0][0] < 1 << 20

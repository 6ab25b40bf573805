"""Calls with tensors: what is taken, what is refused, and what other values may stand beside them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from torch_kernels import arguments, kernel, library, same, torch

import irgrad
from irgrad import DTypeError, ShapeError, SignatureError, Unsupported


def _tensor(*values, **options):
    return torch.tensor(values, dtype=torch.float64, **options)


def test_operands_are_used_where_they_are():
    lib = irgrad.load("""
    long where(const double *x, double *y, long n) { y[0] = x[0]; return (long)x; }
    """)
    x = torch.ones(5, dtype=torch.float64)
    address, _ = lib.kernel("where", "i64(f64[n] x, out f64[1] y, i64 n)")(x)
    assert address == x.data_ptr()


def test_results_are_tensors_like_numpys():
    pos, mass = arguments("energy")
    out = kernel("energy")(pos, mass)
    assert type(out) is torch.Tensor and out.shape == () and out.dtype == torch.float64
    np.testing.assert_allclose(out.numpy(), kernel("energy")(pos.numpy(), mass.numpy()), rtol=1e-15)
    a, x, z = arguments("chain")
    kept = z.clone()
    y, after = kernel("chain")(a, x, z)
    assert torch.equal(z, kept) and after.data_ptr() != z.data_ptr()  # inout arguments do not change
    for got, want in zip((y, after), kernel("chain")(float(a), x.numpy(), z.numpy()), strict=True):
        np.testing.assert_array_equal(got.numpy(), want)


def test_results_are_handed_on_by_dlpack():
    pos, mass = arguments("energy")
    gradient = torch.from_dlpack(irgrad.grad(kernel("energy"), wrt="pos")(pos.numpy(), mass.numpy()))
    pos.requires_grad_()
    kernel("energy")(pos, mass).backward()
    same(gradient, pos.grad)
    a, x, z = arguments("chain")
    y, _ = kernel("chain")(a, x, z)
    assert np.from_dlpack(y).__array_interface__["data"][0] == y.data_ptr()


def test_names_numbers_and_other_arrays():
    pos, mass = arguments("energy")
    want = kernel("energy")(pos, mass)
    pos.requires_grad_()
    for got in (kernel("energy")(mass=mass, pos=pos), kernel("energy")(pos, mass.numpy()),
                kernel("energy")(pos, mass.tolist()), kernel("energy")(pos, mass),
                kernel("energy")(list(pos), list(mass))):  # fmt: skip
        same(got.detach(), want)
    rows = [pos[k] * 1 for k in range(4)]
    (gradient,) = torch.autograd.grad(kernel("energy")(rows, mass), pos)
    same(gradient, torch.autograd.grad(kernel("energy")(pos, mass), pos)[0])
    x, z = _tensor(1.0, 2.0, requires_grad=True), _tensor(3.0, 4.0)
    same(kernel("chain")(0.5, x, z), kernel("chain")(_tensor(0.5)[0], x, z))
    same(kernel("chain")(np.float64(0.5), x, z), kernel("chain")(1 / 2, x, z))
    same(kernel("chain")(1, x, z), kernel("chain")(1.0, x, z))


def test_gradients_are_not_lost_in_lists_of_numbers():
    x = [torch.tensor(1.0, dtype=torch.float64, requires_grad=True), 2.0]
    lib = irgrad.load("double s(const double *x, long n) { return x[0] * x[n - 1]; }")
    out = lib.kernel("s", "f64(f64[n] x, i64 n)")(x)
    out.backward()
    assert x[0].grad == 2


def test_integers():
    x, index = _tensor(1.0, 2.0, 3.0, requires_grad=True), torch.tensor([2, 0], dtype=torch.int32)
    kernel("gather")(x, index).backward()
    assert x.grad.tolist() == [2, 0, 6]
    base = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    for k in (3, np.int32(3), torch.tensor(3, dtype=torch.int32)):
        (slope,) = torch.autograd.grad(kernel("power")(base, k), base)
        assert slope == 12
    powers = torch.func.vmap(torch.func.grad(kernel("power")), (None, 0))(
        base, torch.tensor([1, 2, 3], dtype=torch.int32)
    )
    assert powers.tolist() == [1, 4, 12]
    with pytest.raises(DTypeError, match=r"`k` has dtype torch.float64, wanted torch.int32"):
        kernel("power")(base, base)
    with pytest.raises(DTypeError, match="does not fit"):
        kernel("power")(base, 2**40)


def test_integers_that_determine_shapes():
    lib = irgrad.load("void ramp(long n, double k, double *y) { for (long i = 0; i < n; i++) y[i] = k * i; }")
    ramp = lib.kernel("ramp", "void(i64 n, f64 k, out f64[n] y)")
    k = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    assert ramp(3, k).tolist() == [0, 2, 4] and ramp(torch.tensor(4), k).tolist() == [0, 2, 4, 6]
    assert torch.func.grad(lambda v: ramp(3, v).sum())(k.detach()) == 3
    with pytest.raises(ShapeError, match="determines the shape"):
        torch.func.vmap(lambda n: ramp(n, k))(torch.tensor([1, 2]))
    with pytest.raises(DTypeError, match="wanted an integer"):
        ramp(torch.tensor(3.0), k)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda x: (x.float(), x), DTypeError, r"`x` has dtype torch.float32, wanted torch.float64.*x.to"),
        (lambda x: (x.bfloat16(), x), DTypeError, "torch.bfloat16, wanted"),
        (lambda x: (x.long(), x), DTypeError, "torch.int64, wanted torch.float64"),
        (lambda x: (x + 0j, x), DTypeError, "torch.complex128, wanted"),
        (lambda x: (x.numpy().astype("f4"), x), DTypeError, "dtype float32, wanted float64"),
        (lambda x: (x[:2], x), ShapeError, "n"),
        (lambda x: (x[:, None], x), ShapeError, "rank|shape"),
        (lambda x: (x.to_sparse(), x), Unsupported, "sparse_coo.*to_dense"),
        (lambda x: (x,), SignatureError, "`z` is missing"),
        (lambda x: (x, x, x), SignatureError, "got 4 arguments, wanted 3"),
        (lambda x: ([x, x[:2]], x), ShapeError, "`x` is no array"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make, error, says):
    a = torch.tensor(0.5, dtype=torch.float64)
    x = torch.ones(3, dtype=torch.float64)
    for known in range(2):  # also when the shapes of a good call are known
        with pytest.raises(error) as caught:
            kernel("chain")(a, *make(x))
        import re

        assert re.search(says, str(caught.value), re.S), str(caught.value)
        if not known:
            kernel("chain")(a, x, x)


def test_scalars_have_no_axes():
    with pytest.raises(ShapeError, match="wanted a scalar") as caught:
        kernel("chain")(_tensor(0.5), _tensor(1.0), _tensor(1.0))
    assert "torch.func.vmap" in caught.value.fix


def test_meta_tensors_give_shapes():
    x = torch.empty(3, dtype=torch.float64, device="meta")
    y, _ = kernel("chain")(torch.empty((), dtype=torch.float64, device="meta"), x, x)
    assert y.shape == (3,) and y.device.type == "meta"


def test_half_precision():
    lib = irgrad.load(
        "void twice(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] * x[i]; }"
    )
    twice = lib.kernel("twice", "void(f32[n] x, out f32[n] y, i64 n)")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    twice(x).sum().backward()
    assert x.grad.tolist() == [2, 4]
    with pytest.raises(DTypeError, match=r"torch\.float16"):
        twice(x.half())


def test_parameters_and_modules():
    class Chain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.tensor(0.4, dtype=torch.float64))
            self.scale = torch.nn.Buffer(torch.tensor([2.0, 3.0], dtype=torch.float64))

        def forward(self, x):
            return kernel("chain")(self.a, x, self.scale)[0]

    module = Chain()
    module(_tensor(1.0, 2.0)).sum().backward()
    x, z = _tensor(1.0, 2.0), _tensor(2.0, 3.0)
    same(module.a.grad, (torch.cos(0.4 * x) * x * z).sum())
    values = torch.func.functional_call(module, {"a": _tensor(0.7)[0]}, (x,))
    same(values, torch.sin(0.7 * x) * z)


def test_trees_and_structs():
    tree = kernel("chain").tree({"x": "x", "state": ["z"]}, returns={"y": "y", "z": "z"}, fixed={"a": 0.5})
    x = _tensor(1.0, 2.0, requires_grad=True)
    out = tree({"x": x, "state": [_tensor(3.0, 4.0)]})
    out["y"].sum().backward()
    same(x.grad, torch.cos(0.5 * x.detach()) * 0.5 * _tensor(3.0, 4.0))
    bodies = {"pos": torch.ones(2, 3, dtype=torch.float64, requires_grad=True), "mass": _tensor(2.0, 3.0),
              "kind": torch.zeros(2, dtype=torch.int32)}  # fmt: skip
    kernel("inertia")(bodies).backward()
    same(bodies["pos"].grad, torch.tensor([[4.0] * 3, [6.0] * 3], dtype=torch.float64))


def test_rules_of_the_user_apply():
    lib = irgrad.load(
        "double odd(double x); double f(double x) { return 3 * odd(x); }\ndouble odd(double x) { return x * x; }"
    )
    f = lib.kernel("f")
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.grad(f(x), x)[0] == 12
    with irgrad.rules.layer():

        @irgrad.rule("odd")
        def _(x):
            return 100 * x

        assert torch.autograd.grad(f(x), x)[0] == 600
    assert torch.autograd.grad(f(x), x)[0] == 12


def test_a_kernel_goes_when_nobody_wants_it():
    import gc
    import weakref

    made = library().kernel("power")
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    torch.func.hessian(made)(x.detach(), 3)
    gone = weakref.ref(made)
    del made
    gc.collect()
    assert gone() is None


def test_torch_is_not_imported_by_kernels():
    code = ("import irgrad, sys, numpy as np; k = irgrad.load('double f(double x) { return x; }').kernel('f'); k(1.0); "
            "irgrad.grad(k)(1.0); k(np.float64(2)); k([1][0]); assert 'torch' not in sys.modules; "
            "assert 'irgrad.interop.torch' not in sys.modules")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.long
def test_torch_alone_does_not_bring_jax():
    code = ("import irgrad, torch, sys; k = irgrad.load('double f(double x) { return x * x; }').kernel('f'); "
            "x = torch.tensor(3., dtype=torch.float64, requires_grad=True); k(x).backward(); assert x.grad == 6; "
            "assert 'jax' not in sys.modules")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_other_ways_are_refused_for_what_records():
    """Functions of NumPy would lose the record in silence."""
    pos, mass = arguments("energy")
    with pytest.raises(DTypeError, match="requires grad"):
        irgrad.grad(kernel("energy"))(pos.requires_grad_(), mass)
    scalar = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    with pytest.raises(DTypeError):
        irgrad.grad(kernel("power"))(scalar, 2)


def test_results_are_on_the_cpu_whatever_the_default_is():
    made = library().kernel("chain", "void(f64 a, f64[n] x, out f64[n] y, inout f64[n] z, i64 n)")
    a, x, z = arguments("chain")
    large = torch.ones(10_000, dtype=torch.float64)
    want = torch.sin(a * large) * large
    with torch.device("meta"):
        small, big = made(a, x, z)[0], made(a, large, large)[0]
    same(small, torch.sin(a * x) * z)
    same(big, want)

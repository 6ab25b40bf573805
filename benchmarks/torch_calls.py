"""What a call from PyTorch costs: microseconds for the function y = 2 x^2 of eight elements.

    python -m benchmarks.torch_calls        # best of 101 short rounds

In the first column the native entry alone, the call from NumPy, and with tensors: without a gradient, recorded for one,
and `backward`. In the second what torch takes for the same by its own operations.
"""

from __future__ import annotations

import sys

import torch

import irgrad
from benchmarks.calls import microseconds

SOURCE = "void f(const double *x, double *y, long n) { for (long i = 0; i < n; i++) y[i] = 2 * x[i] * x[i]; }"


def table(rounds: int) -> list[tuple[str, float, float]]:
    """Rows: what, microseconds here and by torch's own operations (0: there are none)."""
    kernel = irgrad.load(SOURCE).kernel("f", "void(f64[n] x, out f64[n] y, i64 n)")
    x = torch.ones(8, dtype=torch.float64)
    array, grown, seed = x.numpy(), x.clone().requires_grad_(), torch.ones_like(x)
    ours, theirs = kernel(grown), 2 * grown * grown

    def backward(y: torch.Tensor) -> object:
        return torch.autograd.grad(y, grown, seed, retain_graph=True)

    torch.testing.assert_close(backward(ours), backward(theirs))
    calls = [
        ("native entry", kernel.prepare(array), None),
        ("NumPy", lambda: kernel(array), lambda: 2 * array * array),
        ("tensor", lambda: kernel(x), lambda: 2 * x * x),
        ("recorded", lambda: kernel(grown), lambda: 2 * grown * grown),
        ("backward", lambda: backward(ours), lambda: backward(theirs)),
    ]
    return [
        (name, microseconds(mine, rounds, 200), microseconds(other, rounds, 200) if other else 0.0)
        for name, mine, other in calls
    ]


if __name__ == "__main__":
    for name, mine, other in table(int(sys.argv[1]) if len(sys.argv) > 1 else 101):
        print(f"{name:14}{mine:8.2f}{other:8.2f}" if other else f"{name:14}{mine:8.2f}")

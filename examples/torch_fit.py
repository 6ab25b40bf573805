"""Parameters of a C solver fitted with PyTorch: `python examples/torch_fit.py [steps]`.

A Lotka-Volterra system is integrated by RK4 in C. Its four rates are parameters of a torch module; Adam finds those
that made the data, from the gradient through all steps of the solver.
"""

from __future__ import annotations

import sys

import torch

import irgrad as ig

SOURCE = """
static void slope(const double *p, const double *u, double *d) {
    d[0] = p[0] * u[0] - p[1] * u[0] * u[1];
    d[1] = p[2] * u[0] * u[1] - p[3] * u[1];
}
void solve(const double *p, const double *start, double *path, long n, double dt) {
    double u[2] = {start[0], start[1]}, a[2], b[2], c[2], d[2], v[2];
    for (long i = 0; i < n; i++) {
        slope(p, u, a);
        for (int k = 0; k < 2; k++) v[k] = u[k] + dt / 2 * a[k];
        slope(p, v, b);
        for (int k = 0; k < 2; k++) v[k] = u[k] + dt / 2 * b[k];
        slope(p, v, c);
        for (int k = 0; k < 2; k++) v[k] = u[k] + dt * c[k];
        slope(p, v, d);
        for (int k = 0; k < 2; k++) path[2 * i + k] = u[k] += dt / 6 * (a[k] + 2 * b[k] + 2 * c[k] + d[k]);
    }
}
"""


class Model(torch.nn.Module):
    """The path of both populations for some rates."""

    def __init__(self, rates: list[float], n: int = 60, dt: float = 0.1) -> None:
        super().__init__()
        self.log_rates = torch.nn.Parameter(torch.tensor(rates, dtype=torch.float64).log())
        self.n, self.dt = n, dt
        self.solve = ig.torch.foreign(
            SOURCE, "solve", "void(f64[4] p, f64[2] start, out f64[n,2] path, i64 n, f64 dt)"
        )

    def forward(self, start: torch.Tensor) -> torch.Tensor:
        """start: [samples, 2]; returns [samples, n, 2], from one native call."""
        return torch.func.vmap(lambda u: self.solve(self.log_rates.exp(), u, self.n, self.dt))(start)


def main(steps: int = 400) -> tuple[float, float]:
    """Fit, and print the progress. Returns the first and the last loss."""
    start = torch.tensor([[1.0, 1.0], [2.0, 0.5], [1.5, 1.5]], dtype=torch.float64)
    with torch.no_grad():
        data = Model([1.1, 0.4, 0.2, 0.6])(start)
    model = Model([0.8, 0.6, 0.3, 0.8])
    best = torch.optim.Adam(model.parameters(), lr=0.03)
    losses = []
    for step in range(steps):
        best.zero_grad()
        loss = ((model(start) - data) ** 2).mean()
        loss.backward()
        best.step()
        losses.append(loss.item())
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step:4d}   loss {losses[-1]:.3e}   rates {model.log_rates.exp().tolist()}")
    return losses[0], losses[-1]


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))

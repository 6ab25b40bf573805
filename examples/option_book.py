"""A book of options with its Greeks: `python examples/option_book.py [options] [picture.png]`.

European options and knock-outs on a surface of volatilities, in Zig. The value of the whole book is one number; one
reverse sweep gives delta, rho and the vega of every node of the surface, and forward over reverse gamma and vanna. A
batch runs them at many spots side by side.
"""

from __future__ import annotations

import sys

import numpy as np

import irgrad as ig

SOURCE = """
extern fn erfc(f64) f64;
const Kind = enum(i32) { call = 0, put = 1, down_and_out = 2 };
fn cdf(x: f64) f64 { return 0.5 * erfc(-x * 0.70710678118654752440); }

const Black = struct {
    spot: f64, rate: f64, vol: f64, expiry: f64,
    fn price(b: Black, strike: f64, sign: f64) f64 {
        const spread = b.vol * @sqrt(b.expiry);
        const d1 = (@log(b.spot / strike) + (b.rate + 0.5 * b.vol * b.vol) * b.expiry) / spread;
        return sign * (b.spot * cdf(sign * d1) - strike * @exp(-b.rate * b.expiry) * cdf(sign * (d1 - spread)));
    }
    /// Merton's call that ends at the barrier, which lies below the strike: its mirror image is taken away.
    fn knockOut(b: Black, strike: f64, barrier: f64) f64 {
        if (b.spot <= barrier) return 0;
        const mirror = Black{ .spot = barrier * barrier / b.spot, .rate = b.rate, .vol = b.vol, .expiry = b.expiry };
        const power = 2 * b.rate / (b.vol * b.vol) - 1;
        return b.price(strike, 1) - @exp(power * @log(barrier / b.spot)) * mirror.price(strike, 1);
    }
};
/// The surface at expiries 1/4 ... 2 and strikes 60 % ... 140 % of 100: linear between its nodes.
fn volatility(surface: *const [4][5]f64, strike: f64, expiry: f64) f64 {
    const expiries = [4]f64{ 0.25, 0.5, 1, 2 };
    var row: usize = 0;
    while (row < 2 and expiry > expiries[row + 1]) row += 1;
    const t = @min(@max((expiry - expiries[row]) / (expiries[row + 1] - expiries[row]), 0), 1);
    const place = @min(@max((strike - 60) / 20, 0), 3.999999);
    const column: usize = @intFromFloat(place);
    const s = place - @as(f64, @floatFromInt(column));
    const below = (1 - s) * surface[row][column] + s * surface[row][column + 1];
    const above = (1 - s) * surface[row + 1][column] + s * surface[row + 1][column + 1];
    return (1 - t) * below + t * above;
}
export fn value(spot: f64, rate: f64, surface: *const [4][5]f64, strikes: [*]const f64, expiries: [*]const f64,
                amounts: [*]const f64, kinds: [*]const i32, count: usize) f64 {
    var sum: f64 = 0;
    for (strikes[0..count], expiries[0..count], amounts[0..count], kinds[0..count]) |strike, expiry, amount, kind| {
        const black = Black{ .spot = spot, .rate = rate, .vol = volatility(surface, strike, expiry), .expiry = expiry };
        sum += amount * switch (@as(Kind, @enumFromInt(kind))) {
            .call => black.price(strike, 1),
            .put => black.price(strike, -1),
            .down_and_out => black.knockOut(strike, 0.8 * strike),
        };
    }
    return sum;
}
"""
SIGNATURE = ("f64(f64 spot, f64 rate, f64[4,5] surface, f64[m] strikes, f64[m] expiries, f64[m] amounts, "
             "i32[m] kinds, i64 m)")  # fmt: skip


def main(options: int = 2000, picture: str = "") -> dict[str, np.ndarray]:
    """Price a random book at 61 spots, print the cost of 22 Greeks, draw the Greeks. Returns the Greeks by name."""
    value = ig.load(SOURCE, language="zig").kernel("value", SIGNATURE)
    rng = np.random.default_rng(0)
    book = (rng.uniform(70, 130, options), rng.uniform(0.1, 2, options), rng.normal(size=options),
            rng.integers(0, 3, options).astype(np.int32))  # fmt: skip
    rate, surface = 0.03, 0.2 + 0.06 * np.array([-1, -0.5, 0, 0.2, 0.6]) ** 2 + 0.02 * np.array([[2], [1], [0], [-0.5]])
    spots = np.linspace(70, 130, 61)

    first = ig.batch_value_and_grad(value, wrt=("spot", "rate", "surface"))
    second = ig.hvp(value, wrt=("spot", "surface"))                  # along the spot: gamma, and vanna of every node
    prices, (delta, rho, vega) = first(spots, rate, surface, *book)
    rows = [second((spot, rate, surface, *book), (1.0, 0 * surface)) for spot in spots]
    gamma, vanna = (np.array(column) for column in zip(*rows, strict=True))
    both = ig.value_and_grad(value, wrt=("spot", "rate", "surface"))
    print(ig.bench(value, 100.0, rate, surface, *book, derivative=both, seconds=0.1))
    greeks = {"spot": spots, "value": prices, "delta": delta, "gamma": gamma, "rho": rho, "vega": vega, "vanna": vanna}
    shown = ("value", "delta", "gamma", "rho", "vega")
    print("at 100: " + ", ".join(f"{name} {np.sum(greeks[name][30]):.3f}" for name in shown))
    if picture:
        draw(picture, greeks)
    return greeks


def draw(path: str, greeks: dict[str, np.ndarray]) -> None:
    """Value, delta and gamma over the spot, and the vega of every node of the surface."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5.4), layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    for axis, name in zip(axes, ("value", "delta", "gamma", "rho"), strict=False):
        axis.plot(greeks["spot"], greeks[name])
        axis.axhline(0, color="k", lw=0.5)
        axis.set(title=name, xlabel="spot")
    for axis, name in zip(axes[4:], ("vega", "vanna"), strict=True):
        nodes = greeks[name][30]
        bound = np.abs(nodes).max()
        image = axis.imshow(nodes, cmap="PuOr", vmin=-bound, vmax=bound, aspect="auto")
        axis.set(title=f"{name} of the surface, at 100", xticks=range(5), xticklabels=[60, 80, 100, 120, 140],
                 yticks=range(4), yticklabels=["1/4", "1/2", "1", "2"])  # fmt: skip
        figure.colorbar(image, ax=axis)
    figure.savefig(path, dpi=80)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000, sys.argv[2] if len(sys.argv) > 2 else "option_book.png")

"""A recurrent network whose cell is C with branches: `python examples/hm_lstm.py [steps] [picture.png]`.

A hierarchical multiscale LSTM (Chung, Ahn, Bengio, 2017) of two layers reads words without spaces, letter by letter.
Each unit of the lower layer says after each letter whether a piece of text has ended: the upper layer then updates,
else it copies its state, and the lower one begins afresh. Which of the three a cell does is a branch, and the
derivative takes the same side. The decision itself is a step whose rule is the slope of a smooth one
("straight-through").

`irgrad.broadcast` maps the cells over arrays: value and partials in one native call, the reverse pass is XLA's. The
same cells as samples of a batch in reverse mode, and in jax.numpy, are timed beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import irgrad as ig

SOURCE = """
#include <math.h>
static float sigmoid(float x) { return 1 / (1 + expf(-x)); }
float cell(float c, float f, float i, float g, float ended, float below) {
    if (ended > 0.5f) return sigmoid(i) * tanhf(g);                         /* flush: a new piece of text begins */
    if (below > 0.5f) return sigmoid(f) * c + sigmoid(i) * tanhf(g);        /* update: the layer below ended one */
    return c;                                                               /* copy */
}
float hidden(float h, float c, float o, float ended, float below) {
    return ended > 0.5f || below > 0.5f ? sigmoid(o) * tanhf(c) : h;
}
float step(float x) { return x > 0; }
float boundary(float x) { return step(x); }
"""
WORDS = "kernel tape adjoint loop sparse tangent vector branch".split()
LETTERS = sorted(set("".join(WORDS)))
UNITS, BATCH, LENGTH = 48, 32, 40
WRT = (("c", "f", "i", "g"), ("h", "c", "o"), ("x",))  # by which arguments partials are taken, of each kernel
Array = Any


def straight_through(x: Any) -> Any:
    """The slope that the step's derivative is taken to be."""
    return np.exp(-x * x)


def text(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Letters of words in random order, without spaces: one number for each."""
    words = "".join(rng.choice(WORDS, LENGTH))
    return np.array([LETTERS.index(letter) for letter in words[: LENGTH + 1]])


def parameters(rng: np.random.Generator) -> dict[str, Array]:
    """Weights of both layers: from below, from the step before, from above (lower layer only), biases."""
    n, letters = UNITS, len(LETTERS)
    sizes = {"below0": (letters, 5 * n), "before0": (n, 5 * n), "above0": (n, 5 * n), "bias0": (5 * n,),
             "below1": (n, 4 * n), "before1": (n, 4 * n), "bias1": (4 * n,), "out0": (n, letters),
             "out1": (n, letters)}  # fmt: skip
    return {name: jnp.asarray(rng.standard_normal(s) / np.sqrt(s[0]) if len(s) > 1 else np.zeros(s), jnp.float32)
            for name, s in sizes.items()}  # fmt: skip


def reader(cell: Callable[..., Array], hidden: Callable[..., Array], boundary: Callable[..., Array]) -> Any:
    """The network over these functions of arrays: (parameters, letters) -> (logits, what ended), one letter a row."""

    def advance(p: dict[str, Array], state: tuple[Array, ...], letter: Array) -> tuple[tuple[Array, ...], Any]:
        c0, h0, ended, c1, h1 = state
        seen = p["below0"][letter] + h0 @ p["before0"] + (ended * h1) @ p["above0"] + p["bias0"]
        f, i, o, g, end = jnp.split(seen, 5)
        one, none = jnp.ones(UNITS, jnp.float32), jnp.zeros(UNITS, jnp.float32)
        c0 = cell(c0, f, i, g, ended, one)
        h0 = hidden(h0, c0, o, ended, one)
        ended = boundary(end)
        f, i, o, g = jnp.split((ended * h0) @ p["below1"] + h1 @ p["before1"] + p["bias1"], 4)
        c1 = cell(c1, f, i, g, none, ended)
        h1 = hidden(h1, c1, o, none, ended)
        return (c0, h0, ended, c1, h1), (h0 @ p["out0"] + h1 @ p["out1"], ended)

    def read(p: dict[str, Array], letters: Array) -> tuple[Array, Array]:
        state = (jnp.zeros(UNITS, jnp.float32),) * 5
        return jax.lax.scan(lambda s, letter: advance(p, s, letter), state, letters)[1]  # type: ignore[no-any-return]

    return read


def loss_of(read: Any) -> Callable[[dict[str, Array], Array], Array]:
    """Mean cross entropy of the next letter, over a batch of texts."""

    def loss(p: dict[str, Array], texts: Array) -> Array:
        logits = jax.vmap(lambda letters: read(p, letters[:-1])[0])(texts)
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), texts[:, 1:, None], 2).mean()

    return loss


def ways() -> dict[str, Any]:
    """The network by each way to its derivative. The rule of `step` has to be in force."""
    lib = ig.load(SOURCE)
    kernels = [lib.kernel(name) for name in ("cell", "hidden", "boundary")]

    def boundary(x: Array) -> Array:
        smooth = jax.scipy.special.erf(x) * (np.pi**0.5 / 2)  # whose derivative is that slope
        return (x > 0).astype(x.dtype) + smooth - jax.lax.stop_gradient(smooth)

    def cell(c: Array, f: Array, i: Array, g: Array, ended: Array, below: Array) -> Array:
        new = jax.nn.sigmoid(i) * jnp.tanh(g)
        return jnp.where(ended > 0.5, new, jnp.where(below > 0.5, jax.nn.sigmoid(f) * c + new, c))

    def hidden(h: Array, c: Array, o: Array, ended: Array, below: Array) -> Array:
        return jnp.where((ended > 0.5) | (below > 0.5), jax.nn.sigmoid(o) * jnp.tanh(c), h)

    return {"broadcast": reader(*(ig.broadcast(k, wrt=w) for k, w in zip(kernels, WRT, strict=True))),
            "vmap, reverse mode": reader(*(jax.vmap(k) for k in kernels)),
            "jax.numpy": reader(cell, hidden, boundary)}  # fmt: skip


def main(steps: int = 400, picture: str = "") -> tuple[float, float]:
    """Train, time the ways, draw. Returns the first and the last loss."""
    rng = np.random.default_rng(0)
    with ig.rules.layer():
        ig.rule("step")(straight_through)
        networks = ways()
        p = parameters(rng)
        gradients = {name: jax.jit(jax.value_and_grad(loss_of(read))) for name, read in networks.items()}
        texts = jnp.asarray([text(rng) for _ in range(BATCH)])
        found = {name: g(p, texts) for name, g in gradients.items()}
        times = {name: median_time(lambda g=g: jax.block_until_ready(g(p, texts))) for name, g in gradients.items()}
        for name, (value, gradient) in found.items():
            off = max(float(jnp.abs(gradient[k] - found["jax.numpy"][1][k]).max()) for k in p)
            print(f"{name:20} loss {value:.6f}   gradient off jax.numpy's by {off:.1e}   {1e3 * times[name]:6.1f} ms")

        means, squares = (jax.tree.map(jnp.zeros_like, p) for _ in range(2))
        losses = [float(found["broadcast"][0])]
        for t in range(1, steps + 1):
            value, gradient = gradients["broadcast"](p, jnp.asarray([text(rng) for _ in range(BATCH)]))
            p, means, squares = adam(p, gradient, means, squares, t)
            losses.append(float(value))
            if t % 50 == 1:
                print(f"step {t:4d}   loss {value:.4f}", flush=True)
        letters = text(rng)
        ended = np.asarray(networks["broadcast"](p, jnp.asarray(letters))[1])
    known = np.log(len(WORDS)) / np.mean([len(word) for word in WORDS])
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} (the words themselves are unknown: {known:.3f})")
    if picture:
        draw(picture, losses, "".join(LETTERS[i] for i in letters), ended, times)
    return losses[0], losses[-1]


@jax.jit
def adam(p: Any, gradient: Any, means: Any, squares: Any, t: int) -> tuple[Any, Any, Any]:
    """A step of Adam (Kingma, Ba, 2014)."""
    means = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, means, gradient)
    squares = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, squares, gradient)
    rate = 0.01 * jnp.sqrt(1 - 0.99**t) / (1 - 0.9**t)
    return jax.tree.map(lambda w, m, s: w - rate * m / (jnp.sqrt(s) + 1e-8), p, means, squares), means, squares


def median_time(run: Callable[[], Any], runs: int = 9) -> float:
    """Seconds that a call takes."""
    times = []
    for _ in range(runs):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return float(np.median(times))


def draw(path: str, losses: list[float], letters: str, ended: Any, times: dict[str, float]) -> None:
    """The loss over steps, where pieces of text end, and what a gradient takes by each way."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), width_ratios=(3, 5, 3), layout="constrained")
    axes[0].plot(losses)
    axes[0].set(xlabel="step", ylabel="cross entropy of the next letter", title="training")
    axes[1].imshow(ended[:, np.argsort(ended.mean(0))].T, aspect="auto", cmap="Greys", interpolation="nearest")
    axes[1].set_xticks(range(len(letters)), letters, fontsize=8)
    axes[1].set(ylabel="unit of the lower layer", title="black: this unit says that a piece has ended")
    axes[2].barh(list(times), [1e3 * t for t in times.values()])
    axes[2].set(xlabel="milliseconds", title="value and gradient of a batch")
    axes[2].invert_yaxis()
    figure.savefig(path, dpi=120)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 400, sys.argv[2] if len(sys.argv) > 2 else "hm_lstm.png")

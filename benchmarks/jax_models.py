"""The kernels in JAX, as a user of JAX writes them; float64. Parameters carry the names of the benchmark data."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Array = Any


def gmm(alphas: Array, means: Array, icf: Array, x: Array, gamma: float, m: int) -> Array:
    k, d = means.shape
    n = x.shape[0]
    columns, rows = (jnp.asarray(i) for i in jnp.triu_indices(d, 1))
    diagonals = jnp.exp(icf[:, :d])
    factor = (
        jnp.zeros((k, d, d)).at[:, jnp.arange(d), jnp.arange(d)].set(diagonals).at[:, rows, columns].set(icf[:, d:])
    )
    sums = icf[:, :d].sum(axis=1)
    z = jnp.einsum("kij,nkj->nki", factor, x[:, None, :] - means[None])
    terms = alphas + sums - 0.5 * (z * z).sum(axis=-1)
    freedom = d + m + 1
    gammas = 0.25 * d * (d - 1) * math.log(math.pi) + sum(
        math.lgamma(0.5 * freedom + 0.5 * (1 - j)) for j in range(1, d + 1)
    )
    constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2.0)) - gammas
    prior = 0.5 * gamma**2 * (jnp.sum(diagonals**2) + jnp.sum(icf[:, d:] ** 2)) - m * sums.sum() - k * constant
    value = jax.nn.logsumexp(terms, axis=1).sum() - n * jax.nn.logsumexp(alphas) + prior
    return value - 0.5 * n * d * math.log(2.0 * math.pi)


def ba_one(camera: Array, point: Array, weight: Array, feature: Array) -> Array:
    r, moved = camera[:3], point - camera[3:6]
    angle = jnp.sqrt(r @ r)
    axis = r / angle
    seen = (
        moved * jnp.cos(angle)
        + jnp.cross(axis, moved) * jnp.sin(angle)
        + axis * (axis @ moved) * (1.0 - jnp.cos(angle))
    )
    at = seen[:2] / seen[2]
    radius = at @ at
    factor = 1.0 + camera[9] * radius + camera[10] * radius**2
    return weight * (at * factor * camera[6] + camera[7:9] - feature)


def ba(cameras: Array, points: Array, weights: Array, features: Array) -> Array:
    return jax.vmap(ba_one)(cameras, points, weights, features)


def lstm(weights: Array, outer: Array, start: Array, sequence: Array) -> Array:
    layers, b = weights.shape[0], sequence.shape[1]

    def step(state: Array, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        now, gold = pair
        x, rows = now * outer[0], []
        for j in range(layers):
            (w, bias), (hidden, cell) = weights[j].reshape(2, 4, b), state[j]
            forget, out = jax.nn.sigmoid(x * w[0] + bias[0]), jax.nn.sigmoid(x * w[2] + bias[2])
            ingate, change = jax.nn.sigmoid(hidden * w[1] + bias[1]), jnp.tanh(hidden * w[3] + bias[3])
            cell = cell * forget + ingate * change
            x = out * jnp.tanh(cell)
            rows.append(jnp.stack([x, cell]))
        prediction = x * outer[1] + outer[2]
        return jnp.stack(rows), gold @ (prediction - jnp.log(jnp.exp(prediction).sum() + 2.0))

    _, terms = lax.scan(step, start, (sequence[:-1], sequence[1:]))
    return -terms.sum() / ((sequence.shape[0] - 1) * b)


def hand(
    theta: Array,
    relative: Array,
    parents: Any,
    inverse_rest: Array,
    rest: Array,
    weights: Array,
    points: Array,
    nearest: Array,
) -> Array:
    """The skeleton is data of the model, so its parents are walked in Python: `parents` must be concrete."""

    def affine(rows: Array) -> Array:
        return jnp.concatenate([rows.reshape(-1, 3, 4), jnp.tile(jnp.eye(4)[3:], (rows.shape[0], 1, 1))], axis=1)

    def about(axis: int, angle: Array) -> Array:
        p, q = (axis + 1) % 3, (axis + 2) % 3
        c, s = jnp.cos(angle), jnp.sin(angle)
        return jnp.eye(4).at[p, p].set(c).at[q, q].set(c).at[p, q].set(-s).at[q, p].set(s)

    local, inverse = affine(relative), affine(inverse_rest)
    absolute: list[Array] = []
    for b, parent in enumerate(parents):
        finger, segment = divmod(b - 2, 4)
        posed = local[b]
        if b >= 2 and segment == 1:
            posed = posed @ about(0, theta[7 + 4 * finger]) @ about(2, theta[6 + 4 * finger])
        elif b >= 2 and segment > 1:
            posed = posed @ about(0, theta[6 + 4 * finger + segment])
        absolute.append(posed if parent < 0 else absolute[parent] @ posed)
    r = theta[:3]
    angle = jnp.sqrt(r @ r)
    k = r / angle
    turn = jnp.array([[0.0, -k[2], k[1]], [k[2], 0.0, -k[0]], [-k[1], k[0], 0.0]])
    rotation = jnp.cos(angle) * jnp.eye(3) + jnp.sin(angle) * turn + (1.0 - jnp.cos(angle)) * jnp.outer(k, k)
    bones = (jnp.stack(absolute) @ inverse)[:, :3]
    moved = jnp.einsum("bij,vj->vbi", bones[:, :, :3], rest) + bones[:, :, 3]
    blended = jnp.einsum("vb,vbi->vi", weights, moved @ rotation.T + theta[3:6])
    return points - blended[nearest]


def expsin(x: Array) -> Array:
    return jnp.sum(jnp.exp(x) * jnp.sin(x))


def logsumexp(x: Array) -> Array:
    return jax.nn.logsumexp(x)


def product(x: Array) -> Array:
    return jnp.prod(x)


def recurrence(a: Array, b: Array) -> Array:
    def step(h: Array, ab: tuple[Array, Array]) -> tuple[Array, Array]:
        h = ab[0] * h + ab[1]
        return h, h

    return lax.scan(step, jnp.zeros(()), (a, b))[1].sum()


def histogram(x: Array, bin: Array, bins: int) -> Array:  # noqa: A002 the name of the data
    h = jnp.zeros(bins).at[bin].add(x)
    return 0.5 * h @ h


def gather(table: Array, index: Array, w: Array) -> Array:
    return jnp.sum(w * table[index] ** 2)


def burgers(u0: Array, steps: int, dt: float, dx: float, nu: float) -> Array:
    c, d = dt / (2.0 * dx), nu * dt / dx**2

    def step(u: Array, _: None) -> tuple[Array, None]:
        left, here, right = u[:-2], u[1:-1], u[2:]
        return u.at[1:-1].set(here - c * here * (right - left) + d * (right - 2.0 * here + left)), None

    u, _ = lax.scan(step, u0, None, length=steps)
    return 0.5 * u @ u


def brusselator(u: Array, v: Array, a: float, b: float, alpha: float) -> tuple[Array, Array]:
    def laplacian(q: Array) -> Array:
        return jnp.roll(q, 1, 0) + jnp.roll(q, -1, 0) + jnp.roll(q, 1, 1) + jnp.roll(q, -1, 1) - 4.0 * q

    reaction = u * u * v
    return a + reaction - (b + 1.0) * u + alpha * laplacian(u), b * u - reaction + alpha * laplacian(v)


def _slope(y: Array, par: Array) -> Array:
    return jnp.stack([par[0] * (y[1] - y[0]), y[0] * (par[1] - y[2]) - y[1], y[0] * y[1] - par[2] * y[2]])


def rk4(y0: Array, par: Array, steps: int, dt: float) -> Array:
    def step(y: Array, _: None) -> tuple[Array, None]:
        k1 = _slope(y, par)
        k2 = _slope(y + 0.5 * dt * k1, par)
        k3 = _slope(y + 0.5 * dt * k2, par)
        k4 = _slope(y + dt * k3, par)
        return y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

    y, _ = lax.scan(step, y0, None, length=steps)
    return 0.5 * y @ y


def euler(y0: Array, par: Array, steps: int, dt: float) -> Array:
    y, _ = lax.scan(lambda y, _: (y + dt * _slope(y, par), None), y0, None, length=steps)
    return 0.5 * y @ y


def mlp(
    w1: Array, b1: Array, w2: Array, b2: Array, w3: Array, b3: Array, x: Array, y: Array
) -> Array:  # fmt: skip
    h = jnp.tanh(jnp.tanh(x @ w1.T + b1) @ w2.T + b2)
    return jnp.mean(((h @ w3.T + b3)[:, 0] - y) ** 2)


def matmul(a: Array, b: Array) -> Array:
    return 0.5 * jnp.sum((a @ b) ** 2)


def matvec(a: Array, x: Array) -> Array:
    return 0.5 * jnp.sum((a @ x) ** 2)


def nbody(pos: Array, mass: Array) -> Array:
    """All pairs at once, each counted twice; the diagonal is taken out."""
    d = pos[:, None, :] - pos[None, :, :]
    inverse = 1.0 / jnp.sqrt((d * d).sum(axis=-1) + 1e-4)
    pairs = mass[:, None] * mass[None, :] * inverse
    return -0.5 * (pairs.sum() - jnp.trace(pairs))


def kmeans(centres: Array, x: Array) -> Array:
    d = x[:, None, :] - centres[None, :, :]
    return (d * d).sum(axis=-1).min(axis=1).sum()

"""Bodies of partials written with jnp, jax.scipy and jax.grad."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import pytest

import irgrad
from irgrad.engine import grad
from irgrad.interop.jax.partials import trace_partials
from irgrad.rules import layer, rule
from irgrad.rules.errors import RuleError
from irgrad.rules.expressions.expr import ZERO
from irgrad.rules.expressions.readings import evaluate

BODIES: list[Any] = [
    lambda x: 2 / jnp.sqrt(jnp.pi) * jnp.exp(-x * x),
    lambda x: jnp.where(x > 0.5, jnp.sin(x) ** 3, jnp.tanh(-x) + x**-2),
    jax.grad(lambda x: jnp.log1p(jnp.exp(x)) * jnp.cos(x)),
    jax.grad(lambda x: jsp.erf(x) * jnp.arctan(x)),
    jax.grad(jax.nn.softplus),
    lambda x: jax.nn.sigmoid(x) + jnp.maximum(x, 0.4) + jnp.abs(x) + jnp.sign(x) + jnp.clip(x, 0.2, 0.6),
    lambda x: jnp.where((x > 0.3) & ~(x == 0.7), jnp.hypot(x, 2.0), jnp.square(x)),
    lambda x: x.astype(int) + jnp.round(x * 3) + jnp.where(x.astype(bool), 1.0, 2.0) + jnp.fmod(x, 0.4),
    lambda x: jnp.power(x, 1.5) + jnp.float_power(x, 3) + jsp.gammaln(x + 2) + jax.lax.rsqrt(x),
]


@pytest.mark.parametrize("number", range(len(BODIES)))
@pytest.mark.parametrize("x", [0.25, 0.7, 2.0])
def test_the_expression_is_the_function(number: int, x: float) -> None:
    body = BODIES[number]
    row = trace_partials(body, "f", "f", "here", takes_result=False)
    with jax.enable_x64(True):
        wanted = float(body(jnp.float64(x)))
    assert float(evaluate(row[0][0], (x,))) == pytest.approx(wanted, rel=1e-13)


def test_results_integers_and_zeros() -> None:
    row = trace_partials(lambda n, a, b, *, y: (y / a * n, 0.0), "iff", "f", "here", takes_result=True)
    assert row[0][0] is ZERO
    assert row[0][2] is ZERO
    assert evaluate(row[0][1], (3, 2.0, 1.0), (8.0,)) == pytest.approx(12.0)


def _decides(x: Any) -> Any:
    return x if jnp.sin(x) > 0 else -x


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (_decides, "decides with `if`"),
        (lambda x: jsp.digamma(x), "uses `digamma`"),
        (lambda x: jnp.sum(jnp.stack([x, x])), "single numbers"),
    ],
)
def test_messages(body: Any, message: str) -> None:
    with pytest.raises(RuleError) as caught:
        trace_partials(body, "f", "f", "here", takes_result=False)
    assert message in str(caught.value)


def test_such_a_rule_is_used_at_both_precisions(tmp_path: Any) -> None:
    source = tmp_path / "soft.c"
    source.write_text("double soft(double x) { return x; }\nfloat softf(float x) { return x; }\n")
    lib = irgrad.load(source)
    with layer():
        for name in ("soft", "softf"):

            @rule(name)
            def _(x: Any) -> Any:
                return jax.grad(jax.nn.softplus)(x)

        assert grad(lib.kernel("soft"))(0.3) == pytest.approx(1 / (1 + np.exp(-0.3)), rel=1e-14)
        single = grad(lib.kernel("softf"))(np.float32(0.3))
        assert single.dtype == np.float32
        assert single == pytest.approx(1 / (1 + np.exp(-0.3)), rel=1e-6)

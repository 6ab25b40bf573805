"""wrt and argnums, and the scalar to differentiate."""

from __future__ import annotations

from typing import Any

import pytest
from samples import sample

import irgrad
from irgrad.engine.kernel.select import scalar_output, selected


@pytest.mark.parametrize(
    ("wrt", "wanted"), [(None, ((0,), True)), ("a", ((1,), True)), (-1, ((1,), True)), (("a", 0), ((1, 0), False))]
)
def test_choices(wrt: Any, wanted: Any) -> None:
    assert selected(sample("cubes"), wrt, None) == wanted
    assert selected(sample("cubes"), None, wrt) == wanted


def test_all_floats() -> None:
    assert selected(sample("gather"), None, None, all_floats=True) == ((0,), False)


@pytest.mark.parametrize(
    ("kernel", "wrt", "error", "message"),
    [
        ("cubes", "b", irgrad.SignatureError, "there is no argument `b`"),
        ("cubes", "n", irgrad.SignatureError, "`n` is a size argument"),
        ("cubes", 2, irgrad.SignatureError, "there is no argument 2"),
        ("cubes", (), irgrad.SignatureError, "`wrt` is empty"),
        ("cubes", ("x", 0), irgrad.SignatureError, "names an argument twice"),
        ("gather", "index", irgrad.ActivityError, "`index` has no derivative"),
        ("flip", None, irgrad.ActivityError, "no differentiable argument"),
    ],
)
def test_bad_choices(kernel: str, wrt: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        selected(sample(kernel), wrt, None)


def test_both() -> None:
    with pytest.raises(irgrad.SignatureError, match="both"):
        selected(sample("cubes"), 0, 0)


def test_scalar_outputs() -> None:
    assert scalar_output(sample("cubes")) == 3 and scalar_output(sample("two")) == 4
    for name in ("scale", "count"):
        with pytest.raises(irgrad.ActivityError, match="needs a scalar-valued function"):
            scalar_output(sample(name))


@pytest.mark.parametrize("name", [
    "batch", "batch_grad", "batch_vjp", "explain", "explain_batch", "explain_plan", "explain_rules", "explain_tape",
    "hessian", "hessian_sparse", "jac_sparse", "jacfwd", "jacrev", "jvp", "multi_vjp", "vjp",
])  # fmt: skip
def test_what_is_no_kernel(name: str) -> None:
    """A kernel over trees where none is taken, and a name."""
    taken = name in ("jvp", "vjp")  # of trees, too
    for given in ("cubes", *([] if taken else [sample("cubes").tree({"at": "x"}, "a")])):
        with pytest.raises(irgrad.SignatureError, match=r"kernel(.|\n)*to fix"):
            getattr(irgrad.engine, name)(given, *[()] * {"jvp": 2, "vjp": 0}.get(name, 0))

"""Packs as pytest cases: one per key, declarations left out, failures raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from irgrad.engine.rulecheck.check import RuleCheckFailed
from irgrad.engine.rulecheck.testing import Case, cases, parametrise
from irgrad.rules import inactive, pack, rule
from irgrad.rules.errors import RuleError
from irgrad.rules.layers import _PACKS


@pytest.fixture
def _pack() -> Iterator[None]:
    """A pack that ends with the test."""
    with pack("irgrad-test-pack") as made:
        inactive("irgrad_test_silent")

        @rule("irgrad_test_pack_cbrt")
        def _(x: Any, *, y: Any) -> Any:
            return 1 / (3 * y * y)

    yield
    _PACKS.remove(made)


@parametrise(dtypes=("f64",), points=1, widths=(1,), activities="all", modes=("reverse",))
def test_the_tables_are_one_case_per_row(case: Case) -> None:
    assert str(case).endswith("-f64")
    if str(case) in ("sin-f64", "opcode(fsub)-f64"):
        assert case.check().ok


@pytest.mark.usefixtures("_pack")
def test_a_pack_is_one_case_per_rule(tmp_path: Any) -> None:
    import irgrad

    source = tmp_path / "root.c"
    source.write_text("#include <math.h>\ndouble irgrad_test_pack_cbrt(double x) { return cbrt(x); }\n")
    kernel = irgrad.load(source).kernel("irgrad_test_pack_cbrt")
    (case,) = cases("irgrad-test-pack", kernels={kernel.name: kernel})
    assert str(case) == kernel.name
    assert case.check(points=1).ok
    from irgrad.rules import layer

    with layer():

        @rule(kernel.name)
        def _(x: Any, *, y: Any) -> Any:
            return 1 / (3 * y)

        with pytest.raises(RuleCheckFailed):
            case.check(points=1, widths=(1,))


def test_unknown_packs_are_refused() -> None:
    with pytest.raises(RuleError, match="no pack `nowhere` is in force"):
        cases("nowhere")

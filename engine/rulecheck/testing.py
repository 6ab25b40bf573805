"""Tests of whole packs of rules: one case of `check_rule` per key, for pytest.

    from irgrad.engine.rulecheck.testing import parametrise

    @parametrise("blas", kernels={"cblas_ddot": dot_kernel}, widths=(1,))
    def test_rules(case):
        case.check()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from irgrad.engine.rulecheck.check import RuleReport, check_rule
from irgrad.rules.definitions.definition import Key
from irgrad.rules.errors import RuleError
from irgrad.rules.keys import opcode
from irgrad.rules.layers import current

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel

__all__ = ["Case", "cases", "parametrise"]

_NO_DERIVATIVE = ("inactive", "opt_out", "stop", "allocator")


@dataclass(frozen=True)
class Case:
    """A rule to check. `options` are those of `check_rule`."""

    key: Key | str
    options: Mapping[str, Any] = field(default_factory=dict)

    def check(self, **options: Any) -> RuleReport:
        """Run `check_rule`; raises what it raises."""
        return check_rule(self.key, **{**self.options, **options})

    def __str__(self) -> str:
        dtype = self.options.get("dtype", "")
        return f"{self.key}-{dtype}" if dtype else str(self.key)


def cases(pack: str | None = None, *, kernels: Mapping[str, Kernel] | None = None,
          dtypes: Sequence[str] = ("f64", "f32"), **options: Any) -> list[Case]:  # fmt: skip
    """One case per key of a pack (a layer that is in force), or per row and dtype of irgrad's tables for `None`.

    kernels: for symbols whose prototype does not tell how to call them, kernels that do;  options: of `check_rule`

    Declarations without derivative (inactive, ...) are left out. Raises RuleError when there is no such pack.
    """
    if pack is None:
        from irgrad.rules.table import rows

        keys = [opcode(row.opcode) if row.opcode else row.key for row in rows().values() if row.outputs]
        return [Case(key, {"dtype": dtype, **options}) for key in keys for dtype in dtypes]
    layer = next((frozen for frozen in current().layers if frozen.name == pack), None)
    if layer is None:
        raise RuleError(f"no pack `{pack}` is in force", fix="import the module that defines it")
    found = []
    for key, rules in layer.rules.items():
        if any(rule.form not in _NO_DERIVATIVE for rule in rules):
            kernel = (kernels or {}).get(key.name)
            found.append(Case(key, options if kernel is None else {"kernel": kernel, **options}))
    return found


def parametrise(pack: str | None = None, name: str = "case", **options: Any) -> Callable[[Any], Any]:
    """A pytest decorator: the test runs once for every case of `cases(pack, ...)`."""
    import pytest

    listed = cases(pack, **options)
    decorator: Callable[[Any], Any] = pytest.mark.parametrize(name, listed, ids=map(str, listed))
    return decorator

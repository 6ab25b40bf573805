"""This machine's costs: the table that `irgrad tune` wrote for it, else the shipped ones.

A file of lines, `name cost`, in units of one addition:

    irgrad-costs 1
    cpu znver5            LLVM's name of the CPU on which it was measured: another one takes the shipped costs
    tape 21               see `Costs`
    chunk 16384           see there
    copied 80             see there
    exp 42                and further names of `OPERATIONS`, or `call`
    end

What is not as `written` writes it is refused: choices by costs that nobody measured would be slow without a word.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

from irgrad.engine.codegen.llvm import host_cpu
from irgrad.engine.codegen.own_sources import cost_file, cost_text
from irgrad.rules.errors import LoadError
from irgrad.rules.expressions.costs import OPERATIONS, SHIPPED, Costs

__all__ = ["CostWarning", "host_costs", "read_costs", "written"]

_HEAD, _END = "irgrad-costs 1", "end"
_MOST = 100_000  # additions: a thousandth of a second on the slowest machine
_NAMES = {*OPERATIONS, "tape", "call", "chunk", "copied"}


class CostWarning(RuntimeWarning):
    """The measured costs are those of another machine; the shipped ones are used."""


def host_costs() -> Costs:
    """The costs by which derivatives on this machine are planned. Raises LoadError for a damaged table."""
    text = cost_text()
    return SHIPPED if text is None else _of_host(text)


@lru_cache(4)  # so that it warns once
def _of_host(text: bytes) -> Costs:
    cpu, costs = read_costs(text, str(cost_file()))
    if cpu == host_cpu():
        return costs
    warnings.warn(
        f"the costs in {cost_file()} were measured on another CPU (`{cpu}`, this is `{host_cpu()}`): the shipped ones "
        "are used; `irgrad tune` measures this machine", CostWarning, stacklevel=2,
    )  # fmt: skip
    return SHIPPED


def written(costs: Costs, cpu: str) -> bytes:
    """The file for costs that were measured on a CPU."""
    rows = [_HEAD, f"cpu {cpu}", f"tape {costs.tape}", f"chunk {costs.chunk}", f"copied {costs.copied}"]
    rows += [*(f"{name} {cost}" for name, cost in costs.measured), _END]
    return "".join(f"{row}\n" for row in rows).encode()


def read_costs(text: bytes, where: str) -> tuple[str, Costs]:
    """The CPU and the costs in a file. Raises LoadError for what `written` does not write. where: its name"""
    rows = text.decode("utf-8", "replace").split("\n")
    if rows[0] != _HEAD or rows[-2:] != [_END, ""]:
        whole = f"it does not begin with `{_HEAD}` and end with `{_END}`"
        raise _damaged(where, 0, whole if text else "it is empty, or there is none")
    cpu, found = "", dict[str, int]()
    for number, row in enumerate(rows[1:-2], 2):
        name, _, value = row.partition(" ")
        if name == "cpu" and value and not cpu:
            cpu = value
            continue
        if name not in _NAMES or name in found:
            raise _damaged(where, number, f"`{row}` names nothing that has a cost, or names it again")
        if not value.isascii() or not value.isdigit() or not 1 <= int(value[:9]) <= _MOST or len(value) > 9:
            raise _damaged(where, number, f"`{row}` has no cost: wanted 1 to {_MOST} additions")
        found[name] = int(value)
    if not cpu or "tape" not in found:
        raise _damaged(where, 0, "it does not say `cpu` and `tape`")
    tape = found.pop("tape")
    chunk, copied = found.pop("chunk", SHIPPED.chunk), found.pop("copied", SHIPPED.copied)
    return cpu, Costs(tape, measured=tuple(found.items()), chunk=chunk, copied=copied)


def _damaged(where: str, number: int, because: str) -> LoadError:
    return LoadError(
        "this machine's table of costs cannot be used", where=f"{where}:{number}" if number else where,
        because=because,
        fix="irgrad tune (measures and writes it anew)   or   irgrad tune --reset   or   IRGRAD_COSTS=0 in the "
            "environment",
    )  # fmt: skip

"""The graph of differentiable dependence."""

from __future__ import annotations

from analysed import facts_of_c

SOURCE = """
void f(double *x, int *k, double *out) { out[0] = x[k[0]] * (double)(int)x[1]; k[1] = (int)x[2]; }
"""


def test_conversions_to_integers_end_the_flow() -> None:
    facts = facts_of_c(SOURCE, "f", {0, 2})
    flow = facts.activity.flow
    for instr in facts.root.instructions():
        if instr.opcode in ("fptosi", "sitofp"):
            assert instr not in flow.predecessors
    index = facts.pointers.object_of[facts.root.args[1]]
    assert index not in flow.predecessors and index not in flow.successors

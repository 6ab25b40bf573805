"""Trip counts as formulas over the arguments of a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irgrad.engine.analyses.evolution.affine import Scaled, constant_value
from irgrad.engine.analyses.evolution.trips import Expr, signed
from irgrad.engine.ir.model import Argument, Instruction, Value
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.predicates import INVERSE
from irgrad.engine.report.formulas import Formula, Iteration, Symbol, apply, constant, of_atom, sole

if TYPE_CHECKING:
    from irgrad.engine.analyses.control.loops import Loop
    from irgrad.engine.differentiate.shared.reverse_facts import ReverseFacts

__all__ = ["Counts"]

_DEPTH = 24  # of the values that a count is made of
_MOVES = having("same_number")
_CHOICES = {"llvm.smax": "max", "llvm.umax": "max", "llvm.smin": "min", "llvm.umin": "min"}
_OPS = {"umax": "max", "smax": "max", "umin": "min", "udiv": "//", "udiv_ceil": "ceil"}


class Counts:
    """The counts of one function.

    scalar: the name of the integer argument that a value is, None for anything else
    """

    def __init__(
        self, facts: ReverseFacts, scalar: Callable[[Value], str | None], names: Callable[[Loop], str]
    ) -> None:
        self.facts = facts
        self.scalar = scalar
        self.names = names
        self.numbers = {loop: number for number, loop in enumerate(facts.loops.all)}
        self._iterations: dict[Loop, Formula | None] = {}

    def iterations(self, loop: Loop) -> Formula | None:
        """Iterations each time the loop is entered (runs of its header); None where only the run tells."""
        if loop not in self._iterations:
            count = self.facts.trip(loop)
            found = self.of(count.expr) if count is not None else None
            if found is not None and any(name.startswith("&") for name in found.names()):
                found = None  # it depends on where memory lies
            self._iterations[loop] = self._simpler(loop, found + 1) if found is not None else None
        return self._iterations[loop]

    def of(self, expr: Expr, depth: int = _DEPTH) -> Formula | None:
        """A trip count expression (see `analyses/evolution/trips.py`)."""
        op = expr[0]
        if op == "const":
            return constant(signed(expr[1]))
        if op == "value":
            return self.value(expr[1], depth)
        a = self.of(expr[1], depth)
        if a is None:
            return None
        if isinstance(expr[2], int):
            return apply("//", a, constant(1 << expr[2])) if op == "lshr" else a
        b = self.of(expr[2], depth)
        if b is None:
            return None
        match op:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
        return apply(_OPS[op], a, b)

    def value(self, value: Value, depth: int = _DEPTH) -> Formula | None:
        """An integer or a pointer."""
        known = constant_value(value)
        if known is not None:
            return constant(known)
        name = self.scalar(value)
        if name is not None:
            return of_atom(Symbol(name))
        if depth == 0:
            return None
        if isinstance(value, Argument):
            return of_atom(Symbol(f"&{value.name}")) if value.type.is_ptr else None
        if not isinstance(value, Instruction):
            return None
        form = self.facts.induction.form(value)
        if list(form.terms) != [value]:
            total: Formula | None = constant(form.const)
            for symbol, coefficient in form.terms.items():
                part = self._symbol(symbol, depth - 1)
                total = total + part * coefficient if total is not None and part is not None else None
            if total is not None:
                return total
        return self._opcode(value, depth - 1)

    def _symbol(self, symbol: object, depth: int) -> Formula | None:
        if isinstance(symbol, Value):
            return self.value(symbol, depth)
        if isinstance(symbol, Scaled):
            scale = self.value(symbol.value, depth)
            return scale * self._number(symbol.loop) if scale is not None else None
        return self._number(symbol)  # type: ignore[arg-type]

    def _number(self, loop: Loop) -> Formula:
        return of_atom(Iteration(self.numbers[loop], self.names(loop)))

    def _opcode(self, value: Instruction, depth: int) -> Formula | None:
        opcode, operands = value.opcode, value.args if value.is_call else value.operands
        if opcode in _MOVES:
            return self.value(operands[0], depth)
        choice = _CHOICES.get((value.callee_name or "").rpartition(".")[0]) if value.is_call else None
        if choice is None and opcode not in having("integer_binary"):
            return None
        a, b = self.value(operands[0], depth), self.value(operands[1], depth)
        if a is None or b is None:
            return None
        if choice is not None:
            return apply(choice, a, b)
        match opcode:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
            case "shl":
                return a * (1 << b.const) if b.const is not None and 0 <= b.const < 63 else None
            case "lshr" | "ashr":
                return apply("//", a, constant(1 << b.const)) if b.const is not None and 0 <= b.const < 63 else None
            case "udiv" | "sdiv":
                return apply("//", a, b)
        return None

    # -- whether a loop is entered -----------------------------------------------------------------------------------

    def entered(self, loop: Loop) -> bool:
        """Whether each iteration of the loop around it (or each call) enters the loop, or skips it since it has no
        iterations."""
        dom, block, parent = self.facts.dom, loop.preheader, loop.parent
        if block is None:
            return False
        ends = parent.latches if parent is not None else [self.facts.exit] if self.facts.exit is not None else []
        while not all(dom.dominates(block, end) for end in ends):
            above = dom.idom(block)
            if above is None or (parent is not None and not parent.contains(above)):
                return False
            if self.facts.cfg.preds(block) == [above] and not self._guard(above.terminator, block, loop):
                return False
            block = above
        return True

    def _guard(self, branch: Instruction, target: object, loop: Loop) -> bool:
        """A branch that leads to the loop where it has iterations, and nowhere else."""
        if branch.opcode != "br" or len(branch.blocks) != 2:
            return len(branch.blocks) == 1
        count = self.iterations(loop)
        for room in self._room(branch, target):
            divided = sole(count) if count is not None else None
            if count == room or (divided is not None and divided[0].a == room and divided[0].op == "ceil"):
                return True
        return False

    def _room(self, branch: Instruction, target: object) -> list[Formula]:
        """Formulas one of which is positive where a branch goes to a block: two where it only tells numbers apart."""
        compare = branch.operands[0]
        if not isinstance(compare, Instruction) or compare.opcode != "icmp":
            return []
        pred = compare.pred or ""
        pred = pred if branch.blocks[0] is target else INVERSE.get(pred, "")
        a, b = (self.value(operand) for operand in compare.operands)
        if a is None or b is None:
            return []
        match pred[1:] if pred != "ne" else pred:
            case "gt":
                return [a - b]
            case "ge":
                return [a - b + 1]
            case "lt":
                return [b - a]
            case "le":
                return [b - a + 1]
            case "ne":
                return [a - b, b - a]
        return []

    def _simpler(self, loop: Loop, count: Formula) -> Formula:
        """`max(x, c)` is x where the loop is only entered for such; `ceil(max(x, b) / b)` is `ceil(x / b)` where it is
        only entered for a positive x."""
        found = sole(count)
        if found is not None and found[0].op == "max" and found[0].b.const is not None:
            spare = found[0].a - found[0].b + 1
            if any(((spare - room).const or -1) >= 0 or spare == room for room in self._positive(loop)):
                return found[0].a + found[1]
        if found is None or found[0].op != "ceil" or not (step := found[0].b.const or 0) > 0:
            return count
        whole = found[0].a + found[1] * step
        inside = sole(whole)
        if inside is not None and inside[0].op == "max" and inside[0].b.const == step - inside[1] > 0:
            below = inside[0].a + inside[1]
            if below in self._positive(loop):
                whole = below
        return apply("ceil", whole, found[0].b)

    def _positive(self, loop: Loop) -> list[Formula]:
        """Formulas that are positive where the loop is entered: of the branches on the way to it."""
        found: list[Formula] = []
        block = loop.preheader
        while block is not None and (loop.parent is None or block is not loop.parent.header):
            above = self.facts.dom.idom(block)
            if above is not None and self.facts.cfg.preds(block) == [above] and len(above.terminator.blocks) == 2:
                rooms = self._room(above.terminator, block)
                found += rooms if len(rooms) == 1 else []
            block = above
        return found

"""What a program says about its own functions: registered derivatives and properties, as rules for its compilation.

Said by variables of which the name counts (`void *__enzyme_register_gradient_f[] = {f, f_augmented, f_reverse};`), by
annotations (`__attribute__((annotate("enzyme_inactive")))`) or by attributes of functions in the IR.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from irgrad.engine.analyses.memory.bodies import variables
from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import (
    Argument,
    ConstAggregate,
    Constant,
    ConstData,
    ConstExpr,
    ConstInt,
    ConstZero,
    Function,
    GlobalVariable,
    Module,
    Value,
)
from irgrad.engine.ir.opcodes import having
from irgrad.engine.ir.quoting import quoted_name
from irgrad.engine.ir.text.outline import outline
from irgrad.rules.effects import prints
from irgrad.rules.errors import IRGradError, RuleError, Unsupported

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.rulebook import Rulebook
    from irgrad.rules.definitions.definition import Form, Rule
    from irgrad.rules.expressions.row import Row
    from irgrad.rules.layers import Layer

__all__ = ["Said", "rules_digest", "said_about", "speaks"]

_SPEAKS = re.compile(
    r'^@[^\n=]*__enzyme_\w+"? = |^@llvm\.global\.annotations = |^attributes #\d+ = \{[^\n]*"enzyme_'
    r"|call void @llvm\.var\.annotation", re.M
)  # fmt: skip
_HINTS = ("nofree", "shouldrecompute", "no_escaping_allocation", "pure", "elementwise_read",
          "sparse_accumulate")  # fmt: skip
"""What tells an optimiser something that this engine finds out or does not need: no derivative changes."""
_LOCAL = re.compile(r"call void @llvm\.var\.annotation[^(\n]*\([^,\n]*, ptr [^@\n]*@([\w.$]+)")
_DONE = re.compile(r'"enzyme_(\w+)"(?:="([^"]*)")?')


def speaks(text: str) -> bool:
    """Whether a program may say anything about its functions."""
    return _SPEAKS.search(text) is not None


@dataclass(slots=True)
class Said:
    """What was found. `visible`: functions that derivatives call by name; `apart`: those that must not be inlined."""

    rules: list[Rule] = field(default_factory=list)
    visible: set[str] = field(default_factory=set)
    apart: set[str] = field(default_factory=set)
    inactive: set[str] = field(default_factory=set)

    @contextmanager
    def in_force(self) -> Iterator[Layer]:
        """The rules hold inside of the block."""
        from irgrad.rules.layers import layer

        with layer("program") as mine:
            for rule in sorted(self.rules, key=lambda rule: "split" not in rule.options):  # of two, the later one holds
                mine.add(rule)
            yield mine

    def untouched(self, text: str) -> str:
        """The program, in which no optimiser looks into what was spoken of: calls stay, and so do accesses to inactive
        variables (else a value that is stored there and loaded again would go past the variable)."""
        from irgrad.engine.codegen.prepare import out_of_line

        if self.apart:
            text = out_of_line(text, self.apart.__contains__)
        for name in sorted(self.inactive):
            symbol = re.escape(f"@{quoted_name(name)}")
            access = re.compile(rf"^(.*\b(?:load|store)) (?!volatile|atomic)([^\n]*, ptr {symbol}(?=[,\n]))", re.M)
            text = access.sub(r"\1 volatile \2", text)
        return text

    def called_by(self, book: Rulebook | None, module: Module) -> None:
        """Note what a derivative calls by name. Raises RuleError for Python, which is not there when a program runs."""
        host = next((name for name in module.functions if name.startswith("irgrad.host.")), None)
        if host is not None:
            raise RuleError("a host rule in a program", which=host,
                            because="its body is Python, and the program runs without it",
                            fix="partials, a rule with `ctx`, or rules.foreign with functions in C")  # fmt: skip
        self.visible |= book.wanted if book is not None else set()

    def kept_apart(self, text: str) -> frozenset[str]:
        """The functions with a body of which some rule in force speaks: they are looked up before they are inlined."""
        from irgrad.rules.layers import current

        rules = current()
        if not rules.layers:
            return frozenset()
        return frozenset(n for n in outline(text).defined if any(not table.builtin for table in rules.find(n)))

    def rulebook(self, module: Module, mode: str, symbols: frozenset[str]) -> Rulebook | None:
        """The rules in force for the functions of a module; None where nothing is said about it. symbols: all functions
        that the program defines, which bodies of rules may call."""
        from irgrad.engine.differentiate.shared.rulebook import Rulebook
        from irgrad.rules.layers import current

        rules = current()
        if not self.inactive and not any(rules.find(name) for name in module.functions):
            return None
        # the program has all the symbols: it is linked with the derivative
        return Rulebook(rules, "", module, symbols, mode, kept=symbols, inactive_globals=frozenset(self.inactive))


def rules_digest(text: str) -> str:
    """What the rules in force say about the functions of a program; "" for nothing."""
    from irgrad.rules.layers import current

    rules = current()
    return rules.digest(set(outline(text).functions)) if rules.layers else ""


def said_about(text: str) -> Said:
    """Everything that a program says about its functions and variables.

    Raises Unsupported for what has no meaning here, RuleError for what is not a function, a name or a number.
    """
    from irgrad.engine.ir.text.reader import read

    printing = [name for name in outline(text).defined if prints(name)]
    if not speaks(text) and not printing:
        return Said()
    module = read(text, [])
    if any(_started_later(var) for var in module.globals.values() if _kind(var)):
        module = read(_simplified(text, folded=True), [])
    collector = _Collector(module, text)
    for var in module.globals.values():
        kind = _kind(var)
        if kind:
            collector.variable(kind, var)
    collector.annotations()
    collector.attributes()
    for name in sorted(printing):  # templates of the library on its streams: as constant as its functions without body
        collector.inactive(f"@{name}", [module.functions[name]])
    return collector.said


def _kind(var: GlobalVariable) -> str:
    """`register_gradient` for `__enzyme_register_gradient_f`, also inside a mangled name."""
    at = (var.name or "").find("__enzyme_")
    if at < 0:
        return ""
    rest = (var.name or "")[at + len("__enzyme_") :]
    return next((kind for kind in _VARIABLES if rest.startswith(kind)), rest)


def _started_later(var: GlobalVariable) -> bool:
    """The variable is filled when the program starts (C++): its contents have to be worked out."""
    return isinstance(var.init, ConstZero)


def _simplified(text: str, *, folded: bool = False) -> str:
    """Local variables as values; `folded`: also what runs at the start of the program, where LLVM can do it."""
    from irgrad.engine.codegen.llvm import binding, parse, target_machine
    from irgrad.engine.codegen.prepare import strip_target

    llvm = binding()
    module = parse(strip_target(text))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    if folded:
        passes.add_instruction_combine_pass()
        passes.add_global_opt_pass()
    passes.run(module, llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options(speed_level=1)))
    result = str(module)
    module.close()
    return result


class _Collector:
    """Turns what is said into rules."""

    def __init__(self, module: Module, text: str) -> None:
        self.module = module
        self.text = text
        self.said = Said()
        self._plain: Module | None = None

    # -- where it is said ----------------------------------------------------------------------------------------------

    def variable(self, kind: str, var: GlobalVariable) -> None:
        """One variable of the notation."""
        place = f"@{var.name}"
        if var.init is None:  # declared here; the file that defines it says more
            return
        handler = _VARIABLES.get(kind)
        if handler is None:
            raise Unsupported(f"`__enzyme_{kind}` is not supported", which=place,
                              because="it registers a derivative or a property of a function, which would be ignored",
                              fix="leave it out, if what it says follows from the function's body")  # fmt: skip
        getattr(self, handler)(place, _elements(var.init))

    def annotations(self) -> None:
        """`__attribute__((annotate("enzyme_...")))` of functions and variables."""
        notes = self.module.globals.get("llvm.global.annotations")
        for record in _elements(notes.init if notes is not None else None):
            subject, text, *_ = _elements(record)
            word = _string(text)
            if word is not None and word.startswith("enzyme_"):
                name, _, value = word.removeprefix("enzyme_").partition("=")
                self._property(f"@{resolve(subject).name}", resolve(subject), name, value)

        for name in _LOCAL.findall(self.text):
            word = _string(self.module.globals.get(name))
            if word is not None and word.startswith("enzyme_"):
                raise Unsupported(f"the annotation `{word}` of a local variable", which=f"@{name}",
                                  because="it would be ignored: only functions and global variables are annotated",
                                  fix="compute it in a function that is annotated")  # fmt: skip

    def attributes(self) -> None:
        """String attributes of functions, as other front ends write them."""
        if '"enzyme_' not in self.text:
            return
        from irgrad.engine.analyses.memory.call_effects import attribute_text

        for fn in self.module.functions.values():
            for name, value in _DONE.findall(attribute_text(self.module, fn.tail)):
                if (name, value) != ("type", "") and name != "deallocator":
                    self._property(f"@{fn.name}", fn, "function_like" if name == "math" else name, value)

    def _property(self, place: str, subject: Value, name: str, value: str) -> None:
        if name in _HINTS:
            return
        if name in ("inactive", "inactive_noblock"):
            (self.inactive_global if isinstance(subject, GlobalVariable) else self.inactive)(place, [subject])
        elif name == "function_like" and isinstance(subject, Function):
            self._like(place, subject, value)
        else:
            raise Unsupported(f"the annotation `enzyme_{name}` is not supported", which=place,
                              because="it says how to differentiate the function, which would be ignored",
                              fix="leave it out, if what it says follows from the function's body")  # fmt: skip

    # -- what is said --------------------------------------------------------------------------------------------------

    def gradient(self, place: str, items: Sequence[Value]) -> None:
        """{f, augmented, reverse}, then perhaps strings "byref_2": parameters that are passed by reference."""
        fn, augmented, reverse = self._functions(place, items, 3, "{f, augmented, reverse}")
        byref = frozenset(int(word.removeprefix("byref_")) for item in items[3:] if (word := _string(item) or "")
                          and re.fullmatch(r"byref_\d+", word))  # fmt: skip
        self._registered(place, fn, "reverse", augmented=self._c(place, augmented, byref),
                         reverse=self._c(place, reverse, byref))  # fmt: skip

    def derivative(self, place: str, items: Sequence[Value]) -> None:
        """{f, forward}."""
        fn, forward = self._functions(place, items, 2, "{f, forward}")
        self._registered(place, fn, "forward", forward=self._c(place, forward))

    def split(self, place: str, items: Sequence[Value]) -> None:
        """{f, augmented, forward with tape}."""
        fn, augmented, forward = self._functions(place, items, 3, "{f, augmented, forward with tape}")
        self._registered(place, fn, "forward", augmented=self._c(place, augmented), split=self._c(place, forward))

    def inactive(self, place: str, items: Sequence[Value]) -> None:
        """{f, ...}: no derivative flows through them."""
        for item in items:
            fn = self._function(place, item)
            self.said.apart.add(fn.name or "")
            self._add(place, fn, "inactive")

    def inactive_global(self, place: str, items: Sequence[Value]) -> None:
        """{&variable, ...}: no derivative flows through them."""
        for item in items:
            var = _behind(item)
            if not isinstance(var, GlobalVariable):
                raise _wrong(place, "a variable", var)
            self.said.inactive.add(var.name or "")

    def function_like(self, place: str, items: Sequence[Value]) -> None:
        """{f, "exp"}: the derivatives of f are those of exp."""
        name = _string(items[1]) if len(items) > 1 else None
        if not name:
            raise _wrong(place, "the name of a function", items[1] if len(items) > 1 else None)
        self._like(place, self._function(place, items[0]), name)

    def _like(self, place: str, fn: Function, name: str) -> None:
        from irgrad.rules.lookup import find

        self.said.apart.add(fn.name or "")
        if name == "free":
            self._add(place, fn, "allocator", sizes=(), zeroed=False, frees=True)
            return
        match = find(name)
        letters = "".join("f" if t.is_fp else "i" if t.is_int else "p" for t in fn.ftype.params)
        if match is None or match.packed or match.row.outputs != ("ret",):
            raise Unsupported(f"`{fn.name}` is said to be like `{name}`", which=place,
                              because=f"no derivative of a `{name}` that returns a number is known",
                              fix="the name of a function of math.h, or __enzyme_register_gradient")  # fmt: skip
        row = match.row
        if row.signature != letters or not fn.ftype.ret.is_fp:
            raise RuleError(f"`{fn.name}` is said to be like `{name}`", where=place,
                            which=f"{fn.ftype.ret} ({letters})",
                            because=f"`{name}` takes other arguments: {row.signature} (f: a float, i: an integer)",
                            fix="a function of the same arguments")  # fmt: skip
        self._add(place, fn, "partials", row=row)

    def allocation_like(self, place: str, items: Sequence[Value]) -> None:
        """{allocate, number of the argument with the size, "what goes to the release: -1 the memory", release}."""
        if len(items) < 4:
            raise _wrong(place, "{allocate, size's argument, \"-1\", release}", None)
        fn, free = self._function(place, items[0]), self._function(place, items[3])
        size, handed = _number(items[1]), _string(items[2])
        order = [int(word) for word in (handed or "").split(",") if re.fullmatch(r"\s*-?\d+\s*", word)]
        if size is None or size >= len(fn.ftype.params) or -1 not in order:
            raise _wrong(place, "{allocate, size's argument, \"-1\", release}", items[2])
        self.said.apart |= {fn.name or "", free.name or ""}
        self._add(place, fn, "allocator", sizes=(size,), zeroed=False, frees=False, updates=True)
        self._add(place, free, "allocator", sizes=(), zeroed=False, frees=True, pointer=order.index(-1))

    def hint(self, place: str, items: Sequence[Value]) -> None:
        """Nothing that a derivative depends on; but it has to be said of functions."""
        for item in items:
            self._function(place, item)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _functions(self, place: str, items: Sequence[Value], count: int, what: str) -> list[Function]:
        if len(items) < count:
            raise _wrong(place, f"an array of {what}", None)
        found = [self._function(place, item) for item in items[:count]]
        self.said.apart.add(found[0].name or "")
        self.said.visible |= {fn.name or "" for fn in found[1:]}
        return found

    def _function(self, place: str, item: Value) -> Function:
        found = _behind(item)
        if not isinstance(found, Function):
            raise _wrong(place, "a function", found)
        return found

    def _c(self, place: str, fn: Function, byref: frozenset[int] = frozenset()) -> Any:
        from irgrad.engine.differentiate.custom_rules.registered import CFunction

        if fn.ftype.vararg:
            raise _wrong(place, "a function with a fixed number of arguments", fn)
        kept = [self._passing(arg) for arg in fn.args]
        result = self._pointee(fn.args[0], "sret") if fn.args else None
        return CFunction(fn.name or "", ty.function(_literal(fn.ftype.ret), fn.ftype.params), tuple(kept), result,
                         self._used(fn), byref, frozenset(variables(self.module, fn)[0]))  # fmt: skip

    def _passing(self, arg: Argument) -> str:
        words = [word for word in arg.attrs.split() if word in ("signext", "zeroext", "inreg")]
        for name in ("sret", "byval"):
            pointee = self._pointee(arg, name)
            if pointee is not None:
                aligned = re.search(r"\balign (\d+)", arg.attrs)
                words.append(f"{name}([{ty.size_of(pointee)} x i8])" + (f" align {aligned[1]}" if aligned else ""))
        return " ".join(words)

    def _pointee(self, arg: Argument, name: str) -> ty.Type | None:
        """The type in `sret(%struct.S)`."""
        from irgrad.engine.ir.text.cursor import Cursor

        found = re.search(rf"\b{name}\((.*)", arg.attrs)
        return _literal(Cursor(self.module, found[1]).type_()) if found is not None else None

    def _used(self, fn: Function) -> tuple[bool, ...]:
        """Which parameters the body uses (all, where there is none)."""
        from irgrad.engine.ir.text.reader import materialise, read

        if fn.is_declaration:
            return (True,) * len(fn.args)
        if self._plain is None:
            self._plain = read(_simplified(self.text), [])
        same = self._plain.functions[fn.name or ""]
        if same.lazy is not None:
            materialise(same, self._plain)
        read_ones = {operand for instr in same.instructions() for operand in instr.operands}
        return tuple(arg in read_ones for arg in same.args)

    def _registered(self, place: str, fn: Function, mode: str, **functions: Any) -> None:
        """A rule of the form "registered"; `shadows`: pointers whose shadow its functions use."""
        if fn.ftype.vararg or any("sret(" in arg.attrs or "byval(" in arg.attrs for arg in fn.args):
            raise Unsupported(f"a derivative is registered for `{fn.name}`", which=place,
                              because="the function takes or returns a struct through a hidden pointer, or has `...`",
                              fix="hand structs over by pointer")  # fmt: skip
        groups, wanted = _groups(fn), set()
        for role, made in functions.items():
            number = made.hidden
            for group in groups:
                number += len(group)
                for i in group:
                    if fn.ftype.params[i].is_ptr:
                        wanted |= {i} if number < len(made.used) and made.used[number] else set()
                        number += 1
                    elif role in ("forward", "split"):
                        number += int(fn.ftype.params[i].is_fp or len(group) > 1)
        self._add(place, fn, "registered", mode, shadows=tuple(sorted(wanted)), groups=groups, **functions)

    def _add(
        self, place: str, fn: Function, form: Form, mode: str | None = None, row: Row | None = None, **options: Any
    ) -> None:
        from irgrad.rules.definitions.definition import Key, Rule
        from irgrad.rules.definitions.types import Activity, mode_type

        types = (mode_type(mode), Activity)
        self.said.rules.append(Rule(Key("function", fn.name or ""), form, types, True, None, (), False, place,
                                    f"{form} {place}", "program", options, row))  # fmt: skip


_VARIABLES = {
    "register_gradient": "gradient", "register_derivative": "derivative", "register_splitderivative": "split",
    "inactivefn": "inactive", "inactivenoblockfn": "inactive", "inactive_global": "inactive_global",
    "function_like": "function_like", "allocation_like": "allocation_like",
    "nofree": "hint", "sparse_accumulate": "hint", "shouldrecompute": "hint", "no_escaping_allocation": "hint",
}  # fmt: skip


def _groups(fn: Function) -> tuple[tuple[int, ...], ...]:
    """Parameters that belong together: clang names the pieces of a struct that is passed by value after it."""
    groups: dict[str, list[int]] = {}
    for arg in fn.args:
        whole, piece, number = (arg.name or "").rpartition(".coerce")
        groups.setdefault(whole if piece and number.isdigit() else str(arg.index), []).append(arg.index)
    return tuple(map(tuple, groups.values()))


def _elements(value: Value | None) -> Sequence[Value]:
    """The parts of an array; one address alone counts as an array of one."""
    if isinstance(value, ConstAggregate):
        return value.elems
    return [value] if isinstance(value, Constant) and not isinstance(value, ConstZero) else []


def _behind(value: Value) -> Value:
    """What an element means, through casts and structs of one."""
    while True:
        value = resolve(value)
        if isinstance(value, ConstAggregate) and value.elems:
            value = value.elems[0]
        elif isinstance(value, ConstExpr) and value.opcode in having("same_number") | {"getelementptr"}:
            value = value.operands[0]
        else:
            return value


def _string(value: Value | None) -> str | None:
    """The C string that a constant points to."""
    var = _behind(value) if value is not None else None
    data = var.init if isinstance(var, GlobalVariable) and var.constant else None
    return data.data.rstrip(b"\0").decode("utf-8", "replace") if isinstance(data, ConstData) else None


def _number(value: Value) -> int | None:
    """A number that was written as a pointer."""
    if isinstance(value, ConstZero) or str(value) == "null":
        return 0
    inner = value.operands[0] if isinstance(value, ConstExpr) else value
    return inner.value if isinstance(inner, ConstInt) else None


def _literal(type_: ty.Type) -> ty.Type:
    """The type without names: it then belongs to no module."""
    match type_:
        case ty.StructType(fields=fields, packed=packed) if fields is not None:
            return ty.struct(tuple(map(_literal, fields)), packed)
        case ty.ArrayType(count=count, elem=elem):
            return ty.array(count, _literal(elem))
        case _:
            return type_


def _wrong(place: str, wanted: str, found: Value | None) -> IRGradError:
    shown = f"@{found.name}" if found is not None and found.name else str(found) if found is not None else "too few"
    return RuleError(f"`{place.lstrip('@')}` is not {wanted}", where=place, which=shown,
                     because="what it holds has to be known when the program is compiled",
                     fix=f"initialise it with {wanted}, by name")  # fmt: skip

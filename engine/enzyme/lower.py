"""Lowers the calls of the notation in a whole program: each becomes a call of a derivative that this engine makes.

Calls are lowered from the inside out: a function that contains such calls is differentiated when they are lowered, so
that derivatives of any order nest. The program's variables stay the program's: what is differentiated only sees their
declarations, since other parts of the program may write them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Container, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from irgrad.engine.analyses.memory.objects import holds_address
from irgrad.engine.codegen.member_arrays import perhaps_bounded
from irgrad.engine.enzyme.apart import bytes_given, own_memory
from irgrad.engine.enzyme.calls import PREFIX, DerivativeCall, find, parse
from irgrad.engine.enzyme.dispatch import ADDRESS, addresses, dispatched, taken
from irgrad.engine.enzyme.float_memory import elements, formals_of
from irgrad.engine.enzyme.found_memory import with_memory
from irgrad.engine.enzyme.given_variables import Questions
from irgrad.engine.enzyme.interposable import interposable, refuse_interposable, replaceable
from irgrad.engine.enzyme.leaving import Thrown, ends, may_leave, named, thrower_text, without_limits
from irgrad.engine.enzyme.names import PLAIN, family, spelled_out
from irgrad.engine.enzyme.overlaps import two_versions
from irgrad.engine.enzyme.plain import HIDDEN, lower_plain, one_more
from irgrad.engine.enzyme.registered import Said, said_about
from irgrad.engine.enzyme.results import Found, numbers_given, numbers_in
from irgrad.engine.enzyme.simplified import settle_statics, simplified
from irgrad.engine.enzyme.splitting import kept, number_of, thunk_text
from irgrad.engine.enzyme.thunks import active, declarations, derivatives, loose, root_text, rounding, strong
from irgrad.engine.enzyme.todense import lower_addresses, refuse_inside, unwanted
from irgrad.engine.enzyme.told_variables import Defined, told_variables
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.model import CallInfo, Function, Module
from irgrad.engine.ir.quoting import bare_name
from irgrad.engine.ir.text.entities import cut, reachable, restrict
from irgrad.engine.ir.text.load_time import call_resolvers, indirect_functions
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.threads.programs import chunked, derivative_on_threads
from irgrad.rules.errors import PARTS, IRGradError, MissingRuleError, Unsupported

if TYPE_CHECKING:
    from irgrad.engine.differentiate.shared.request import Derivative
    from irgrad.engine.normalise.segments import Choice

__all__ = ["lower"]

_SYMBOL = re.compile(r'@(?:"[^"]*"|[-\w$.]+)', re.ASCII)
_LINKAGE = frozenset(
    "private internal available_externally linkonce weak common appending extern_weak linkonce_odr weak_odr external"
    .split()
)  # fmt: skip
_SPECIAL = re.compile(r"^@llvm\.(?:global_ctors|global_dtors|used|compiler\.used|global\.annotations) = [^\n]*\n", re.M)
_UNKNOWN = re.compile(r"`(\w+)` has neither a body nor a rule")
_COMDAT = re.compile(r",? comdat(?:\([^)]*\))?")


def lower(text: str, *, whole: bool = False, preopt: bool = True, settled: Container[str] = (),
          checkpoint: tuple[tuple[str, Choice], ...] = (), team: bool = True) -> str:  # fmt: skip
    """The program without calls of the notation. Text without any comes back as it is.

    whole: nothing outside of the text calls its functions, so that those which differentiate a function that they are
    given need no body of their own.
    preopt: False to differentiate what the compiler wrote as it is; only the functions with calls are simplified.
    settled: functions that might be replaced when the program is linked (see interposable.py), and are not.
    checkpoint: loops that keep states in place of a tape, as a `Request` says it.
    team: whether threads share worksharing loops of OpenMP.

    Raises Unsupported, with the source line, for what is not supported, and whatever differentiation raises.
    """
    if PREFIX not in text:
        return text
    text = spelled_out(text)
    if any(re.search(rf"@{PREFIX}[^\n]*{re.escape(name)}\b", text) for name in indirect_functions(text)):
        text = call_resolvers(text)  # what is differentiated has a body
    said = said_about(text)
    with said.in_force():
        program = _Program(simplified(said.untouched(text), whole, preopt), said, preopt, whole)
        program.checkpoint, program.team = checkpoint, team
        program.open = [name for name in interposable(text) if name not in settled]
        return program.run()


@dataclass(frozen=True, slots=True)
class _Made:
    """The derivative of one root: its name and text, the constant parameters that need a shadow, the numbers in the
    result, the exceptions that leave it and what throws them, the functions of which it compares addresses, the number
    by which its tapes are known; the root, ready to be differentiated."""

    name: str
    text: str
    scratch: tuple[int, ...]
    found: Found
    thrown: Thrown = ()
    thrower: str = ""
    reached: tuple[str, ...] = ()
    number: int = 0
    ready: str = ""

    @property
    def plain(self) -> Found | None:
        """The numbers in the result, where nothing else is to be known."""
        return None if self.thrown or self.scratch or self.reached or self.number else self.found


class _Program:
    """The program's text while its calls are lowered."""

    def __init__(self, text: str, said: Said, preopt: bool, whole: bool) -> None:
        self.text = text
        self.preopt = preopt
        self.said = said
        self.count = 0
        # root, mode, activity, ... -> derivative, the constant parameters that it wants a shadow for, and what throws
        self.known: dict[tuple[Hashable, ...], _Made] = {}
        self.throwers: list[str] = []  # functions that this round adds
        self.reached: dict[str, None] = {}  # functions of which derivatives compare the addresses
        self.statics: set[str] = set()
        self.whole = whole
        self.checkpoint: tuple[tuple[str, Choice], ...] = ()
        self.team = True
        self.open: list[str] = []  # functions that another definition may replace
        self.takers: dict[str, set[str]] = {}

    def run(self) -> str:
        from irgrad.engine.ir.text.reader import read

        module = read(self.text, [])
        self._own_statics(module)
        self._plain()
        while self._round():
            pass
        self.text = lower_addresses(self.text)
        return self._settled()

    def _own_statics(self, module: Module) -> None:
        """Static variables become visible, so that the derivatives, which are linked in, use the same ones."""
        from irgrad.engine.ir.printer import to_text

        settle_statics(module)
        for var in module.globals.values():
            words = var.head.split()
            if not var.constant and {"internal", "private"} & set(words) and not (var.name or "").startswith("llvm."):
                var.head = " ".join(word for word in words if word not in ("internal", "private"))
                self.statics.add(var.name or "")
        self._own_functions(module)
        self.text = to_text(module)

    def _plain(self) -> None:
        """Replace the calls that need no derivative."""
        from irgrad.engine.ir.printer import to_text
        from irgrad.engine.ir.text.reader import materialise, read

        module = read(self.text, [])
        parts: dict[str, None] = {}
        for fn in [fn for fn in module.functions.values() if fn.lazy is not None and PREFIX in fn.lazy]:
            materialise(fn, module)
            for instr in list(find(fn)):
                if family(instr.callee_name) not in PLAIN:
                    parts[unwanted(instr, len(parts))] = None
                    continue
                self.count += 1
                parts[lower_plain(module, fn, instr, self.count)] = None
        self.text = "\n".join([to_text(module), *parts])

    def _own_functions(self, module: Module) -> None:
        """The same for static functions that derivatives call."""
        for name in sorted(self.said.visible):
            fn = module.functions.get(name)
            words = fn.head.split() if fn is not None else []
            if fn is not None and {"internal", "private"} & set(words):
                fn.head = " ".join(word for word in words if word not in ("internal", "private"))
                self.statics.add(name)

    def _round(self) -> bool:
        """Lower all calls that reach no other call; False when none was left."""
        from irgrad.engine.ir.printer import to_text
        from irgrad.engine.ir.text.reader import materialise, read

        module = read(self.text, [])
        callers = [fn for fn in module.functions.values() if fn.lazy is not None and PREFIX in fn.lazy]
        for fn in callers:
            materialise(fn, module)
        calls = [(fn, parse(module, fn, instr)) for fn in callers for instr in find(fn)]
        for fn, call in calls:
            call.apart, call.elements = own_memory(fn, call), elements(module, fn, call)
        self._pair([call for _, call in calls])
        if not calls:
            return False
        entities = {bare_name(found[0]): entity for entity in cut(self.text) if entity.first in "d@"
                    and (found := _SYMBOL.search(self.text, entity.start, entity.end))}  # fmt: skip
        waiting = {fn.name for fn, _ in calls}
        ready = []
        inner: set[str | None] = set()  # functions that are differentiated with the calls in them
        for fn, call in calls:
            reached = reachable(self.text, entities, [call.function.name or ""])
            refuse_interposable(call, reached, self.open)
            refuse_inside(call, reached)
            inner |= waiting & reached
            if not waiting & reached:
                ready.append((fn, call))
        if not ready:
            call = calls[0][1]
            raise Unsupported("a function is differentiated inside of itself", where=call.where,
                              because=f"`{call.function.name}` reaches this call again",
                              fix="split the function, so that what is differentiated does not contain the call")
        outside = _outside(self.text, self.statics)
        parts, before = [], list(self.reached)
        for fn, call in ready:
            shared = self.team and fn.name not in inner and may_be_shared(call)
            parts += self._lower(module, outside, fn, call, shared)
        self._own_functions(module)
        fresh = addresses(name for name in self.reached if name not in before)
        self.text = _linked("\n".join([to_text(module), fresh, *self.throwers]), parts)
        self.throwers = []
        return True

    def _pair(self, calls: list[DerivativeCall]) -> None:
        """Which second half takes the tape of an `__enzyme_augmentfwd`: it follows from the function."""
        for call in calls:
            if call.mode in ("sweep", "tangent") and not call.untaped:
                self.takers.setdefault(call.function.name or "", set()).add(call.mode)
        for call in calls:
            takers = self.takers.get(call.function.name or "", set())
            if call.mode == "augment" and takers == {"sweep", "tangent"}:
                raise Unsupported(f"`{call.function.name}` is differentiated by __enzyme_reverse and by "
                                  "__enzyme_fwdsplit", where=call.where,
                                  because="their tapes differ, and both take that of __enzyme_augmentfwd",
                                  fix="a function of its own for one of them, which calls the other")  # fmt: skip
            call.mode = "record" if call.mode == "augment" and takers == {"tangent"} else call.mode

    def _lower(
        self, module: Module, outside: tuple[str, Defined, list[str]], caller: Function, call: DerivativeCall,
        shared: bool,
    ) -> list[str]:  # fmt: skip
        """Point the call to its thunk; the text of the thunk, and of the derivative if it is a new one. shared: whether
        threads may share its worksharing loops."""
        self.count += 1
        thunk, root = f"irgrad.call.{self.count}", "irgrad.root"
        key = (root_text(call, root), call.derivation, call.untaped, tuple(active(call)), call.width, kept(call),
               strong(call), loose(call), rounding(call), unasked(call), call.elements, shared,
               bytes_given(call))
        parts = []
        if key not in self.known:
            name = f"irgrad.root.{self.count}"

            def derived(name: str, call: DerivativeCall, ready: str = "") -> _Made:
                if ready:
                    return _differentiated(outside[0], outside[1], call, ready, name, self.said, self.checkpoint,
                                           shared=shared)
                return _derivative(*outside, call, caller.name or "", root_text(call, name), name, self.said,
                                   self.preopt, self.whole, self.checkpoint, shared=shared)

            try:
                made = derived(name, call)
            except IRGradError as error:
                raise _placed(error, call, name) from None
            self.reached.update(dict.fromkeys(made.reached))
            if made.thrown:
                self.throwers.append(thrower_text(module, call.thrower, made.thrown))
            parts.append(made.text)
            chosen, versions = two_versions(call, made, name, derived)
            parts += versions
            self.known[key] = replace(made, name=chosen, text="", ready="", thrower=call.thrower)
        known = self.known[key]
        derivative = known.name
        call.made(known.scratch, known.thrower, known.found, known.number)
        types = "".join(f"{name} = type {type_.body}\n" for name, type_ in module.types.items())
        parts.append(types + declarations(call, derivative) + thunk_text(call, caller, thunk, derivative))
        info = call.instr.call
        assert info is not None
        ftype = ty.function(call.instr.type, tuple(arg.type for arg in call.instr.args))
        module.functions[thunk] = Function(thunk, ftype)
        call.instr.operands[-1] = module.functions[thunk]
        call.instr.call = CallInfo(ftype, ret_attrs="", arg_attrs=info.arg_attrs)
        return parts

    def _settled(self) -> str:
        """What was made visible is internal again."""
        from irgrad.engine.codegen.llvm import parse

        module = parse(self.text)
        for value in (*module.functions, *module.global_variables):
            if not value.is_declaration and (value.name in self.statics or value.name.startswith("irgrad.")):
                value.linkage = "internal"
        result = str(module)
        module.close()
        return result


def _outside(text: str, own: Container[str | None] = ()) -> tuple[str, Defined, list[str]]:
    """The program without what runs at its start, its variables as declarations; the variables that it defines; the
    functions of which it takes the address. own: variables that no other file names"""
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.ir.text.reader import read

    module = read(call_resolvers(_SPECIAL.sub("", text)), [])
    for fn in module.functions.values():
        if (fn.name or "").startswith(HIDDEN) and not fn.is_declaration:
            fn.blocks, fn.lazy, fn.head = [], None, ""
    rows = {var.name: holds_address(var.init) for var in module.globals.values() if var.init is not None}
    defined = Defined(rows, told_variables(text, rows), own)
    for var in module.globals.values():
        if not var.constant or replaceable(var.head.split()) or (var.name or "").startswith(ADDRESS):
            var.init, var.constant = None, var.constant and not replaceable(var.head.split())
            var.head = " ".join(["external", *(word for word in var.head.split() if word not in _LINKAGE)])
            var.tail = _COMDAT.sub("", var.tail)
    return to_text(module), defined, taken(text)


def _derivative(
    outside: str, defined: Mapping[str | None, bool], held: list[str], call: DerivativeCall, caller: str, body: str,
    name: str, said: Said, preopt: bool, whole: bool = True, checkpoint: tuple[tuple[str, Choice], ...] = (),
    *, shared: bool = False,
) -> _Made:
    """The derivative of one root; `defined`: the variables that the program defines, `held`: functions whose address it
    takes."""
    apart = said.kept_apart(outside)
    roots = [call.function.name or "", *_functions(call)]
    prepared = ""

    def once(text: str, leaving: bool, members: str = "") -> _Made:
        nonlocal prepared
        text = chunked(text, name, apart.__contains__ if apart else None) if shared else text
        prepared, thrown = _ready(text, name, apart, preopt, leaving, bool(members))
        call.throw(name.replace("root", "throw") if thrown else "")
        number = number_of(call, prepared, name) if call.split else 0
        made = _differentiated(outside, defined, call, prepared, name, said, checkpoint, shared=shared)
        return replace(made, thrown=thrown, number=number, ready=prepared)

    def either(text: str, leaving: bool) -> _Made:
        return perhaps_bounded(partial(once, text, leaving), lambda: text)

    def attempt(text: str) -> _Made:
        if not may_leave(outside, text, call, caller, whole=whole):
            return either(text, False)
        try:
            return either(without_limits(text), True)
        except IRGradError as error:
            made = either(text, False)
            warnings.warn(ends(call, error, name), stacklevel=2)
            return made

    try:
        return attempt(one_more(restrict(outside, roots)) + body)
    except IRGradError:
        again = dispatched(outside, prepared, roots, body, held) if prepared else None
        if again is None:
            raise
    return replace(attempt(one_more(again[0])), reached=tuple(again[1]))


def _ready(
    text: str, name: str, apart: frozenset[str], preopt: bool, leaving: bool, members: bool
) -> tuple[str, Thrown]:
    """Optimised for differentiation, without exceptions; those that leave the root, where they may."""
    from irgrad.engine.pipeline.derivatives import ready

    text, thrown = ready(text, name, apart.__contains__ if apart else None, preopt=preopt, leaving=leaving,
                         members=members)  # fmt: skip
    return text, named(thrown)


def may_be_shared(call: DerivativeCall) -> bool:
    """Whether worksharing loops of a derivative may be shared by a team."""
    return not (call.split or call.width > 1 or loose(call) or rounding(call) or call.derivation == "tangent")


def _derivative_of(call: DerivativeCall) -> Derivative:
    if call.derivation == "tangent":
        return "split_forward"
    return "split_reverse" if call.split else "jvp" if call.mode == "forward" else "vjp"


def _differentiated(
    outside: str, defined: Mapping[str | None, bool], call: DerivativeCall, text: str, name: str, said: Said,
    checkpoint: tuple[tuple[str, Choice], ...], *, shared: bool,
) -> _Made:
    """The same of a root that is ready."""
    from irgrad.engine.codegen.machine_costs import host_costs
    from irgrad.engine.differentiate.layout.shadow_types import Apart
    from irgrad.engine.differentiate.shared.request import Request
    from irgrad.engine.ir.printer import to_text
    from irgrad.engine.pipeline.derivatives import derive
    from irgrad.engine.support.limits import within_time

    programs = outline(outside).defined
    forward = call.derivation in ("forward", "tangent")
    request = Request(
        name, _derivative_of(call), tuple(active(call)), kept=kept(call), log=not call.untaped,
        strong_zero=strong(call), width=Apart(call.width) if call.width > 1 else 1,
        runtime_activity=loose(call), rounding=rounding(call), discard=unasked(call),
        approximate=True, checkpoint=checkpoint, elements=call.elements, fuse=True,
        costs=host_costs(),
    )  # fmt: skip
    questions = Questions(call)
    made = within_time(
        lambda: with_memory(
            text, request, defined, lambda module: said.rulebook(module, "forward" if forward else "reverse", programs),
            partial(derive, analysed=questions.analysed),
        ), f"differentiating `{call.function.name}`",
    )  # fmt: skip
    module, derived = made.module, made.derived
    said.called_by(made.book, module)
    undeclared = [formals_of(call)[i] for i in derived.scratch if i < len(formals_of(call))]
    if undeclared and not loose(call):
        formal = undeclared[0]
        raise Unsupported(
            f"active values go through parameter {formal.index + 1} of `{call.function.name}`",
            which=f"`{formal.name}`" if formal.name else "",
            because="it is enzyme_const, so that there is no shadow for them",
            fix="enzyme_dup (or enzyme_dupnoneed) with a shadow of zeros")
    made.leave_variables()
    assert derived.facts is not None, "no tape of the caller's here"
    slots = derived.facts.root.args[len(formals_of(call)) :]
    found = Found() if call.result.kind is None else numbers_in(derived.facts, call.result, slots[0])
    given = [numbers_given(derived.facts, said.held or formal.type, arg) if said.activity == "out" else ()
             for formal, said, arg in zip(formals_of(call), call.parameters, derived.facts.root.args, strict=False)]
    names = derivatives(call, derived.name)
    for own in names:
        for arg in module.functions[own].args:
            arg.attrs = ""  # pointers of a program may overlap
    questions.ask(module, derived)
    made_text = to_text(module)
    if shared:
        made_text = derivative_on_threads(made_text, names, call.function.name or "")
    constants = {var.name for var in module.globals.values() if var.constant}
    made_text = _private(made_text, names, constants)
    return _Made(derived.name, made_text, derived.scratch, replace(found, given=tuple(given)))


def unasked(call: DerivativeCall) -> tuple[int, ...]:
    """The parameters of the root whose final contents the call does not ask for: its result, unless it is returned,
    and memory that is enzyme_dupnoneed."""
    if call.split or rounding(call):
        return ()
    said = zip(formals_of(call), call.parameters, strict=True)
    unneeded = [p.activity == "dupnoneed" and formal.type.is_ptr and p.held is None for formal, p in said]
    result = [call.result.kind is not None and "primal_return" not in call.switches]
    return tuple(i for i, silent in enumerate(unneeded + result) if silent)


def _functions(call: DerivativeCall) -> list[str]:
    """Functions that are arguments of the call."""
    return [arg.name or "" for arg in call.instr.args if isinstance(arg, Function)]


def _private(text: str, names: Container[str], constants: Container[str | None]) -> str:
    """All is internal but the derivative, and the shadows that those who differentiate again have to find."""
    from irgrad.engine.codegen.llvm import parse

    module = parse(text)
    for value in (*module.functions, *module.global_variables):
        shadow = value.name.startswith("irgrad.") and ".shadow." in value.name and value.name not in constants
        if not (value.is_declaration or value.name in names or value.name.startswith("llvm.")):
            value.linkage = "external" if shadow else "internal"
    result = str(module)
    module.close()
    return result


def _linked(text: str, parts: list[str]) -> str:
    """The program with these modules. Parts are linked in pairs, and these in pairs: a link walks the whole target."""
    from irgrad.engine.codegen.llvm import binding, parse

    context: Any = binding().create_context()
    modules = [parse(part, context) for part in parts]
    while len(modules) > 1:
        for one, two in zip(modules[::2], modules[1::2], strict=False):
            one.link_in(two)
        modules = modules[::2]
    module = parse(text, context)
    for rest in modules:
        module.link_in(rest)
    result = str(module)
    module.close()
    return result


def _placed(error: IRGradError, call: DerivativeCall, name: str) -> IRGradError:
    """The same error in the user's words, with the place of the call."""
    said = {part: getattr(error, part).replace(f"@{name}", f"@{call.function.name}") for part in PARTS}
    if error.what.startswith("the external global"):
        said["because"] = "active values are stored in it; it holds more than floats, or the program does not define it"
        said["fix"] = "keep active values in local variables, arguments or variables of floats"
    called = _UNKNOWN.search(said["because"]) if isinstance(error, MissingRuleError) else None
    if called is not None:
        f = called[1]
        said["fix"] = (f"void *__enzyme_register_gradient_{f}[] = {{(void *){f}, (void *){f}_augmented, "
                       f"(void *){f}_reverse}};\n"
                       f"or void *__enzyme_register_derivative_{f}[] = {{(void *){f}, (void *){f}_forward}}; "
                       f"or void *__enzyme_inactivefn_{f}[] = {{(void *){f}}};\nor add the file that defines it")
    where = f"{said['where']}, " if error.where else ""
    said["where"] = f"{where}differentiated by {call.where}"
    return error.change(**said)

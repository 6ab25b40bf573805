"""`__enzyme_todense(load, store, more...)`: an address behind which two functions of the program stand for memory.

A load of `address + o` is `load(o, more...)`, a store `store(value, o, more...)`. During the call of a derivative such
memory behaves as memory: what was stored is loaded again, and when the call ends, `store` gets the last value of each
place that was stored to, in the order of the first stores. So compilers may forward, delay and drop accesses as they do
elsewhere, and each entry of a sparse Hessian comes once. Outside of derivatives each access is one call.

Every call that gets such an address becomes a call of a *wrapper*, into which all is inlined that the address reaches;
there the accesses are replaced. The address itself is a number that no memory has.

`enzyme_dupnoneed, NULL, shadow` in forward mode names an output that nobody wants: its memory is such an address too,
of zeros, without functions. Where what it holds only goes back into it, its accesses are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from irgrad.engine.analyses.memory.objects import resolve
from irgrad.engine.enzyme.address_flow import AddressFlow, accessed, address, moves_memory, refused
from irgrad.engine.enzyme.calls import DerivativeCall, Reader
from irgrad.engine.enzyme.names import annotation
from irgrad.engine.enzyme.sparse_functions import Memory, access_text, any_text, flush_text, loop_text
from irgrad.engine.enzyme.thunks import passing
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder, zero
from irgrad.engine.ir.model import (
    CallInfo,
    ConstExpr,
    ConstZero,
    Function,
    Instruction,
    Module,
    Value,
)
from irgrad.engine.ir.quoting import quoted_name
from irgrad.engine.ir.rewrite import replace_uses
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.runtime.sparse_memory import PREFIX, WORDS, sparse_text
from irgrad.rules.errors import Unsupported

__all__ = ["ADDRESS", "lower_addresses", "refuse_inside", "todense_text", "unwanted"]

ADDRESS = f"{PREFIX}address."
"""Functions that give such an address."""
_DERIVATIVE = "irgrad.call."  # functions in whose calls such memory behaves as memory
_MARK, _WRAPPER = f"{PREFIX}mark.", f"{PREFIX}call."
_DEPTH = 40
_HEAD = ty.array(WORDS, ty.I64)


def todense_text(reader: Reader, name: str) -> str:
    """The declaration that stands for the addresses of one call. Raises Unsupported where it is not of the form."""
    args, result = reader.args, reader.instr.type
    functions = [resolve(arg) for arg in args[:2]]
    if len(functions) < 2 or not all(isinstance(fn, Function) for fn in functions) or not result.is_ptr:
        raise reader.refuse(
            "__enzyme_todense takes two functions and returns a pointer",
            "the functions that stand for loads and stores are not known when compiling",
            "double *p = __enzyme_todense((void *)load, (void *)store, ...)",
        )
    load, store = (fn.ftype for fn in functions if isinstance(fn, Function))
    value = load.ret
    more = len(args) - 2
    fits = isinstance(value, ty.FloatType) and not load.vararg and not store.vararg and store.ret is ty.VOID
    if not fits or len(load.params) != more + 1 or len(store.params) != more + 2 or store.params[0] is not value:
        raise reader.refuse(
            "the functions of __enzyme_todense do not belong together",
            f"they are a `{load}` and a `{store}`, with {more} more arguments",
            "double load(size_t byte, ...) and void store(double value, size_t byte, ...), both with "
            "the arguments that follow them",
        )
    own = [*load.params[1:], *store.params[2:]]
    wrong = next((k for k, kind in enumerate(own) if kind is not args[2 + k % max(more, 1)].type), None)
    if wrong is not None or not (load.params[0].is_int and store.params[1].is_int):
        which = f"`{args[2 + wrong % more].type}` is given for `{own[wrong]}`" if wrong is not None else str(load)
        raise reader.refuse(
            "an argument of __enzyme_todense has another type than its functions want",
            which,
            "cast it; the place in memory is an integer, in bytes",
        )
    kinds = ", ".join(str(arg.type) for arg in args)
    return f"declare ptr @{quoted_name(name)}({kinds})\n"


def unwanted(instr: Instruction, number: int) -> str:
    """In a call of a forward derivative, addresses in place of outputs that are NULL and not needed; their text."""
    parts = []
    for i, (word, value) in enumerate(pairwise(instr.args)):
        literal = isinstance(value, ConstZero) or (isinstance(value, ConstExpr) and value.opcode == "inttoptr")
        if annotation(word) == "dupnoneed" and literal and value.type.is_ptr and instr.block is not None:
            name = f"{ADDRESS}null.{number}.{i}"
            b = Builder(instr.block, instr.block.instructions.index(instr))
            b.metadata = {"dbg": instr.metadata["dbg"]} if "dbg" in instr.metadata else {}
            instr.operands[i + 1] = b.call(Function(name, ty.function(ty.PTR, ())), [])
            parts.append(f"declare ptr @{name}()\n")
    return "".join(parts)


def refuse_inside(call: DerivativeCall, reached: Iterable[str]) -> None:
    """Raises Unsupported where what is differentiated makes such addresses itself."""
    if any(name.startswith(ADDRESS) for name in reached):
        raise Unsupported(f"`{call.function.name}` reaches a call of __enzyme_todense", where=call.where,
                          because="loads and stores through its address are calls of functions, and the address has "
                          "no shadow", fix="give the address to the derivative as an argument")


def lower_addresses(text: str) -> str:
    """The program without such addresses, once all derivatives are made."""
    return _Lowering(text).run() if ADDRESS in text else text


class _Lowering:
    def __init__(self, text: str) -> None:
        self.text = joined(text, sparse_text())
        self.memories: dict[str, Memory] = {}  # by the name of what gives their address
        self.functions: dict[str, str] = {}  # accesses
        self.values: dict[Value, Value] = {}  # of loads

    def run(self) -> str:
        for _ in range(_DEPTH):
            module = self._module()
            calls = self._wrap(module)
            if not calls:
                break
        else:
            raise Unsupported(
                "an address of __enzyme_todense reaches functions that call themselves",
                because=f"they were inlined {_DEPTH} times, and it still is an argument",
                fix="a loop in place of the recursion",
            )
        return self._replaced(module)

    # -- what reaches where --------------------------------------------------------------------------------------------

    def _module(self) -> Module:
        from irgrad.engine.ir.text.reader import materialise, read

        module = read(self.text, [])
        for fn in module.functions.values():
            if fn.lazy is not None and (ADDRESS in fn.lazy or _MARK in fn.lazy):
                materialise(fn, module)
        return module

    def _memory(self, instr: Instruction) -> Memory:
        name = instr.callee_name or ""
        if name not in self.memories:
            functions = [fn for arg in instr.args[:2] if isinstance(fn := resolve(arg), Function)]
            load, store = functions or (None, None)
            more = tuple(arg.type for arg in instr.args[2:])
            self.memories[name] = Memory(len(self.memories), load, store, more, False)
        return self.memories[name]

    def _more(self, origin: Instruction) -> list[Value]:
        """The arguments behind the address: the memory's head where there is one, and those of its functions."""
        given = (origin.callee_name or "").startswith(ADDRESS)
        return origin.args[2:] if given else origin.args

    def _flow(self, module: Module, fn: Function) -> AddressFlow:
        def gives(instr: Instruction) -> bool:
            given = instr.is_call and (instr.callee_name or "").startswith((ADDRESS, _MARK))
            if given:
                self._memory(instr)
            return given

        return AddressFlow(module, fn, whole=(fn.name or "").startswith(_WRAPPER)).follow(gives, _WRAPPER)

    # -- wrappers ------------------------------------------------------------------------------------------------------

    def _wrap(self, module: Module) -> bool:
        """One step inwards: calls that get addresses go to wrappers, and in wrappers are inlined. False: none left."""
        from irgrad.engine.ir.printer import to_text

        parts: list[str] = []
        functions = [fn for fn in module.functions.values() if not fn.is_declaration and fn.lazy is None]
        found = {fn: self._flow(module, fn) for fn in functions}
        moved = [(fn, call) for fn in functions for call in found[fn].calls if moves_memory(call)]
        called = [(fn, call) for fn in functions for call in found[fn].calls if not moves_memory(call)]
        for fn, call in called or moved:  # copies last, when all accesses are there and say what the memory holds
            if not called:
                parts.append(self._by_elements(module, call, found[fn]))
            if not (fn.name or "").startswith(_WRAPPER):
                parts.append(self._wrapper(call, found[fn]))
            elif call.call is not None:
                call.call.fn_attrs += " alwaysinline"
        if called or moved:
            self.text = self._inlined(joined(to_text(module), "\n".join(dict.fromkeys(parts))))
        return bool(called or moved)

    def _wrapper(self, call: Instruction, found: AddressFlow) -> str:
        """The text of the function that takes the place of one call, and gets what the addresses stand for."""
        info = call.call
        assert info is not None
        name, cached = f"{_WRAPPER}{len(self.memories)}", (call.callee_name or "").startswith(_DERIVATIVE)
        attrs = [*info.arg_attrs, *[""] * (len(call.args) - len(info.arg_attrs))]
        kept = [text if "sret" in text or "byval" in text else passing(text).strip() for text in attrs]
        params = [f"{arg.type} {kept[i]} %a{i}" for i, arg in enumerate(call.args)]
        lines, ends, parts, more = list[str](), list[str](), list[str](), list[Value]()
        args = params.copy()
        for origin in dict.fromkeys(o for arg in call.args if (o := found.origins.get(arg)) is not None):
            outer = self.memories[origin.callee_name or ""]
            memory = replace(outer, number=len(self.memories), cached=cached)
            mark, own = f"{_MARK}{memory.number}", self._more(origin)
            self.memories[mark] = memory
            given = [f"{arg.type} %m{memory.number}.{j}" for j, arg in enumerate(own)]
            params += given
            more += own
            parts.append(f"declare ptr @{mark}({', '.join(map(str, memory.kinds))})")
            if cached:
                head, flush = f"%s{memory.number}", f"{PREFIX}flush.{memory.number}"
                lines += [f"  {head} = alloca {_HEAD}, align 8",
                          f"  store {_HEAD} zeroinitializer, ptr {head}, align 8"]  # fmt: skip
                given = [f"ptr {head}", *given]
                ends.append(f"  call void @{flush}({', '.join(given)})")
                parts.append(flush_text(memory, flush))
            lines.append(f"  %h{memory.number} = call ptr @{mark}({', '.join(given)})")
            for i in (i for i, arg in enumerate(call.args) if found.origins.get(arg) is origin):
                lines += [f"  %i{i} = ptrtoint ptr %a{i} to i64", f"  %o{i} = sub i64 %i{i}, {outer.base}",
                          f"  %p{i} = getelementptr i8, ptr %h{memory.number}, i64 %o{i}"]  # fmt: skip
                args[i] = f"ptr %p{i}"
        ret, target = call.type, f"@{quoted_name(call.callee_name or '')}({', '.join(args)}) alwaysinline"
        lines += [f"  {'' if ret is ty.VOID else '%r = '}call {ret} {target}", *ends,
                  f"  ret {ret}{'' if ret is ty.VOID else ' %r'}"]  # fmt: skip
        ftype = ty.function(ret, tuple(value.type for value in (*call.args, *more)))
        call.operands = [*call.args, *more, Function(name, ftype)]
        call.call = CallInfo(ftype, ret_attrs=info.ret_attrs, arg_attrs=kept, cc=info.cc)
        return "\n".join([*parts, f"define internal {ret} @{name}({', '.join(params)}) {{", *lines, "}"])

    def _by_elements(self, module: Module, call: Instruction, found: AddressFlow) -> str:
        """Points a memset or a copy to a loop over numbers; that function's text."""
        origin = next(o for arg in call.args if (o := found.origins.get(arg)) is not None)
        memory, kinds = self.memories[origin.callee_name or ""], tuple(arg.type for arg in call.args[:3])
        there = [accessed(access) for access in found.accesses if found.origins[address(access)] is origin]
        numbers = [kind for kind in there if isinstance(kind, ty.FloatType)]
        value = memory.value if memory.load is not None or not numbers else numbers[0]
        if call.args[1] in found.origins and "memmove" in (call.callee_name or ""):
            raise refused(module, call, "memmove moves it, perhaps within itself")
        name = f"{PREFIX}{'fill' if 'memset' in (call.callee_name or '') else 'copy'}.{value}.{kinds[2]}"
        ftype = ty.function(ty.VOID, kinds)
        call.operands = [*call.args[:3], Function(name, ftype)]
        call.call = CallInfo(ftype)
        return loop_text(name, value, kinds[2], fill="fill" in name)

    def _inlined(self, text: str) -> str:
        from irgrad.engine.codegen.llvm import binding, parse, target_machine

        llvm: Any = binding()
        module = parse(text)
        builder = llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options(speed_level=1))
        inline = llvm.create_new_module_pass_manager()
        inline.add_always_inliner_pass()
        inline.run(module, builder)
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        for fn in module.functions:
            if fn.name.startswith(_WRAPPER) and not fn.is_declaration:
                passes.run(fn, builder)
        result = str(module)
        module.close()
        return result

    # -- accesses ------------------------------------------------------------------------------------------------------

    def _replaced(self, module: Module) -> str:
        from irgrad.engine.ir.printer import to_text

        for fn in [fn for fn in module.functions.values() if not fn.is_declaration and fn.lazy is None]:
            found = self._flow(module, fn)
            idle, self.values = self._idle(found), {}
            for instr in found.accesses:
                if self._access(module, instr, found, idle) and instr.block is not None:
                    instr.block.instructions.remove(instr)
            replace_uses(fn, self.values)
        parts = list(self.functions.values())
        for name, memory in self.memories.items():
            module.functions.pop(name, None)
            functions = (ty.PTR, ty.PTR) if name.startswith(ADDRESS) and memory.load is not None else ()
            kinds = ", ".join(map(str, (*functions, *memory.kinds)))
            parts.append(f"define internal ptr @{name}({kinds}) alwaysinline {{\n"
                         f"  ret ptr inttoptr (i64 {memory.base} to ptr)\n}}")  # fmt: skip
        return joined(to_text(module), "\n".join(parts))

    def _idle(self, found: AddressFlow) -> set[Instruction]:
        """Addresses without functions of which no value goes anywhere but back into their memory."""
        given = {origin for origin in found.origins.values() if origin is not None}
        loads = [(load, found.origins[address(load)]) for load in found.accesses if load.opcode == "load"]
        kept = {origin for load, origin in loads if origin is not None and not found.stays(load, origin)}
        return {o for o in given - kept if self.memories[o.callee_name or ""].load is None and not found.kept}

    def _access(self, module: Module, instr: Instruction, found: AddressFlow, idle: set[Instruction]) -> bool:
        """Puts what takes the place of an access before it, which is not used then; False where it stays."""
        origin, kind = found.origins[address(instr)], accessed(instr)
        if origin is None:
            return self._any(instr, found)
        if origin in idle:
            self.values.update({instr: zero(kind)} if instr.opcode == "load" else {})
            return True
        memory = self.memories[origin.callee_name or ""]
        if not memory.holds(kind):
            raise refused(module, instr, f"a `{kind}` is accessed there, and its functions know `{memory.value}`"
                          if memory.load is not None else "it is NULL, and its contents are used there")
        text = access_text(memory, instr.opcode, kind)
        self._called(instr, memory.access(instr.opcode, kind), self._more(origin), text)
        return True

    def _any(self, instr: Instruction, found: AddressFlow) -> bool:
        """The same where it is known when the program runs which memory it is."""
        kind = accessed(instr)
        marks = [o for o in found.origins if isinstance(o, Instruction) and found.origins[o] is o]
        memories = [self.memories[mark.callee_name or ""] for mark in marks]
        if kind.is_ptr or not any(memory.holds(kind) for memory in memories):
            return False
        for memory in memories:
            if memory.holds(kind):
                function = memory.access(instr.opcode, kind)
                self.functions[function.name or ""] = access_text(memory, instr.opcode, kind)
        name = f"{PREFIX}any.{instr.opcode}.{memories[0].number}.{kind}"
        values = [value for mark in marks for value in self._more(mark)]
        params = (*((kind,) if instr.opcode == "store" else ()), ty.I64, *(value.type for value in values))
        function = Function(name, ty.function(kind if instr.opcode == "load" else ty.VOID, params))
        self._called(instr, function, values, any_text(name, memories, instr.opcode, kind))
        return True

    def _called(self, instr: Instruction, function: Function, more: list[Value], text: str) -> None:
        assert instr.block is not None
        self.functions[function.name or ""] = text
        b = Builder(instr.block, instr.block.instructions.index(instr))
        place = b.cast("ptrtoint", address(instr), ty.I64)
        value = b.call(function, [*([] if instr.opcode == "load" else instr.operands[:1]), place, *more])
        if instr.opcode == "load":
            self.values[instr] = value

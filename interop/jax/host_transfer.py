"""Calls that stay on the host in programs of a GPU: kernels with `lib.kernel(..., device="cpu")`.

A kernel of a device cannot print, call BLAS or functions chosen at run time, recurse to a depth that nobody knows, or
fail with a message; a function of the host can. So the handler for CPUs gets another one around it, for XLA's platform
CUDA: it copies the operands to memory of the host, waits for the stream, calls the handler for CPUs with them, and
copies the results back. It is native code, holds no lock of Python, and finds CUDA's driver when it first runs
(`dlopen`), so that programs can be compiled and exported where there is none.

A handler says that it may not be recorded in a CUDA graph (its traits are 0): XLA then calls it each time.
"""

from __future__ import annotations

from typing import Any

from irgrad.engine.ir.text.entities import joined
from irgrad.engine.runtime.ir_writer import Writer, constant_text
from irgrad.engine.signature.prototype import quoted
from irgrad.interop.jax.handler import QUERY, TARGETS

__all__ = ["DRIVER", "ON_DEVICE", "register_transfer", "transfer_text"]

DRIVER = "libcuda.so.1"
"""NVIDIA's driver, as the system's loader finds it."""
_FUNCTIONS = {
    "context": "cuStreamGetCtx", "push": "cuCtxPushCurrent_v2", "pop": "cuCtxPopCurrent_v2",
    "fetch": "cuMemcpyDtoHAsync_v2", "bring": "cuMemcpyHtoDAsync_v2", "wait": "cuStreamSynchronize",
}  # fmt: skip
"""What is called of it."""
_TEXTS = {
    "absent": "irgrad: `%s` stays on the CPU, and the driver of the GPU was not found (libcuda.so.1)%.0d",
    "failed": "irgrad: `%s` stays on the CPU, and the driver of the GPU could not copy its arrays: CUDA error %d",
    "memory": "irgrad: `%s` stays on the CPU, and there is no memory for copies of its arrays%.0d",
}
_SIZES = bytes([0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 0, 8, 2, 0, 16])  # bytes of XLA's types, by their numbers
_FRAME, _BUFFER, _ALIGN = 176, 48, 64
_INTERNAL = 13  # the code of the error
_API, _CONTEXT, _COUNT, _RETURNED, _ARGS, _RETS = 16, 24, 56, 96, 72, 112  # in the call frame
_CREATE, _STREAM = 48, 48 + 8 * 4  # in the function table
ON_DEVICE: dict[str, Any] = {}
"""What is registered for CUDA, by name."""


def register_transfer(name: str) -> str:
    """Register a target of the host for programs of a GPU as well, once in a process; returns the name, its own."""
    import jax

    from irgrad.engine.codegen.jit import compile_module

    if name not in ON_DEVICE:
        target = TARGETS[name]
        compiled = compile_module(transfer_text(name, target.text), [name], strict_fp=target.strict_fp)
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(compiled.address(name)), platform="CUDA")
        ON_DEVICE[name] = compiled
    return name


def transfer_text(name: str, text: str) -> str:
    """The module of a handler for CPUs, its text, with one for CUDA around it under the same name."""
    inner, outer = quoted(f"{name}.on_host"), quoted(name)
    text = text.replace(f"define ptr @{outer}(", f"define internal ptr @{inner}(")
    head = QUERY.replace("@HANDLER", f"@{outer}")
    head += "  %result = call ptr @irgrad.transfer.run(ptr %call, ptr %args, ptr %rets)\n  ret ptr %result\n}\n"
    texts = [constant_text(f"irgrad.transfer.say.{word}", said) for word, said in _TEXTS.items()]
    texts += [constant_text(f"irgrad.transfer.find.{word}", said) for word, said in _FUNCTIONS.items()]
    texts += [f"@irgrad.transfer.{word} = internal global ptr null, align 8" for word in _FUNCTIONS]
    texts.append(constant_text("irgrad.transfer.name", name.split(".")[1] if "." in name else name))
    texts.append(constant_text("irgrad.transfer.library", DRIVER))
    sizes = ", ".join(f"i64 {size}" for size in _SIZES)
    texts.append(f"@irgrad.transfer.sizes = private unnamed_addr constant [{len(_SIZES)} x i64] [{sizes}]")
    return joined(text, "\n".join([*texts, _DECLARED, _driver(), _bytes(), _error(), _run(inner), head]))


_DECLARED = """
declare ptr @dlopen(ptr, i32)
declare ptr @dlsym(ptr, ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @snprintf(ptr, i64, ptr, ...)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly, ptr noalias readonly, i64, i1 immarg)
"""


def _driver() -> str:
    """`irgrad.transfer.driver()`: whether all functions of the driver are there. Threads that look at once find the
    same."""
    w = Writer("define internal i1 @irgrad.transfer.driver() noinline")
    last = f"@irgrad.transfer.{list(_FUNCTIONS)[-1]}"

    def known() -> str:
        return w.emit(f"icmp ne ptr {w.emit(f'load atomic ptr, ptr {last} acquire, align 8')}, null")

    with w.when(w.emit(f"xor i1 {known()}, true")):
        library = w.emit("call ptr @dlopen(ptr @irgrad.transfer.library, i32 2)")
        with w.when(w.emit(f"icmp ne ptr {library}, null")):
            found = [w.emit(f"call ptr @dlsym(ptr {library}, ptr @irgrad.transfer.find.{word})") for word in _FUNCTIONS]
            every = "true"
            for pointer in found:
                every = w.emit(f"and i1 {every}, {w.emit(f'icmp ne ptr {pointer}, null')}")
            with w.when(every):
                for word, pointer in zip(_FUNCTIONS, found, strict=True):
                    w.do(f"store atomic ptr {pointer}, ptr @irgrad.transfer.{word} release, align 8")
    return w.text(f"i1 {known()}")


def _bytes() -> str:
    """`irgrad.transfer.bytes(buffer)`: the size of an array."""
    w = Writer("define internal i64 @irgrad.transfer.bytes(ptr %buffer) noinline")
    kind = w.emit(f"zext i32 {w.load('i32', w.at('%buffer', '16'))} to i64")
    total = w.alloca("i64")
    w.do(f"store i64 {w.load('i64', '@irgrad.transfer.sizes', kind)}, ptr {total}")
    dims = w.load("ptr", w.at("%buffer", "40"))
    with w.loop(w.load("i64", w.at("%buffer", "32"))) as k:
        w.do(f"store i64 {w.mul(w.load('i64', total), w.load('i64', dims, k))}, ptr {total}")
    return w.text(f"i64 {w.load('i64', total)}")


def _error() -> str:
    """`irgrad.transfer.error(call, form, code)`: an error of XLA's."""
    w = Writer("define internal ptr @irgrad.transfer.error(ptr %call, ptr %form, i32 %code) noinline cold")
    room = 600
    buffer, words = w.alloca("i8", room), w.alloca("i64", 4)
    w.emit(f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {buffer}, i64 {room}, ptr %form, ptr @irgrad.transfer.name, "
           "i32 %code)")  # fmt: skip
    for number, word in enumerate(("i64 28", "i64 0", f"ptr {buffer}", f"i32 {_INTERNAL}")):
        w.do(f"store {word}, ptr {w.at(words, str(number), 'i64')}")
    create = w.load("ptr", w.at(w.load("ptr", w.at("%call", str(_API))), str(_CREATE)))
    return w.text(f"ptr {w.emit(f'call ptr {create}(ptr {words})')}")


def _run(inner: str) -> str:
    """`irgrad.transfer.run(call, args, rets)`: null, or an error of XLA's."""
    return _Run(Writer("define internal ptr @irgrad.transfer.run(ptr %call, ptr %args, ptr %rets)")).text(inner)


class _Run:
    """Writes that function. Where a step fails, its error is the result, and the steps behind it are left out."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self.result, self.code, self.place = w.alloca("ptr"), w.alloca("i32"), w.alloca("ptr")
        self.arguments, results = (w.load("i64", w.at("%call", str(at))) for at in (_COUNT, _RETURNED))
        self.count = w.add(self.arguments, results)
        self.stream = self.memory = self.pointers = self.buffers = ""

    def text(self, inner: str) -> str:
        w = self.w
        w.do(f"store ptr null, ptr {self.result}")
        w.do(f"store i32 0, ptr {self.code}")
        with w.when(w.emit(f"xor i1 {w.emit('call i1 @irgrad.transfer.driver()')}, true")):
            self.fail("absent")
        with w.when(self.good()):
            self.ask_stream()
        with w.when(self.good()):
            self.memory = w.emit(f"call ptr @malloc(i64 {self.room()})")
            with w.when(w.emit(f"icmp eq ptr {self.memory}, null")):
                self.fail("memory")
            with w.when(self.good()):
                self.in_context(inner)
            w.do(f"call void @free(ptr {self.memory})")
        return w.text(f"ptr {w.load('ptr', self.result)}")

    # -- steps --------------------------------------------------------------------------------------------------------

    def ask_stream(self) -> None:
        """XLA's stream of the call."""
        w, asked = self.w, self.w.alloca("i64", 4)
        context = w.load("ptr", w.at("%call", str(_CONTEXT)))
        for number, word in enumerate(("i64 32", "ptr null", f"ptr {context}", "ptr null")):
            w.do(f"store {word}, ptr {w.at(asked, str(number), 'i64')}")
        get = w.load("ptr", w.at(w.load("ptr", w.at("%call", str(_API))), str(_STREAM)))
        w.do(f"store ptr {w.emit(f'call ptr {get}(ptr {asked})')}, ptr {self.result}")
        self.stream = w.alloca("ptr")
        w.do(f"store ptr {w.load('ptr', w.at(asked, '24'))}, ptr {self.stream}")

    def room(self) -> str:
        """Bytes for a frame, pointers to its buffers, the buffers, and copies of all arrays."""
        w, total = self.w, self.w.alloca("i64")
        w.do(f"store i64 {w.add(w.mul(self.count, str(8 + _BUFFER)), str(_FRAME + 2 * _ALIGN))}, ptr {total}")
        with w.loop(self.count) as k:
            size = w.emit(f"call i64 @irgrad.transfer.bytes(ptr {self.original(k)})")
            w.do(f"store i64 {w.add(w.load('i64', total), _padded(w, size))}, ptr {total}")
        return w.load("i64", total)

    def in_context(self, inner: str) -> None:
        """The call between copies, in the stream's context, which need not be that of this thread."""
        w, context = self.w, self.w.alloca("ptr")
        self.stream = w.load("ptr", self.stream)
        self.ask("context", f"ptr {self.stream}", f"ptr {context}")
        self.ask("push", f"ptr {w.load('ptr', context)}")
        pushed = w.emit(f"icmp eq i32 {w.load('i32', self.code)}, 0")
        self.fetch()
        with w.when(self.good()):
            w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {self.memory}, ptr %call, i64 {_FRAME}, i1 false)")
            w.do(f"store ptr {self.pointers}, ptr {w.at(self.memory, str(_ARGS))}")
            w.do(f"store ptr {w.at(self.pointers, self.arguments, 'ptr')}, ptr {w.at(self.memory, str(_RETS))}")
            w.do(f"store ptr {w.emit(f'call ptr @{inner}(ptr {self.memory})')}, ptr {self.result}")
        with w.when(self.good()):
            self.bring()
        with w.when(pushed):
            w.emit(f"call i32 {w.load('ptr', '@irgrad.transfer.pop')}(ptr {context})")

    def fetch(self) -> None:
        """Buffers like those of the call with memory of the host, and the operands in it."""
        w = self.w
        self.pointers = w.at(self.memory, str(_FRAME))
        self.buffers = w.at(self.pointers, w.mul(self.count, "8"))
        start = w.emit(f"ptrtoint ptr {w.at(self.buffers, w.mul(self.count, str(_BUFFER)))} to i64")
        w.do(f"store ptr {w.emit(f'inttoptr i64 {_padded(w, start)} to ptr')}, ptr {self.place}")
        with w.loop(self.count) as k:
            original, own = self.original(k), self.copy(k)
            size = w.emit(f"call i64 @irgrad.transfer.bytes(ptr {original})")
            w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {own}, ptr {original}, i64 {_BUFFER}, i1 false)")
            w.do(f"store ptr {own}, ptr {w.at(self.pointers, k, 'ptr')}")
            address, here = w.load("ptr", w.at(original, "24")), w.load("ptr", self.place)
            w.do(f"store ptr {here}, ptr {w.at(own, '24')}")
            w.do(f"store ptr {w.at(here, _padded(w, size))}, ptr {self.place}")
            operand, some = w.compare("ult", k, self.arguments), w.compare("ne", size, "0")
            with w.when(w.emit(f"and i1 {operand}, {some}")):
                self.ask("fetch", f"ptr {here}", f"ptr {address}", f"i64 {size}", f"ptr {self.stream}")
            with w.when(w.emit(f"xor i1 {operand}, true")):
                self.share(own, address)
        self.ask("wait", f"ptr {self.stream}")
        self.look()

    def share(self, own: str, address: str) -> None:
        """A result that has the memory of an operand has that of its copy as well."""
        w = self.w
        with w.loop(self.arguments) as n:
            other = w.load("ptr", w.at(w.load("ptr", "%args", n), "24"))
            with w.when(w.emit(f"icmp eq ptr {other}, {address}")):
                w.do(f"store ptr {w.load('ptr', w.at(self.copy(n), '24'))}, ptr {w.at(own, '24')}")

    def bring(self) -> None:
        """The results go back."""
        w = self.w
        with w.loop(w.emit(f"sub i64 {self.count}, {self.arguments}")) as n:
            k = w.add(n, self.arguments)
            original = self.original(k)
            size = w.emit(f"call i64 @irgrad.transfer.bytes(ptr {original})")
            with w.when(w.compare("ne", size, "0")):
                here, there = (w.load("ptr", w.at(row, "24")) for row in (self.copy(k), original))
                self.ask("bring", f"ptr {there}", f"ptr {here}", f"i64 {size}", f"ptr {self.stream}")
        self.ask("wait", f"ptr {self.stream}")
        self.look()

    # -- parts of steps -----------------------------------------------------------------------------------------------

    def fail(self, word: str, code: str = "0") -> None:
        text = f"call ptr @irgrad.transfer.error(ptr %call, ptr @irgrad.transfer.say.{word}, i32 {code})"
        self.w.do(f"store ptr {self.w.emit(text)}, ptr {self.result}")

    def good(self) -> str:
        return self.w.emit(f"icmp eq ptr {self.w.load('ptr', self.result)}, null")

    def ask(self, word: str, *given: str) -> None:
        """Call a function of the driver unless one before has failed."""
        w, words = self.w, ", ".join(given)
        with w.when(w.emit(f"icmp eq i32 {w.load('i32', self.code)}, 0")):
            function = w.load("ptr", f"@irgrad.transfer.{word}")
            w.do(f"store i32 {w.emit(f'call i32 {function}({words})')}, ptr {self.code}")

    def look(self) -> None:
        """Whether the driver has failed."""
        w = self.w
        with w.when(w.emit(f"icmp ne i32 {w.load('i32', self.code)}, 0")):
            self.fail("failed", w.load("i32", self.code))

    def original(self, k: str) -> str:
        """The buffer k of the call: first the operands, then the results."""
        w = self.w
        behind, first = w.emit(f"sub i64 {k}, {self.arguments}"), w.compare("ult", k, self.arguments)
        rows = w.emit(f"select i1 {first}, ptr %args, ptr %rets")
        return w.load("ptr", rows, w.emit(f"select i1 {first}, i64 {k}, i64 {behind}"))

    def copy(self, k: str) -> str:
        """The buffer of the host that stands for it."""
        return self.w.at(self.buffers, self.w.mul(k, str(_BUFFER)))


def _padded(w: Writer, size: str) -> str:
    return w.emit(f"and i64 {w.add(size, str(_ALIGN - 1))}, -{_ALIGN}")

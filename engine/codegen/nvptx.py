"""Device code for NVIDIA GPUs: the same IR as PTX, through LLVM's NVPTX target.

Functions of mathematics stay intrinsics and calls of libm until here, after differentiation, and become those of
NVIDIA's libdevice, which is taken from a pip wheel and linked in. What a device cannot run is refused with its line
before LLVM sees the module: LLVM ends the process over an operation that it cannot select.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection, Sequence
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any

from irgrad.engine.codegen.llvm import binding, parse
from irgrad.engine.codegen.optimise import internalise_except
from irgrad.engine.codegen.passes import Code, Settings, llvm_pass, model_pass, run_passes, text_pass
from irgrad.engine.codegen.prepare import strip_target
from irgrad.engine.codegen.stack_loops import write_out_loops
from irgrad.engine.codegen.target import Target
from irgrad.engine.ir import types as ty
from irgrad.engine.ir.builder import Builder
from irgrad.engine.ir.locations import locate
from irgrad.engine.ir.model import Block, ConstExpr, Function, InlineAsm, Instruction, Module, Value
from irgrad.engine.ir.rewrite import declare
from irgrad.engine.ir.text.entities import joined
from irgrad.engine.ir.text.outline import outline
from irgrad.engine.runtime.arena import LOST_ON_DEVICE
from irgrad.engine.support.scratch import scratch_folder
from irgrad.rules.effects import facts
from irgrad.rules.errors import CompileError, LoadError, Unsupported

__all__ = [
    "DEVICE", "SAMPLE", "cubin", "identity", "libdevice", "nvidia", "ptx", "ptxas", "refuse_host_code", "resources",
]  # fmt: skip

_TRIPLE = "nvptx64-nvidia-cuda"
_ARCHITECTURE = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")
_NO_INLINE = re.compile(r"^(?:attributes #\d+ = \{|define )[^\n]* noinline[^\n]*$", re.M)
_NAMED = re.compile(r"@\"?([\w.$]+)")
_VARIABLE = re.compile(r"^@\"?([\w.$]+)\"? = [^\n]*?\bglobal\b", re.M)
_USED = re.compile(r"^@llvm\.(?:compiler\.)?used = [^\n]*\n", re.M)
_EMISSION = re.compile(r"emissionKind: \w+")
_INSTALL = 'pip install "nvidia-cuda-nvcc-cu12"   (CUDA 13: pip install "nvidia-nvvm" "nvidia-cuda-nvcc")'

_NATIVE = frozenset(
    "sqrt fma fmuladd fabs floor ceil trunc rint nearbyint roundeven minnum maxnum minimum maximum copysign is.fpclass"
    " canonicalize".split()
)
"""Intrinsics of floats that the target has, or that LLVM writes with others."""
_PLAIN = frozenset(
    "nvvm.read.ptx.sreg memcpy memmove memset lifetime.start lifetime.end assume expect"
    " experimental.noalias.scope.decl umin umax smin smax abs ctpop ctlz cttz bswap bitreverse fshl fshr"
    " uadd.sat sadd.sat usub.sat ssub.sat uadd.with.overflow sadd.with.overflow usub.with.overflow"
    " ssub.with.overflow umul.with.overflow smul.with.overflow trap fptosi.sat fptoui.sat is.constant objectsize"
    " ptrmask masked.load masked.store masked.gather masked.scatter vector.reduce.add vector.reduce.mul"
    " vector.reduce.and vector.reduce.or vector.reduce.xor vector.reduce.fadd vector.reduce.fmul"
    " vector.reduce.fmax vector.reduce.fmin vector.reduce.smax vector.reduce.smin vector.reduce.umax"
    " vector.reduce.umin".split()
)
"""Other intrinsics that may stay."""
_NO_FLOATS = frozenset(("x86_fp80", "fp128", "ppc_fp128"))
_REFUSED = {
    "invoke": "an exception", "landingpad": "an exception", "resume": "an exception", "va_arg": "a variable argument",
    "indirectbr": "a computed jump", "fence": "a fence between threads", "callbr": "a jump out of assembly",
}  # fmt: skip


def nvidia(architecture: str = "sm_90") -> Target:
    """The target of an architecture of NVIDIA's, `sm_90`. Raises LoadError for a name of another form."""
    if not _ARCHITECTURE.fullmatch(architecture):
        raise LoadError(f"`{architecture}` is no architecture of a GPU",
                        because="NVIDIA's are sm_80, sm_90, sm_100, ...", fix='architecture="sm_90"')  # fmt: skip
    return Target(architecture, lambda: _TRIPLE, lambda: architecture, lambda: "", vector_math=False,
                  initialise=_all_targets, code_model="default", reloc="default")  # fmt: skip


@cache
def _all_targets() -> None:
    llvm = binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


# -- what comes from NVIDIA's wheels --------------------------------------------------------------------------------


def _wheels(*places: str) -> Path | None:
    """The first of some files in the namespace package `nvidia`."""
    spec = util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec is not None else ():
        for place in places:
            if (path := Path(root, place)).is_file():
                return path
    return None


def _library() -> Path | None:
    return _wheels("cuda_nvcc/nvvm/libdevice/libdevice.10.bc", "cu13/nvvm/libdevice/libdevice.10.bc",
                   "cu12/nvvm/libdevice/libdevice.10.bc")  # fmt: skip


def libdevice() -> Path:
    """NVIDIA's library of mathematics for devices, as bitcode. Raises LoadError with the line that installs it."""
    found = _library()
    if found is None:
        raise LoadError("libdevice is not installed", because="functions of mathematics on NVIDIA's GPUs are in it, "
                        "and its licence does not allow to ship it", fix=_INSTALL)  # fmt: skip
    return found


def identity() -> str:
    """What PTX depends on besides its IR and this code: LLVM, libdevice."""
    library = _library()
    return f"LLVM {binding().llvm_version_info} {'' if library is None else library.stat().st_size}"


def ptxas() -> Path | None:
    """NVIDIA's assembler, None where its wheel is not installed."""
    return _wheels("cuda_nvcc/bin/ptxas", "cu13/bin/ptxas", "cu12/bin/ptxas")


@cache
def _symbols(path: Path) -> dict[str, str]:
    """The functions of a library with their types, as the disk cache has them."""
    from irgrad.engine.codegen.cache import default_cache, fingerprint

    store, key = default_cache(), fingerprint("libdevice", str(path), identity())
    kept = store.get("libdevice", key)
    if kept is not None:
        return dict(row.split("\t") for row in kept.decode().splitlines())
    module = binding().parse_bitcode(path.read_bytes(), context=binding().create_context())
    found = {f.name: str(f.global_value_type) for f in module.functions if not f.is_declaration}
    store.put("libdevice", key, "\n".join("\t".join(row) for row in found.items()).encode())
    return found


# -- what a device cannot run ---------------------------------------------------------------------------------------


def refuse_host_code(module: Module, known: Collection[str] = ()) -> None:
    """Raises Unsupported for what a device cannot run: calls of functions of the host, state of the program,
    exceptions, 80-bit numbers. known: functions that will get a body."""
    for variable in module.globals.values():
        if not variable.constant and not (variable.name or "").startswith("llvm."):
            raise _refused(f"`{variable.name}` is a variable of the program", _first_use(module, variable),
                           "samples would see what others wrote")  # fmt: skip
    for fn in module.functions.values():
        for instr in fn.instructions():
            refusal = _refusal(instr, known)
            if refusal is not None:
                raise _refused(refusal[0], locate(module, instr) or f"@{fn.name}", refusal[1])


def _first_use(module: Module, variable: Value) -> str:
    """The line of the first instruction that uses a variable and has one."""

    def uses(value: Value) -> bool:
        return value is variable or (isinstance(value, ConstExpr) and any(map(uses, value.operands)))

    users = (i for fn in module.functions.values() for i in fn.instructions() if any(map(uses, i.operands)))
    return next(filter(None, (locate(module, user) for user in users)), "")


def _refused(what: str, where: str, because: str) -> Unsupported:
    return Unsupported(f"a GPU cannot run this: {what}", where=where, because=because,
                       fix='leave it out of the function, or keep the kernel on the CPU: '
                           'lib.kernel("name", signature, device="cpu")')  # fmt: skip


def _refusal(instr: Instruction, known: Collection[str]) -> tuple[str, str] | None:
    """What a device cannot run of an instruction, and why; None where it can."""
    if instr.opcode in _REFUSED:
        return _REFUSED[instr.opcode], "device code has nothing to do it with"
    if instr.opcode == "alloca" and not hasattr(instr.operands[0], "value"):
        return "an array on the stack without a constant length", "devices reserve the stack beforehand"
    if any(str(value.type.scalar) in _NO_FLOATS for value in (instr, *instr.operands)):
        return "a number of 80 or 128 bits", "devices have f32, f64 and shorter ones"
    if instr.opcode == "frem" and instr.type not in (ty.F32, ty.F64):
        return "a remainder of vectors or short floats", "libdevice has those of f32 and f64"
    if not instr.is_call:
        return None
    if isinstance(instr.callee, InlineAsm):
        return "assembly", "it is that of another machine"
    if not isinstance(instr.callee, Function):
        return "a call through a pointer", "which function it calls is known when it runs"
    callee = instr.callee
    if callee.is_declaration and callee.name not in known and not _runs(callee):
        return f"a call of `{callee.name}`", "it has no body in this module and is none of libdevice"
    return None


def _runs(fn: Function) -> bool:
    name = fn.name or ""
    return device_name(fn) is not None or _stays(name) or name in _WRITTEN or name in _FAILURES


def _stays(name: str) -> bool:
    stem = name.removeprefix("llvm.")
    return name.startswith("llvm.") and any(stem == known or stem.startswith(f"{known}.") for known in _NATIVE | _PLAIN)


# -- mathematics ------------------------------------------------------------------------------------------------------


def device_name(fn: Function) -> str | None:
    """The function of libdevice in place of one of libm or an intrinsic, of the same type; None where it stays or there
    is none."""
    name = fn.name or ""
    if _stays(name) or not any(t in (ty.F32, ty.F64) for t in (fn.ftype.ret, *fn.ftype.params)):
        return None
    if name.startswith("llvm."):
        name = name.split(".")[1] + ("f" if fn.ftype.ret is ty.F32 else "")
    found = f"__nv_{name}"
    return found if _symbols(libdevice()).get(found) == str(fn.ftype) else None


_BODIES = {
    "sincos": """
define internal { T, T } @NAME(T %x) alwaysinline nounwind {
  %s = call T @llvm.sin.SUFFIX(T %x)
  %c = call T @llvm.cos.SUFFIX(T %x)
  %r0 = insertvalue { T, T } poison, T %s, 0
  %r1 = insertvalue { T, T } %r0, T %c, 1
  ret { T, T } %r1
}
declare T @llvm.sin.SUFFIX(T)
declare T @llvm.cos.SUFFIX(T)
""",
    "modf": """
define internal { T, T } @NAME(T %x) alwaysinline nounwind {
  %whole = call T @llvm.trunc.SUFFIX(T %x)
  %rest = fsub T %x, %whole
  %size = call T @llvm.fabs.SUFFIX(T %x)
  %infinite = fcmp oeq T %size, 0x7FF0000000000000
  %part = select i1 %infinite, T 0.0, T %rest
  %signed = call T @llvm.copysign.SUFFIX(T %part, T %x)
  %r0 = insertvalue { T, T } poison, T %signed, 0
  %r1 = insertvalue { T, T } %r0, T %whole, 1
  ret { T, T } %r1
}
declare T @llvm.trunc.SUFFIX(T)
declare T @llvm.fabs.SUFFIX(T)
declare T @llvm.copysign.SUFFIX(T, T)
""",
    "frexp": """
define internal { T, i32 } @NAME(T %x) alwaysinline nounwind {
  %place = alloca i32
  %m = call T @frexpLETTER(T %x, ptr %place)
  %e = load i32, ptr %place
  %r0 = insertvalue { T, i32 } poison, T %m, 0
  %r1 = insertvalue { T, i32 } %r0, i32 %e, 1
  ret { T, i32 } %r1
}
declare T @frexpLETTER(T, ptr)
""",
    "round": """
define internal WORD @NAME(T %x) alwaysinline nounwind {
  %whole = call T @llvm.KIND.SUFFIX(T %x)
  %r = fptosi T %whole to WORD
  ret WORD %r
}
declare T @llvm.KIND.SUFFIX(T)
""",
    "lost": LOST_ON_DEVICE,
}
_WRITTEN = {
    "irgrad.tape.lost": ("lost", "", "", ""),
    **{f"llvm.{stem}.{suffix}{'.i32' if stem == 'frexp' else ''}": (stem, suffix, "", "")
       for stem in ("sincos", "modf", "frexp") for suffix in ("f64", "f32")},
    **{f"llvm.{long}{kind}.{word}.{suffix}": ("round", suffix, word, kind)
       for long in ("l", "ll") for kind in ("round", "rint") for word in ("i32", "i64") for suffix in ("f64", "f32")},
}  # fmt: skip
"""What libdevice has not in this form, by intrinsics: the body, the float, the integer, the rounding."""


def write_intrinsics(text: str) -> str:
    """Intrinsics that libdevice does not have in this form get bodies."""
    for name in sorted(_WRITTEN.keys() & outline(text).functions):
        stem, suffix, word, kind = _WRITTEN[name]
        own = name.replace("llvm.", "irgrad.", 1)
        body = _BODIES[stem].replace("NAME", own).replace("SUFFIX", suffix).replace("WORD", word).replace("KIND", kind)
        body = body.replace("LETTER", "" if suffix == "f64" else "f")
        body = re.sub(r"\bT\b", "double" if suffix == "f64" else "float", body)
        rows = [row for row in text.splitlines() if not (row.startswith("declare ") and f"@{name}(" in row)]
        text = joined("\n".join(rows).replace(f"@{name}(", f"@{own}("), body)
    return text


def call_fmod(module: Module) -> None:
    """Remainders are calls of `fmod`: LLVM's own for this target, x - trunc(x / y) y, is wrong for large quotients."""
    for fn in list(module.functions.values()):
        for instr in fn.instructions():
            if instr.opcode == "frem":
                kind = instr.type
                callee = declare(module, "fmod" if kind is ty.F64 else "fmodf", kind, (kind, kind))
                call = Builder(Block()).call(callee, instr.operands)
                assert isinstance(call, Instruction)
                instr.opcode, instr.operands, instr.call, instr.flags = "call", call.operands, call.call, ()


_FAILURES = frozenset(("abort", "__assert_fail"))
"""Functions that end a program whose assertion has failed. (`irgrad.load` leaves assertions out, as zig does where it
optimises; `flags=["-UNDEBUG"]` keeps them.)"""


def trap_failures(module: Module) -> None:
    """A failed assertion and `abort` stop the launch, which is an error of CUDA; their texts are lost."""
    trap = None
    for fn in list(module.functions.values()):
        for instr in fn.instructions():
            if instr.is_call and instr.callee_name in _FAILURES and not getattr(instr.callee, "blocks", ()):
                trap = trap or declare(module, "llvm.trap", ty.VOID, ())
                call = Builder(Block()).call(trap, [])
                assert isinstance(call, Instruction)
                instr.operands, instr.call = call.operands, call.call


def use_libdevice(module: Module) -> None:
    """Calls of libm and intrinsics without an instruction become calls of libdevice."""
    for name, fn in list(module.functions.items()):
        made = device_name(fn) if fn.is_declaration else None
        if made is None:
            continue
        del module.functions[name]
        existing = module.functions.setdefault(made, fn)
        if existing is fn:
            fn.name, fn.tail, fn.head = made, "nounwind", ""
            continue
        for other in module.functions.values():
            for instr in other.instructions():
                instr.operands = [existing if o is fn else o for o in instr.operands]


def drop_debug_information(text: str) -> str:
    """The lines of the source stay out of the machine code; messages have used them."""
    return _EMISSION.sub("emissionKind: NoDebug", text)


# -- machine code -----------------------------------------------------------------------------------------------------


def for_device(code: Code, settings: Settings) -> None:
    """The module gets the target's data layout and triple."""
    machine = settings.machine
    head = f'target datalayout = "{machine.target_data}"\ntarget triple = "{_TRIPLE}"\n'
    kept = [row for row in code.text.splitlines() if not row.startswith(("target datalayout", "target triple"))]
    code.text = head + "\n".join(kept) + "\n"


def link_libdevice(code: Code, settings: Settings) -> None:
    """libdevice is linked in, and what nobody calls of it goes."""
    if not any(fn.name.startswith("__nv_") for fn in code.llvm.functions):
        return
    llvm = binding()
    context = llvm.create_context()
    module = parse(code.text, context)
    library = llvm.parse_bitcode(libdevice().read_bytes(), context=context)
    library.triple, library.data_layout = module.triple, module.data_layout
    module.link_in(library)
    _keep_entries(module, settings)
    code.text = str(module)  # read anew: LLVM's passes do not accept the module as it is linked
    module.close()


def internalise(code: Code, settings: Settings) -> None:
    """Only entries stay visible, and what nobody calls goes."""
    _keep_entries(code.llvm, settings)


def _keep_entries(module: Any, settings: Settings) -> None:
    llvm = binding()
    internalise_except(module, settings.roots)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(settings.machine, llvm.create_pipeline_tuning_options()))


def optimise_for_device(code: Code, settings: Settings) -> None:
    """LLVM's pipeline without vectorisation, since lanes are the threads, and without unrolling: small loops of
    constant length have been unrolled before differentiation, those over arrays of the stack are marked for it
    (`stack_loops.py`), and unrolling the others takes registers until they spill
    (measured: 504 against 120 bytes of stack for a Gaussian mixture, 255 against 134 registers for a network)."""
    llvm = binding()
    options = llvm.create_pipeline_tuning_options(speed_level=settings.level)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(settings.machine, options)
    builder.getModulePassManager().run(code.llvm, builder)


def inline_memory(code: Code, settings: Settings) -> None:
    """What the roots call, functions that reserve memory or use a variable, and those that call them, become parts of
    the roots, as far as they do not call themselves: memory is that of a sample. Functions that are kept stay calls,
    and are roots in this."""
    code.text = _NO_INLINE.sub(lambda row: row[0].replace(" noinline", "").replace(" optnone", ""), code.text)
    bodies = [function for function in code.llvm.functions if not function.is_declaration]
    kept = {function.name for function in bodies if settings.keep is not None and settings.keep(function.name)}
    roots = {*settings.roots, *kept}
    calls = {function.name: set(_NAMED.findall(str(function))) for function in bodies}
    wanted = {name for root in roots for name in calls.get(root, ())} | set(_VARIABLE.findall(code.text))
    wanted |= {name for name, called in calls.items() if any(map(_reserves, called))}
    while more := {name for name, called in calls.items() if called & wanted} - wanted:
        wanted |= more
    for function in bodies:
        if function.name in kept:
            function.add_function_attribute("noinline")
        elif function.name in wanted and function.name not in roots:
            function.add_function_attribute("alwaysinline")


def _reserves(name: str) -> bool:
    known = None if name.startswith(("llvm.", "irgrad.")) else facts(name)
    return name.startswith(("irgrad.tape.", "llvm.stacksave")) or (known is not None and known.kind != "pure")


def drop_used(text: str) -> str:
    """Variables that are kept only for a linker or a debugger go."""
    return _USED.sub("", text)


SAMPLE = (
    text_pass("drop-used", drop_used),
    llvm_pass("inline-memory", inline_memory),
    llvm_pass("internalise", internalise),
    llvm_pass("optimise-for-device", optimise_for_device),
)
"""A function of one sample with all that it calls inside, its sizes as constants where they are."""
DEVICE = (
    text_pass("strip-target", strip_target),
    text_pass("write-intrinsics", write_intrinsics),
    model_pass("refuse-host-code", refuse_host_code),
    model_pass("trap-failures", trap_failures),
    model_pass("call-fmod", call_fmod),
    model_pass("write-out-loops", write_out_loops),
    model_pass("use-libdevice", use_libdevice),
    text_pass("drop-debug-information", drop_debug_information),
    llvm_pass("for-device", for_device),
    llvm_pass("link-libdevice", link_libdevice),
    llvm_pass("internalise", internalise),
    llvm_pass("optimise-for-device", optimise_for_device),
)
"""From a module with its kernels to one that is ready for code generation on a device."""


def ptx(text: str, entries: Sequence[str], architecture: str = "sm_90") -> str:
    """The module as PTX; `entries` are its kernels. Raises Unsupported for what a device cannot run, LoadError where
    libdevice is needed and not installed."""
    from irgrad.engine.codegen.jit import LLVM_LOCK

    with LLVM_LOCK:
        machine = nvidia(architecture).machine()
        code = run_passes(DEVICE, Code(text, roots=entries), Settings(tuple(entries), machine=machine))
        try:
            return str(machine.emit_assembly(code.llvm))
        finally:
            code.close()


def _run_ptxas(source: str, architecture: str, *arguments: str) -> tuple[bytes, str]:
    tool = ptxas()
    if tool is None:
        raise LoadError("ptxas is not installed", because="it makes machine code of PTX", fix=_INSTALL)
    with scratch_folder("ptxas") as folder:
        path, output = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        path.write_text(source)
        done = subprocess.run([tool, f"-arch={architecture}", *arguments, path, "-o", output], capture_output=True,
                              text=True, check=False, timeout=600)  # fmt: skip
        if done.returncode != 0:
            raise CompileError("ptxas does not accept the PTX", because=(done.stderr or done.stdout).strip()[:2000],
                               fix="this is an error of irgrad: report it with the source")  # fmt: skip
        return output.read_bytes(), done.stderr + done.stdout


def cubin(source: str, architecture: str) -> bytes:
    """PTX as machine code of an architecture. Raises LoadError where ptxas is not installed, CompileError where it
    refuses."""
    return _run_ptxas(source, architecture)[0]


def resources(source: str, architecture: str) -> dict[str, int]:
    """What a kernel takes, by ptxas: `registers`, bytes of `stack`, `spilled` and `loaded` back."""
    said = _run_ptxas(source, architecture, "-v")[1]
    found = {word: re.search(pattern, said) for word, pattern in _SAID.items()}
    return {word: int(match[1]) if match else 0 for word, match in found.items()}


_SAID = {
    "registers": r"Used (\d+) registers", "stack": r"(\d+) bytes stack frame", "spilled": r"(\d+) bytes spill stores",
    "loaded": r"(\d+) bytes spill loads",
}  # fmt: skip

"""Names of LLVM's intrinsics: what may be called `llvm.*`.

LLVM takes a call of an intrinsic that does not exist for a call of an external function and dies in code generation, so
unknown names are refused before LLVM sees them. The names are those of LLVM 22, without the ones that exist for the
code generator's own use, for other languages' runtimes (coroutines, garbage collection, Windows exceptions), or whose
misuse ends the process (`read_register`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from irgrad.engine.ir import types as ty
from irgrad.engine.ir.types import Type

PURE = "nounwind willreturn memory(none)"
SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "x86_fp80": "f80", "fp128": "f128"}

GENERIC: frozenset[str] = frozenset(
    """
abs acos alloc.token.id allow.runtime.check allow.sanitize.address allow.sanitize.hwaddress
allow.sanitize.memory allow.sanitize.thread allow.ubsan.check annotation arithmetic.fence asin assume atan atan2
bitreverse bswap canonicalize ceil clmul convert.from.fp16 convert.to.fp16 copysign cos cosh ctlz ctpop cttz
dbg.assign dbg.declare dbg.label dbg.value debugtrap donothing eh.dwarf.cfa eh.typeid.for exp exp10 exp2 expect
expect.with.probability experimental.constrained.acos experimental.constrained.asin
experimental.constrained.atan experimental.constrained.atan2 experimental.constrained.ceil
experimental.constrained.cos experimental.constrained.cosh experimental.constrained.exp
experimental.constrained.exp2 experimental.constrained.fadd experimental.constrained.fcmp
experimental.constrained.fcmps experimental.constrained.fdiv experimental.constrained.floor
experimental.constrained.fma experimental.constrained.fmul experimental.constrained.fmuladd
experimental.constrained.fpext experimental.constrained.fptosi experimental.constrained.fptoui
experimental.constrained.fptrunc experimental.constrained.frem experimental.constrained.fsub
experimental.constrained.ldexp experimental.constrained.llrint experimental.constrained.llround
experimental.constrained.log experimental.constrained.log10 experimental.constrained.log2
experimental.constrained.lrint experimental.constrained.lround experimental.constrained.maximum
experimental.constrained.maxnum experimental.constrained.minimum experimental.constrained.minnum
experimental.constrained.nearbyint experimental.constrained.pow experimental.constrained.powi
experimental.constrained.rint experimental.constrained.round experimental.constrained.roundeven
experimental.constrained.sin experimental.constrained.sinh experimental.constrained.sitofp
experimental.constrained.sqrt experimental.constrained.tan experimental.constrained.tanh
experimental.constrained.trunc experimental.constrained.uitofp experimental.cttz.elts
experimental.get.vector.length experimental.memset.pattern experimental.noalias.scope.decl
experimental.vector.compress experimental.vector.histogram.add experimental.vector.histogram.uadd.sat
experimental.vector.histogram.umax experimental.vector.histogram.umin experimental.vector.match fabs fake.use
floor fma fmuladd fptosi.sat fptoui.sat frameaddress frexp fshl fshr get.dynamic.area.offset get.fpenv
get.fpmode get.rounding invariant.end invariant.start is.constant is.fpclass launder.invariant.group ldexp
lifetime.end lifetime.start llrint llround load.relative
log log10 log2 lrint lround masked.compressstore masked.expandload
masked.gather masked.load masked.scatter masked.store matrix.column.major.store matrix.multiply matrix.transpose
maximum maximumnum maxnum memcpy memcpy.element.unordered.atomic memcpy.inline memmove
memmove.element.unordered.atomic memset memset.element.unordered.atomic memset.inline minimum minimumnum minnum
modf nearbyint objectsize pow powi prefetch pseudoprobe ptr.annotation ptrmask readcyclecounter
readsteadycounter reset.fpenv reset.fpmode returnaddress rint round roundeven sadd.sat sadd.with.overflow scmp
sdiv.fix sdiv.fix.sat set.fpenv set.fpmode set.rounding sideeffect sin sincos sinh smax smin smul.fix
smul.fix.sat smul.with.overflow sqrt ssa.copy sshl.sat ssub.sat ssub.with.overflow stackaddress stackguard
stackprotector stackrestore stacksave strip.invariant.group tan tanh thread.pointer threadlocal.address trap
trunc type.test uadd.sat uadd.with.overflow ubsantrap ucmp udiv.fix udiv.fix.sat umax umin umul.fix umul.fix.sat
umul.with.overflow ushl.sat usub.sat usub.with.overflow va_copy va_end va_start var.annotation
vector.deinterleave2 vector.deinterleave3 vector.deinterleave4 vector.deinterleave5 vector.deinterleave6
vector.deinterleave7 vector.deinterleave8 vector.extract vector.insert vector.interleave2 vector.interleave3
vector.interleave4 vector.interleave5 vector.interleave6 vector.interleave7 vector.interleave8
vector.partial.reduce.add vector.partial.reduce.fadd vector.reduce.add vector.reduce.and vector.reduce.fadd
vector.reduce.fmax vector.reduce.fmaximum vector.reduce.fmin vector.reduce.fminimum vector.reduce.fmul
vector.reduce.mul vector.reduce.or vector.reduce.smax vector.reduce.smin vector.reduce.umax vector.reduce.umin
vector.reduce.xor vector.reverse vector.splice.left vector.splice.right vp.abs vp.add vp.and vp.ashr
vp.bitreverse vp.bswap vp.ceil vp.copysign vp.ctlz vp.ctpop vp.cttz vp.cttz.elts vp.fabs vp.fadd vp.fcmp vp.fdiv
vp.floor vp.fma vp.fmul vp.fmuladd vp.fneg vp.fpext vp.fptosi vp.fptoui vp.fptrunc vp.frem vp.fshl vp.fshr
vp.fsub vp.gather vp.icmp vp.inttoptr vp.is.fpclass vp.llrint vp.load vp.load.ff vp.lrint vp.lshr vp.maximum
vp.maxnum vp.merge vp.minimum vp.minnum vp.mul vp.nearbyint vp.or vp.ptrtoint vp.reduce.add vp.reduce.and
vp.reduce.fadd vp.reduce.fmax vp.reduce.fmaximum vp.reduce.fmin vp.reduce.fminimum vp.reduce.fmul vp.reduce.mul
vp.reduce.or vp.reduce.smax vp.reduce.smin vp.reduce.umax vp.reduce.umin vp.reduce.xor vp.rint vp.round
vp.roundeven vp.roundtozero vp.sadd.sat vp.scatter vp.sdiv vp.select vp.sext vp.shl vp.sitofp vp.smax vp.smin
vp.sqrt vp.srem vp.ssub.sat vp.store vp.sub vp.trunc vp.uadd.sat vp.udiv vp.uitofp vp.umax vp.umin vp.urem
vp.usub.sat vp.xor vp.zext
""".split()
)
"""Intrinsics of every target, without `llvm.` and without the types at their end."""

_TARGETS = {"x86": ("x86_64", "i386", "i686"), "nvvm": ("nvptx",), "aarch64": ("aarch64", "arm64")}
_MANGLED = re.compile(r"(nx)?(v\d+)?(i\d+|f\d+|bf16|ppcf128|p\d+|a\d+\w+|sl?_\w+|isVoid|Metadata)")


@lru_cache(maxsize=1)
def target_names() -> frozenset[str]:
    """Intrinsics of x86, NVPTX and AArch64 (with SVE and SME left out), without `llvm.`."""
    return frozenset(Path(__file__).with_name("target_intrinsics.txt").read_text().split())


def is_known(name: str, triple: str = "") -> bool:
    """True if `name` (`llvm.sin.f64`) is an intrinsic that code for `triple` may call (empty: any target)."""
    body = name.removeprefix("llvm.")
    family = body.partition(".")[0]
    if family in _TARGETS:
        fits = not triple or triple.startswith(_TARGETS[family])
        return fits and (body in target_names() or _stem(body, target_names()))
    return body in GENERIC or _stem(body, GENERIC)


def _stem(body: str, table: frozenset[str]) -> bool:
    """Some beginning of the name is in the table and every part behind it is the name of a type."""
    parts = body.split(".")
    for end in range(len(parts) - 1, 0, -1):
        if not _MANGLED.fullmatch(parts[end]):
            return False
        if ".".join(parts[:end]) in table:
            return True
    return False


def type_suffix(type_: Type) -> str:
    """The overload suffix of an intrinsic: f64, v4f32, i32, p0."""
    if isinstance(type_, ty.VectorType):
        return f"v{type_.count}{type_suffix(type_.elem)}"
    if type_.is_ptr:
        return "p0"
    return SUFFIX.get(str(type_), str(type_))

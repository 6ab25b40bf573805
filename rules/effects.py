"""What well-known functions without a body do: to memory, to control flow, to derivatives.

Sources: the C and POSIX standards, the Itanium C++ ABI, LLVM's language reference. Functions that fill a buffer of the
caller with fresh data (fread, scanf, ...) are left out on purpose: calling one on active memory has to be an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from irgrad.rules.expressions.costs import LIBRARY_CALL, SHIPPED, Costs
from irgrad.rules.lookup import find, reduction

__all__ = ["EXCEPTION_HEADER", "STREAMS", "CallFacts", "Kind", "cost", "facts", "lanewise", "prints"]

STREAMS = frozenset(["stdin", "stdout", "stderr", "__stdinp", "__stdoutp", "__stderrp"])
"""Variables of the C library that lead to its own memory, and from there to none of a program."""

EXCEPTION_HEADER = 64
"""Bytes before an exception of C++ that are used for what is known of it. In memory of the C++ runtime they are the
last ones of its own header, which it only reads once an exception was thrown with it; it expects zeros there."""

Kind = Literal["pure", "inactive", "allocator", "allocator_out", "deallocator", "reallocator", "copy", "fill"]


@dataclass(frozen=True, slots=True)
class CallFacts:
    """Facts about one callee. Arguments are numbered from 0; -1 stands for "has none".

    kind      pure: no memory effect beyond `writes`; inactive: keeps its place, carries no derivative; allocator:
              returns fresh memory; allocator_out: stores a pointer to fresh memory through `pointer`; deallocator;
              reallocator; copy: `size` bytes from `source` to `pointer`; fill: `size` bytes at `pointer` with `value`
    sizes     arguments whose product is the number of bytes allocated
    header    bytes in front of what an allocator returns, or a deallocator takes, that belong to it
    reads     pointer arguments that are read through; None: any memory the callee can reach
    writes    the same for writing
    captures  pointer arguments that may be kept (one that is merely returned is in `returns`)
    returns   the argument that is returned, perhaps displaced, else None
    keeps     (a, b): a pointer into the memory of argument b is stored through argument a, unless that is null
    inactive  no derivative flows through the call: neither into its result nor through memory
    """

    kind: Kind
    reads: tuple[int, ...] | None = ()
    writes: tuple[int, ...] | None = ()
    captures: tuple[int, ...] | None = ()
    pointer: int = -1
    source: int = -1
    size: int = -1
    value: int = -1
    sizes: tuple[int, ...] = ()
    header: int = 0
    zeroed: bool = False
    returns: int | None = None
    keeps: tuple[int, int] | None = None
    inactive: bool = False
    noreturn: bool = False
    writes_errno: bool = False

    @property
    def may_read_args(self) -> bool:
        return self.reads is None or bool(self.reads)

    @property
    def may_write_args(self) -> bool:
        return self.writes is None or bool(self.writes)

    @property
    def allocates(self) -> bool:
        """Returns memory that nothing else points to."""
        return self.kind == "allocator"

    @property
    def frees(self) -> int | None:
        """The argument whose memory is gone afterwards."""
        return self.pointer if self.kind in ("deallocator", "reallocator") else None

    @property
    def moves(self) -> int | None:
        """The argument whose contents are in the memory returned."""
        return self.pointer if self.kind == "reallocator" else None

    @property
    def copy(self) -> tuple[int, int, int] | None:
        """(destination, source, number of bytes)."""
        return (self.pointer, self.source, self.size) if self.kind == "copy" else None

    @property
    def fill(self) -> tuple[int, int, int] | None:
        """(destination, byte, number of bytes)."""
        return (self.pointer, self.value, self.size) if self.kind == "fill" else None


def _copy(destination: int = 0, source: int = 1, returns: int | None = 0) -> CallFacts:
    return CallFacts("copy", reads=(source,), writes=(destination,), pointer=destination, source=source, size=2,
                     returns=returns)  # fmt: skip


def _fill(returns: int | None = 0) -> CallFacts:
    return CallFacts("fill", writes=(0,), pointer=0, value=1, size=2, returns=returns)  # fmt: skip


_NOTHING = CallFacts("pure")
_NO_DERIVATIVE = CallFacts("pure", inactive=True)
_SILENT = CallFacts("inactive", inactive=True)
_PRINTS = CallFacts("inactive", reads=None, inactive=True, writes_errno=True)
_STOPS = CallFacts("inactive", reads=None, inactive=True, noreturn=True)
_CONSTANT = CallFacts("inactive", reads=None, writes=None, inactive=True)
_STREAM = CallFacts("inactive", reads=None, returns=0, inactive=True)
_MESSAGE = CallFacts("inactive", reads=(0, 1), writes=(0,), inactive=True)
_WRITTEN = CallFacts("inactive", reads=None, writes=(0,), inactive=True, writes_errno=True)
_TEXT = CallFacts("inactive", reads=None, writes=None, captures=(0,), returns=0, inactive=True)
_METHOD = CallFacts("inactive", reads=None, writes=(0, 1), inactive=True)


# BLAS: which element is the largest or smallest. Fortran's functions take their numbers by reference.
_WHERE = re.compile(r"(?:scipy_)?(?P<c>cblas_)?i[sd]a(?:max|min)(?(c)(?:_64|64_|_64_|)|(?:_|_64_))")


def _inspects(*args: int, returns: int | None = None) -> CallFacts:
    """Reads strings or bytes and returns an integer, or a pointer into argument `returns`."""
    return CallFacts("inactive", reads=args, returns=returns, inactive=True)


def _stores(*args: int) -> CallFacts:
    """Writes integers (times, seeds) through pointers; no float changes."""
    return CallFacts("inactive", reads=args, writes=args, inactive=True)


_GROUPS: tuple[tuple[CallFacts, str], ...] = (
    (_PRINTS,
     "printf fprintf vprintf vfprintf dprintf puts fputs putchar putc fputc fwrite fflush perror write fsync "
     "__printf_chk "
     "__fprintf_chk __vprintf_chk __vfprintf_chk putchar_unlocked fwrite_unlocked fputs_unlocked fputc_unlocked syslog "
     "puts_unlocked fopen fclose fopen64 setbuf setvbuf setlocale system remove rename"),
    (_STOPS,
     "abort exit _exit _Exit quick_exit __assert_fail __assert_rtn __assert __assert_perror_fail "
     "__stack_chk_fail __chk_fail "
     "__cxa_throw __cxa_rethrow __cxa_bad_cast __cxa_bad_typeid __cxa_pure_virtual __cxa_throw_bad_array_new_length "
     "_ZSt9terminatev _Unwind_Resume longjmp __clang_call_terminate rust_begin_unwind _gfortran_stop_string "
     "_gfortran_error_stop_string _gfortran_runtime_error _gfortran_runtime_error_at _gfortran_os_error "
     "_gfortran_os_error_at __cxa_deleted_virtual irgrad.panic "
     "irgrad.tape.throws irgrad.tape.throws_format irgrad.tape.ends"),
    (_SILENT,
     "irgrad.cpuid rand random lrand48 mrand48 drand48 srand srandom srand48 arc4random clock usleep sleep sched_yield "
     "getpid getppid "
     "omp_get_thread_num omp_get_num_threads omp_get_max_threads omp_get_wtime omp_get_num_procs omp_in_parallel "
     "omp_set_num_threads __errno_location __error __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc "
     "__cxa_guard_acquire "
     "__cxa_guard_release __cxa_guard_abort __cxa_atexit __cxa_thread_atexit atexit __cxa_begin_catch __cxa_end_catch "
     "__gxx_personality_v0 rust_eh_personality sysconf "
     "mach_absolute_time "
     "fegetround fesetround feclearexcept fetestexcept feraiseexcept localeconv isatty fileno getpagesize"),
    (_NO_DERIVATIVE,
     "abs labs llabs isalpha isdigit isspace isalnum isupper islower isprint ispunct isxdigit toupper tolower "
     "ffs ffsl ffsll "
     "htons htonl ntohs ntohl"),
    (_inspects(0), "_ZSt11_Hash_bytesPKvmm _ZSt15_Fnv_hash_bytesPKvmm"),  # hashes of strings, in libstdc++
    (_inspects(0), "strlen atoi atol atoll atof getenv access unlink __strlen_chk wcslen malloc_usable_size"),
    (_inspects(0, 1), "strcmp strcasecmp strcoll strncmp strncasecmp memcmp bcmp strspn strcspn strnlen"),
    (_inspects(0, returns=0), "strchr strrchr memchr index rindex rawmemchr strchrnul memrchr "
     "__dynamic_cast"),
    (_inspects(0, 1, returns=0), "strstr strpbrk strcasestr"),
    (_stores(0), "time times getrusage rand_r drand48_r gettimeofday ftime"),
    (_stores(2), "sched_getaffinity"),
    (_inspects(1), "__sched_cpucount"),
    (_stores(1), "clock_gettime timespec_get clock_getres getitimer"),
    (CallFacts("inactive", reads=(0,), writes=(1,), keeps=(1, 0), inactive=True),
     "strtod strtof strtold strtol strtoll strtoul strtoull"),
    (CallFacts("inactive", reads=(0, 1), writes=(0,), returns=0, inactive=True),
     "strcpy strncpy strcat strncat stpcpy __strcpy_chk __strcat_chk __strncpy_chk"),
    (CallFacts("inactive", reads=None, writes=(0,), inactive=True),
     "sprintf snprintf vsprintf vsnprintf __sprintf_chk __snprintf_chk __vsnprintf_chk strftime"),
    (_copy(), "memcpy memmove mempcpy __memcpy_chk __memmove_chk __mempcpy_chk"),
    (_copy(1, 0, None), "bcopy"),
    (_fill(), "memset __memset_chk"),
    (CallFacts("allocator", sizes=(0,), writes_errno=True), "malloc valloc pvalloc"),
    (CallFacts("allocator", sizes=(0, 1), zeroed=True, writes_errno=True), "calloc"),
    (CallFacts("allocator", sizes=(1,), writes_errno=True), "aligned_alloc memalign"),
    (CallFacts("allocator_out", writes=(0,), pointer=0, sizes=(2,)), "posix_memalign"),
    (CallFacts("allocator", sizes=(0,), header=EXCEPTION_HEADER), "__cxa_allocate_exception"),
    (CallFacts("allocator", sizes=(0,)),
     "__rust_alloc __rdl_alloc __rg_alloc NRT_Allocate NRT_Allocate_External "
     + " ".join(f"_Zn{form}{size}{tail}" for form in "wa" for size in "mj"
                for tail in ("", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t"))),
    (CallFacts("allocator", sizes=(0,), zeroed=True), "__rust_alloc_zeroed __rdl_alloc_zeroed __rg_alloc_zeroed"),
    (CallFacts("deallocator", pointer=0, header=EXCEPTION_HEADER), "__cxa_free_exception"),
    (CallFacts("deallocator", pointer=0),
     "free cfree __rust_dealloc __rdl_dealloc __rg_dealloc NRT_Free "
     + " ".join(f"_Zd{form}Pv{tail}" for form in "la"
                for tail in ("", "m", "j", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t", "jSt11align_val_t",
                             "St11align_val_tRKSt9nothrow_t"))),
    # a number that each differentiation makes larger
    (_NO_DERIVATIVE, " ".join(f"irgrad.iter.i{bits}" for bits in (8, 16, 32, 64))),
    (_NOTHING, "irgrad.word.sum"),  # adjoints in words that hold pointers too
    # the tape of a derivative that is differentiated again: arenas, their memory, what is freed with them
    (CallFacts("allocator"), "irgrad.tape.acquire"),
    (CallFacts("allocator", sizes=(1,)), "irgrad.tape.alloc"),
    (CallFacts("deallocator", pointer=0), "irgrad.tape.finish"),
    (CallFacts("deallocator", pointer=1), "irgrad.tape.free_later irgrad.tape.finish_later"),
    (CallFacts("inactive", reads=(0, 1), writes=(0,), inactive=True), "irgrad.tape.release_later"),
    # its shadows of memory that lives across calls
    (CallFacts("allocator", sizes=(2,)), "irgrad.kept.new"),
    (CallFacts("deallocator", pointer=0), "irgrad.kept.free"),
    (CallFacts("deallocator", pointer=1), "irgrad.kept.free_later"),
    (CallFacts("allocator", sizes=(4,)), "irgrad_found_beside"),
    (CallFacts("allocator", sizes=(1,)), "irgrad_found_memory irgrad_found_table"),
    (_SILENT, "irgrad.kept.clear irgrad_found_begin irgrad_found_bytes irgrad_found_index irgrad_found_before"),
    (_SILENT, "irgrad_found_shadow irgrad_found_nothing"),
    (CallFacts("inactive", writes=(0,), inactive=True), "irgrad.tape.at irgrad.tape.need irgrad.tape.reuse"),
    (CallFacts("inactive", inactive=True), "irgrad.tape.peak irgrad.tape.differs irgrad.tape.leaves irgrad.tape.lost "
                                              "irgrad.tape.throwing"),
    (_SILENT, "irgrad.copies.most"),
    (_inspects(0), "irgrad.copies.told"),
    (CallFacts("reallocator", reads=(0,), pointer=0, sizes=(1,), writes_errno=True), "realloc reallocf"),
    (CallFacts("reallocator", reads=(0,), pointer=0, sizes=(1, 2), writes_errno=True), "reallocarray"),
    (CallFacts("reallocator", reads=(0,), pointer=0, sizes=(3,)),
     "__rust_realloc __rdl_realloc __rg_realloc"),
)  # fmt: skip

_LANEWISE_INTEGERS = frozenset(
    "ctpop ctlz cttz bswap bitreverse fshl fshr abs smax smin umax umin".split()
)  # and cheap: one to three instructions
_INTEGER_INTRINSICS = _LANEWISE_INTEGERS | frozenset(
    "scmp ucmp sadd.with.overflow uadd.with.overflow "
    "ssub.with.overflow usub.with.overflow smul.with.overflow umul.with.overflow sadd.sat uadd.sat ssub.sat "
    "usub.sat sshl.sat "
    "ushl.sat smul.fix umul.fix smul.fix.sat umul.fix.sat vscale get.active.lane.mask experimental.get.vector.length "
    "is.constant objectsize expect expect.with.probability type.test load.relative returnaddress frameaddress "
    "sponentry addressofreturnaddress vector.reduce.add vector.reduce.mul vector.reduce.and vector.reduce.or "
    "vector.reduce.xor vector.reduce.smax vector.reduce.smin vector.reduce.umax vector.reduce.umin allow.runtime.check "
    "allow.ubsan.check flt.rounds get.rounding pext pdep clmul stepvector".split()
)
_KEPT_INTRINSICS = frozenset(
    "assume lifetime.start lifetime.end dbg.value dbg.declare dbg.label dbg.assign experimental.noalias.scope.decl "
    "prefetch donothing sideeffect pseudoprobe var.annotation invariant.start invariant.end stacksave stackrestore "
    "readcyclecounter readsteadycounter instrprof.increment fake.use experimental.guard codeview.annotation "
    "set.rounding".split()
)
_SAME_POINTER = frozenset(
    "launder.invariant.group strip.invariant.group ptrmask threadlocal.address ssa.copy ptr.annotation "
    "annotation".split()
)
# Where the list leads is not known; floats do not come out of it unseen (engine/legality/screen.py).
_VARIABLE_ARGUMENTS = CallFacts("inactive", reads=None, writes=(0,), captures=(0,), inactive=True)
_INTRINSIC_TYPE = re.compile(r"(?:nx)?(?:v\d+)?(?:b?f\d+|ppcf128|i\d+|p\d+)")
_RUST = re.compile(r"_R\w*7___rustc\d+(___?rust_(?:alloc_zeroed|alloc|dealloc|realloc))")
_RUST_PRINT = re.compile(r"_R\w*3std2io5stdio\d+_?_(?:e?print)|_ZN3std2io5stdio\d+_e?print17h")
# output of Fortran: numbers and texts go to a statement that is begun and ended
_FORTRAN_STATEMENT = re.compile(r"_FortranAio(?:Output|Set|Enable|End)\w+")
_FORTRAN_BEGIN = re.compile(r"_FortranAioBegin(?:External\w*Output|OpenUnit|OpenNewUnit|Close|Flush|Rewind|Endfile)")
_FORTRAN_TEXT = re.compile(r"_FortranAioBeginInternal\w*Output")
_CXX_THROW = re.compile(r"_ZNK?St(?:3__1)?\d+__throw_|_ZSt\d+__throw_|_ZNSt3__1\d+__throw_|_ZNKSt3__1\d*.*__throw_")
_CXX_STREAM = re.compile(
    r"_ZNSo|_ZStlsI|_ZSt16__ostream_insert|_ZSt4endlI|_ZSt5flushI|_ZNSt3__113basic_ostream|"
    r"_ZNSt3__1(?:ls|4endl|5flush)(?:B\d+\w+?)?I|_ZNSt3__124__put_character_sequence"
)
# objects of the library that the call is a method of: streams, their buffers and locales, strings, exceptions
_CXX_OBJECT = re.compile(
    r"_ZNK?St(?:3__1|7__cxx11)?(?:8ios_base|6locale|9basic_ios|15basic_streambuf|15basic_stringbuf|13basic_filebuf"
    r"|14basic_ofstream|19basic_ostringstream|18basic_stringstream|12basic_stringI|12__basic_fileI|5ctypeI|7codecvtI|8numpunctI|7num_putI|7num_getI)"
    r"|_ZNK?St(?:3__1)?(?:9exception|9bad_alloc|8bad_cast|10bad_typeid|1[0-9](?:runtime|logic|range|length|domain)_error"
    r"|1[0-9](?:out_of_range|invalid_argument|overflow_error|underflow_error)|[12][0-9]bad_[a-z_]+)(?:[CD]\dE|4what)"
)
_CXX_MESSAGE = re.compile(  # constructors of exceptions from a string of C: they copy it
    r"_ZNSt(?:3__1)?1[0-9](?:(?:runtime|logic|range|length|domain|overflow|underflow)_error|out_of_range"
    r"|invalid_argument)C[12]EPKc"
)
_CXX_INIT = re.compile(r"_ZNSt8ios_base4Init[CD]\dEv|_ZNSt6chrono\w*3nowEv|_ZNSt3__16chrono\w*3nowEv")


@cache
def _table() -> dict[str, CallFacts]:
    return {name: group for group, names in _GROUPS for name in names.split()}


@lru_cache(maxsize=4096)
def facts(symbol: str) -> CallFacts | None:
    """The facts about a callee without body, or None for one that is not known."""
    known = _table().get(symbol)
    if known is not None:
        return known
    if symbol.startswith("llvm."):
        return _intrinsic(symbol)
    match = find(symbol)
    if match is not None:
        return CallFacts("pure", writes=match.row.pointers, writes_errno=match.errno, inactive=match.row.constant)
    return _by_pattern(symbol)


def cost(symbol: str, costs: Costs = SHIPPED) -> int:
    """What a call without effects costs, in units of one addition."""
    match = find(symbol)
    if match is not None:
        return costs.of(match.row.key, match.row.work)
    return 1 if _integer_stem(symbol) else costs.of("call", LIBRARY_CALL)


@lru_cache(maxsize=4096)
def lanewise(symbol: str) -> bool:
    """Whether an intrinsic (with the types at its end) works lane by lane on vectors, with the vector's type in place
    of the first of those types. An argument that is no float of a function of floats stays one number."""
    stem, *types = symbol.split(".")[1:] or [""]
    if not types or (not symbol.startswith(("llvm.", "irgrad."))):
        return False
    match = find(symbol)
    if match is None:
        return _integer_stem(symbol)
    return match.row.lanewise and (stem in match.row.intrinsics or f"irgrad.{stem}" in match.row.llvm)


def _integer_stem(symbol: str) -> bool:
    parts = symbol.split(".")
    return len(parts) > 2 and parts[0] == "llvm" and parts[1] in _LANEWISE_INTEGERS


def prints(symbol: str) -> bool:
    """Whether a function belongs to the output streams of the C++ library."""
    return _CXX_STREAM.match(symbol) is not None


def _intrinsic(symbol: str) -> CallFacts | None:
    parts = symbol.split(".")[1:]
    if parts[0] in ("memcpy", "memmove"):
        return None if "element" in parts else _copy(returns=None)
    if parts[0] == "memset":
        return None if "pattern" in parts or "element" in parts else _fill(None)
    while len(parts) > 1 and _INTRINSIC_TYPE.fullmatch(parts[-1]):
        parts.pop()
    base = ".".join(parts)
    if base in ("trap", "ubsantrap", "debugtrap"):
        return CallFacts("inactive", inactive=True, noreturn=base != "debugtrap")
    if base in _KEPT_INTRINSICS:
        return _SILENT
    if base in ("va_start", "va_copy", "va_end"):
        return _VARIABLE_ARGUMENTS
    if base in _INTEGER_INTRINSICS:
        return _NO_DERIVATIVE if base not in ("expect", "expect.with.probability") else _NOTHING
    match = find(symbol)
    if match is not None:
        # ssa.copy and the like also work on pointers: say that the argument comes back
        returns = 0 if base in _SAME_POINTER else None
        return CallFacts("pure", returns=returns, inactive=match.row.constant)
    if base in _SAME_POINTER:
        return CallFacts("pure", returns=0)
    return _NOTHING if reduction(symbol) is not None else None


def _by_pattern(symbol: str) -> CallFacts | None:
    if symbol.startswith("irgrad.inactive."):  # what a program calls as a constant: anything, but without derivative
        return _CONSTANT
    where = _WHERE.fullmatch(symbol)
    if where is not None:
        return _inspects(1) if where["c"] else _inspects(0, 1, 2)
    rust = _RUST.fullmatch(symbol)
    if rust is not None:
        return _table()["__" + rust.group(1).lstrip("_")]
    if _CXX_THROW.match(symbol) or symbol.startswith(("_ZN4core9panicking", "_ZN3std9panicking")):
        return _STOPS
    if _RUST_PRINT.match(symbol) or _FORTRAN_BEGIN.fullmatch(symbol):
        return _PRINTS
    if symbol.startswith("_FortranAio"):
        if _FORTRAN_STATEMENT.fullmatch(symbol):
            return _WRITTEN
        return _TEXT if _FORTRAN_TEXT.fullmatch(symbol) else None
    if _CXX_STREAM.match(symbol):
        return _STREAM
    if _CXX_MESSAGE.fullmatch(symbol):
        return _MESSAGE
    if _CXX_OBJECT.match(symbol):
        return _METHOD
    return _SILENT if _CXX_INIT.match(symbol) else None

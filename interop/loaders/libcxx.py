"""Bodies of C++ library functions that no header has: compiled from the sources that the wheel carries, on demand.

libc++ keeps some functions out of its headers: `std::sort` of numbers, the counts of `shared_ptr`, the sizes of hash
tables, `std::string`. To the differentiator they are calls that it cannot follow, and no shared library of the system
has them. The `ziglang` wheel brings libc++ as source, so the file that defines a missing symbol is compiled like any
other (once, the disk cache keeps the IR), and what the program needs of it is linked in. For libstdc++, which comes
without its source, the code behind trees, lists and hash tables stands in a file of our own.
"""

from __future__ import annotations

import re
from pathlib import Path

from irgrad.interop.loaders.compiler import Options, compile_source, find_compiler
from irgrad.interop.loaders.library_parts import declared, with_parts

__all__ = ["complete", "source_of"]

_FLAGS = ("-std=c++23", "-D_LIBCPP_BUILDING_LIBRARY", "-DLIBCXX_BUILDING_LIBCXXABI", "-w", "-gline-tables-only",
          "-O2", "-Xclang", "-disable-llvm-passes")  # fmt: skip
"""With lines, which tell what the library copies as text also where its functions were inlined."""
_OWN_FLAGS = ("-std=c++17", "-w", "-g0", "-O2", "-Xclang", "-disable-llvm-passes")
_STRING = r"12basic_stringIcNS_11char_traitsIcEENS_9allocatorIcEEEE?"

# What a symbol's name begins with, and the source that defines it. `@` stands for the inline namespace.
_SOURCES: tuple[tuple[str, str], ...] = (
    (r"_ZN@6__sortI", "libcxx/src/algorithm.cpp"),
    (r"_ZN@12__next_primeEm", "libcxx/src/hash.cpp"),
    (r"_Z(N|NK|T[VIS]N)@(14__shared_count|19__shared_weak_count|12bad_weak_ptr)", "libcxx/src/memory.cpp"),
    (r"_Z(N|NK|T[VIS]N)@17bad_function_call|_ZN@13__hash_memoryE", "libcxx/src/functional.cpp"),
    (rf"_ZNK?@{_STRING}|_ZN@(9to_stringE|3sto|4stoulE|4stollE|5stoullE|plI)", "libcxx/src/string.cpp"),
    (r"_ZN@(8to_chars|10from_chars|6__itoa)", "libcxx/src/charconv.cpp"),
    (r"_ZN@6chrono", "libcxx/src/chrono.cpp"),
    (r"_Z(N|NK|T[VIS]N)@3pmr", "libcxx/src/memory_resource.cpp"),
    (r"_ZN@22__libcpp_verbose_abort", "libcxx/src/verbose_abort.cpp"),
    (r"_Z(N|NK|T[VIS])St19bad_optional_access", "libcxx/src/optional.cpp"),
    (r"_Z(N|NK|T[VIS])St18bad_variant_access", "libcxx/src/variant.cpp"),
    (r"_Z(N|NK|T[VIS])St12bad_any_cast", "libcxx/src/any.cpp"),
    (r"_ZNSt(20bad_array_new_length|9bad_alloc)C[12]Ev", "libcxxabi/src/stdlib_exception.cpp"),
    (r"_ZNSt(8bad_cast|10bad_typeid)C[12]Ev", "libcxxabi/src/stdlib_typeinfo.cpp"),
)
_OWN = "libstdcxx.cc"  # beside this file
_LIBSTDCXX = re.compile(
    r"_ZSt(?:18_Rb_tree_(?:inc|dec)rement|28_Rb_tree_|29_Rb_tree_)"
    r"|_ZNK?St8__detail(?:15_List_node_base(?:7_M_hook|9_M_unhook|11_M_transfer|10_M_reverse|4swap)|20_Prime_rehash_)"
)
_TABLE = tuple((re.compile(pattern.replace("@", "St3__1")), source) for pattern, source in _SOURCES)


def source_of(symbol: str) -> str | None:
    """The library source that defines a symbol, as a path below the compiler's `lib` folder."""
    if not symbol.startswith("_Z"):
        return None
    if _LIBSTDCXX.match(symbol):
        return _OWN
    return next((source for pattern, source in _TABLE if pattern.match(symbol)), None)


def complete(text: str) -> str:
    """The module with the library functions it declares; unchanged when it needs none or they are not at hand.

    They are internal to it. Raises IRSyntaxError or IRInvalid when LLVM refuses `text`.
    """
    if not any(map(source_of, declared(text))):
        return text
    library = _library()
    if library is None:
        return text

    def present(symbol: str) -> str | None:
        source = source_of(symbol)
        return source if source is None or source == _OWN or (library / source).is_file() else None

    return with_parts(text, present, lambda source: _compiled(library, source))


def _library() -> Path | None:
    """The folder with the sources of the C++ library; None for a compiler that is not the wheel's."""
    compiler = find_compiler()
    folder = Path(compiler.command["c++"][0]).parent / "lib"
    return folder if compiler.zig and (folder / "libcxx" / "src").is_dir() else None


def _compiled(library: Path, source: str) -> str:
    """The IR of one source of the library."""
    if source == _OWN:
        path, flags = Path(__file__).with_name(_OWN), ("-stdlib=libstdc++", *_OWN_FLAGS)
        return compile_source(path, "c++", Options(flags=flags)).text
    include = tuple(str(library / folder) for folder in ("libcxx/src", "libcxx/libc", "libcxxabi/include"))
    return compile_source(library / source, "c++", Options(include=include, flags=_FLAGS)).text

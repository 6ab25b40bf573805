"""Bodies of C++ library functions that no header has: compiled from the sources that the wheel carries, on demand.

libc++ keeps some functions out of its headers: `std::sort` of numbers, the counts of `shared_ptr`, the sizes of hash
tables, `std::string`. To the differentiator they are calls that it cannot follow, and no shared library of the system
has them. The `ziglang` wheel brings libc++ as source, so the file that defines a missing symbol is compiled like any
other (once, the disk cache keeps the IR), and what the program needs of it is linked in. For libstdc++, which comes
without its source, the code behind trees, lists and hash tables stands in a file of our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.engine.codegen.llvm import binding, parse, target_machine
from irgrad.interop.loaders.compiler import Options, compile_source, find_compiler

__all__ = ["complete", "source_of"]

_MOST_ROUNDS = 4
_FLAGS = ("-std=c++23", "-D_LIBCPP_BUILDING_LIBRARY", "-DLIBCXX_BUILDING_LIBCXXABI", "-w", "-g0", "-O2",
          "-Xclang", "-disable-llvm-passes")  # fmt: skip
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
_DECLARED = re.compile(r'^declare [^@\n]*@"?([\w$.]+)"?\(|^@"?([\w$.]+)"? = external ', re.M)


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
    if not any(source_of(found[1] or found[2]) for found in _DECLARED.finditer(text)):
        return text
    library = _library()
    if library is None:
        return text
    context = binding().create_context()
    module = parse(text, context)
    asked: set[str] = set()
    for _ in range(_MOST_ROUNDS):
        wanted: dict[str, set[str]] = {}
        for value in (*module.functions, *module.global_variables):
            source = source_of(value.name) if value.is_declaration and value.name not in asked else None
            if source is not None and (source == _OWN or (library / source).is_file()):
                wanted.setdefault(source, set()).add(value.name)
        if not wanted:
            break
        asked.update(*wanted.values())
        for source, symbols in sorted(wanted.items()):
            module.link_in(parse(_part(library, source, symbols), context))
    for value in (*module.functions, *module.global_variables):
        if value.name in asked and not value.is_declaration:
            value.linkage = "internal"
    result = str(module)
    module.close()
    return result


def _library() -> Path | None:
    """The folder with the sources of the C++ library; None for a compiler that is not the wheel's."""
    compiler = find_compiler()
    folder = Path(compiler.command["c++"][0]).parent / "lib"
    return folder if compiler.zig and (folder / "libcxx" / "src").is_dir() else None


def _part(library: Path, source: str, symbols: Iterable[str]) -> str:
    """The IR of some functions of one source, and of what they need."""
    if source == _OWN:
        path, flags = Path(__file__).with_name(_OWN), ("-stdlib=libstdc++", *_OWN_FLAGS)
        whole = compile_source(path, "c++", Options(flags=flags)).text
        return _kept_part(whole, symbols)
    include = tuple(str(library / folder) for folder in ("libcxx/src", "libcxx/libc", "libcxxabi/include"))
    whole = compile_source(library / source, "c++", Options(include=include, flags=_FLAGS)).text
    return _kept_part(whole, symbols)


def _kept_part(whole: str, symbols: Iterable[str]) -> str:
    """What some functions of a module need of it, through the disk cache."""
    wanted = sorted(symbols)
    store, key = default_cache(), fingerprint("libcxx-part-1", whole, *wanted)
    kept = store.get("ir", key)
    if kept is None:
        kept = _extract(whole, set(wanted)).encode("utf-8", "surrogateescape")
        store.put("ir", key, kept)
    return kept.decode("utf-8", "surrogateescape")


def _extract(text: str, wanted: set[str]) -> str:
    """A module with only these functions and globals, and what they reach."""
    llvm = binding()
    module = parse(text)
    for value in (*module.functions, *module.global_variables):
        if value.is_declaration or value.name.startswith("llvm.") or value.name in wanted:
            continue
        if value.linkage.name in ("external", "weak_odr", "weak_any"):
            value.linkage = "internal"
    passes: Any = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    builder = llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options(speed_level=0))
    passes.run(module, builder)
    result = str(module)
    module.close()
    return result

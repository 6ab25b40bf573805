"""Crates with a `Cargo.toml`: cargo builds them offline; the IR of a crate and of those it depends on is linked.

Every crate is compiled as `rust.py` compiles a file: without LLVM's passes, with `panic=abort`, all functions for
others. Functions of the crate go by their paths (`energy`, `springs::one`), those of its dependencies by their symbols.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from irgrad.engine.codegen.cache import default_cache, fingerprint
from irgrad.interop.loaders.compiler import Compilation, Options, cached_compilation, packed, run_compiler
from irgrad.interop.loaders.rust import finished
from irgrad.rules.errors import CompileError, LoadError

__all__ = ["compile_crate"]

_WORDS = ("-Copt-level=3", "-Cpanic=abort", "-Ccodegen-units=1", "-Cdebuginfo=1", "-Cno-prepopulate-passes",
          "--emit=llvm-ir,link")  # fmt: skip


def compile_crate(path: Path, options: Options, tool: tuple[str, str], display: str | None = None) -> Compilation:
    """Compile the library of a `Cargo.toml`, with its dependencies, to LLVM IR text.

    `tool` is rustc and its version; cargo is looked for beside it. `flags` are words for rustc (`-Clto=off`,
    `--cfg=...`). Raises CompileError with cargo's own diagnostics, LoadError where cargo is not found or the file
    describes no library.
    """
    import shutil

    rustc, version = tool
    cargo = shutil.which("cargo", path=f"{Path(rustc).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if cargo is None:
        raise LoadError("cargo was not found", because=f"it is neither beside `{rustc}` nor on the PATH",
                        fix="install Rust (https://rustup.rs)   or   load the file src/lib.rs")
    crate = _library(path)
    shown, file = display or str(path), path.resolve()
    words = (*_WORDS, *(f"-L{folder}" for folder in options.include), *options.flags)
    key = fingerprint("cargo-ir-1", version, str(file), file.read_bytes(), *words)
    store = default_cache()
    hit = cached_compilation(store.get("ir", key))
    if hit is not None:
        return hit
    from irgrad.engine.support.progress import Progress
    from irgrad.engine.support.scratch import scratch_folder
    from irgrad.interop.loaders.link import link_inputs

    with scratch_folder("cargo") as scratch, Progress(f"compiling `{shown}`"):
        settings = {"RUSTC": rustc, "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(words), "CARGO_INCREMENTAL": "1"}
        done = run_compiler([cargo, "build", "--offline", "--release", "--lib", f"--manifest-path={file}",
                             f"--target-dir={scratch}"], environment=settings)  # fmt: skip
        built = sorted(Path(scratch, "release", "deps").glob("*.ll"))
        own = [row for row in built if _crate(row) == crate]
        if done.returncode != 0 or not own:
            raise CompileError(f"`{shown}` does not compile",
                               because=f"cargo says:\n{done.stderr.strip() or f'exit status {done.returncode}'}",
                               fix="mend the crate   or   run `cargo fetch` where a dependency is missing")
        ordered = [*own, *(row for row in built if row not in own)]
        texts = [finished(row.read_text("utf-8", "surrogateescape"), crate if row in own else "")
                 for row in ordered]  # fmt: skip
        rule = Path(scratch, "release", f"lib{crate}.d").read_text("utf-8")
    sources = {Path(name.replace("\\ ", " ")) for name in re.findall(r"(?<= )(?:[^\s\\]|\\.)+", rule)}
    described = {folder / "Cargo.toml" for row in sources for folder in list(row.parents)[:3]}
    needs = {str(row) for row in {*sources, *described, file.with_name("Cargo.lock")} - {file} if row.is_file()}
    text = texts[0] if len(texts) == 1 else link_inputs(texts, [row.name for row in ordered], [True] * len(texts))
    result = Compilation(text, done.stderr if "warning" in done.stderr else "", tuple(sorted(needs)), cached=False)
    store.put("ir", key, packed(result))
    return result


def _crate(module: Path) -> str:
    """The crate of a file `NAME-HASH.ll`."""
    return module.stem.rpartition("-")[0] or module.stem


def _library(path: Path) -> str:
    """The crate name of the library that the file describes."""
    try:
        said: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LoadError(f"`{path}` cannot be read", because=str(error), fix="mend the file") from None
    package, library = said.get("package", {}), said.get("lib", {})
    name = library.get("name") or package.get("name")
    if not name or not (path.parent / library.get("path", "src/lib.rs")).is_file():
        why = "there is no src/lib.rs, and no path in [lib]" if package else "it has no [package]"
        raise LoadError(f"`{path}` describes no library", because=why,
                        fix="name the Cargo.toml of a package with a library   or   load its .rs file")  # fmt: skip
    return str(name).replace("-", "_")

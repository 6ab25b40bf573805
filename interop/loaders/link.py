"""Reading IR files and linking modules, with LLVM's complaints turned into LoadError."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irgrad.rules.errors import IRGradError, IRInvalid, IRSyntaxError, LoadError

if TYPE_CHECKING:
    import subprocess

__all__ = ["disassemble", "link_inputs", "read_bitcode", "read_text"]

_PRODUCER = re.compile(r"LLVM(\d+)\.")
_NEWEST = 22
_NEWER = f"if a newer LLVM wrote it: compile with a clang of LLVM <= {_NEWEST}, or load the source"
_SECONDS, _REFUSED = 300, 3
_READER = f"""
import sys
import llvmlite.binding as llvm
data = sys.stdin.buffer.read()
try:
    if sys.argv[1:] == ["text"]:
        module = llvm.parse_assembly(data.decode("utf-8", "surrogateescape"), context=llvm.create_context())
    else:
        module = llvm.parse_bitcode(data, context=llvm.create_context())
    module.verify()
except RuntimeError as error:
    sys.stderr.write(str(error))
    sys.exit({_REFUSED})
sys.stdout.buffer.write(str(module).encode("utf-8", "surrogateescape"))
"""
"""Damaged bitcode, or text, can end the process that reads it, so another one does."""
_CHAR6 = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._"


def read_text(path: Path) -> str:
    """A .ll file as text. Raises LoadError for text that is not UTF-8 or holds a NUL (LLVM ignores what follows)."""
    data = path.read_bytes()
    if data.startswith((b"BC\xc0\xde", b"\xde\xc0\x17\x0b")):
        return disassemble(data, str(path))
    if b"\0" in data:
        raise LoadError(f"`{path}` is not LLVM IR text", because="it contains a NUL byte",
                        fix="write it with `clang -S -emit-llvm` or `llvm-dis`")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LoadError(f"`{path}` is not LLVM IR text", because=str(error),
                        fix="write it with `clang -S -emit-llvm` or `llvm-dis`") from None


def read_bitcode(path: Path) -> str:
    """A .bc file, disassembled. Raises LoadError for damaged bitcode and bitcode of a newer LLVM."""
    data = path.read_bytes()
    if not data.startswith((b"BC\xc0\xde", b"\xde\xc0\x17\x0b")):
        raise LoadError(f"`{path}` is not bitcode", because="it does not start with `BC 0xC0DE`",
                        fix='load(path, language="ll") if it is text')
    return disassemble(data, str(path))


def disassemble(data: bytes, name: str) -> str:
    """Bitcode as text; `name` is for messages. Raises LoadError for what this LLVM cannot read."""
    newest = max((int(found) for found in _bitcode_producers(data)), default=0)
    if newest > _NEWEST:
        raise _too_new(name, f"it was written by LLVM {newest}")
    from irgrad.engine.codegen.cache import default_cache, fingerprint

    disk, key = default_cache(), fingerprint(b"bitcode", data)
    stored = disk.get("bitcode", key)
    if stored is not None:
        return stored.decode("utf-8", "surrogateescape")
    import subprocess

    try:
        done = _read_apart(data)
    except subprocess.TimeoutExpired:
        raise _unreadable(name, f"LLVM has not read it within {_SECONDS} seconds") from None
    if done.returncode == _REFUSED:
        raise _unreadable(name, done.stderr.decode("utf-8", "replace"))
    if done.returncode:
        raise _unreadable(name, f"LLVM's reader of bitcode ended with status {done.returncode}")
    disk.put("bitcode", key, done.stdout)
    return done.stdout.decode("utf-8", "surrogateescape")


def _read_apart(data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    """What a process of its own, in which LLVM reads the module, prints: text."""
    import subprocess

    command = [sys.executable, "-c", _READER, *words]
    return subprocess.run(command, input=data, capture_output=True, check=False, timeout=_SECONDS)


def _bitcode_producers(data: bytes) -> list[str]:
    """LLVM's major version in a bitcode's identification block (`LLVM22.1.8` in LLVM's 6-bit characters).

    Bitcode is a stream of bits, so the text is looked for at each bit offset of the file's first bytes.
    """
    head = int.from_bytes(data[:256], "little")
    found: list[str] = []
    for shift in range(6):
        bits = head >> shift
        found += _PRODUCER.findall("".join(_CHAR6[bits >> at & 63] for at in range(0, 8 * 256 - 6, 6)))
    return found


def link_inputs(texts: Sequence[str], names: Sequence[str], trusted: Sequence[bool] = ()) -> str:
    """Link modules into one text, as LLVM prints it; everything behind it looks for lines of that form.

    `trusted`: what the compiler has just written is not checked before LLVM sees it. What was linked before comes from
    the disk cache. Raises LoadError when a module cannot be read or two define one symbol.
    """
    from irgrad.engine.codegen.cache import default_cache, fingerprint

    if len(texts) == 1:
        return _as_printed(texts[0] if any(trusted) else _checked(texts[0], names[0]), names[0])
    disk, key = default_cache(), fingerprint("linked-1", *texts)
    stored = disk.get("linked", key)
    if stored is not None:
        return stored.decode("utf-8", "surrogateescape")
    texts = [text if number < len(trusted) and trusted[number] else _checked(text, name)
             for number, (text, name) in enumerate(zip(texts, names, strict=True))]  # fmt: skip
    whole = _linked(texts, names)
    disk.put("linked", key, whole.encode("utf-8", "surrogateescape"))
    return whole


def _as_printed(text: str, name: str) -> str:
    module = _parse(text, name, None)
    printed = str(module)
    module.close()
    return printed


def _linked(texts: Sequence[str], names: Sequence[str]) -> str:
    """Neighbours are linked first, since LLVM walks through all of the module that another one is linked into."""
    from irgrad.engine.codegen.llvm import binding

    context = binding().create_context()
    parts: list[Any] = []
    try:
        for text, name in zip(texts, names, strict=True):
            parts.append(_parse(text, name, context))
        width = 1
        while width < len(parts):
            for at in range(0, len(parts) - width, 2 * width):
                parts[at].link_in(parts[at + width])
            width *= 2
        return str(parts[0])
    except RuntimeError as error:
        raise _not_together(texts, names, str(error)) from None
    finally:  # in this order, and before an exception keeps them for the garbage collector
        for part in parts:
            part.close()
        context.close()


def _not_together(texts: Sequence[str], names: Sequence[str], said: str) -> LoadError:
    """The error that names the first module which defines something again."""
    from irgrad.engine.codegen.llvm import binding

    name, context = names[-1], binding().create_context()
    whole = _parse(texts[0], names[0], context)
    try:
        for text, part in zip(texts[1:], names[1:], strict=True):
            name = part
            whole.link_in(_parse(text, part, context))
    except RuntimeError as error:
        said = str(error)
    finally:
        whole.close()
        context.close()
    others = ", ".join(f"`{row}`" for row in dict.fromkeys(names) if row != name)
    twice = list(names).count(name) > 1
    what = "is loaded twice" if twice else f"cannot be linked with {others}"
    return LoadError(f"`{name}` {what}", because=said.strip(),
                     fix="name each source once" if twice
                     else "make one definition `static`, or leave one of the files out")  # fmt: skip


def _checked(text: str, name: str) -> str:
    """The text; as LLVM prints it where our own reader takes only that. Raises LoadError with the line of what neither
    of them reads."""
    import subprocess

    try:
        _check(text, name)
    except LoadError as error:
        if not isinstance(error.__context__, IRSyntaxError):
            raise
        try:
            done = _read_apart(text.encode("utf-8", "surrogateescape"), "text")
        except subprocess.TimeoutExpired:
            raise error from None
        if done.returncode:
            said = re.search(r":(\d+):\d+: error: ([^\n]*)", done.stderr.decode("utf-8", "replace"))
            more = f"; LLVM says of line {said[1]}: {said[2]}" if said else ""
            raise error.change(because=f"{error.because}{more}") from None
        text = done.stdout.decode("utf-8", "surrogateescape")
        _check(text, name)
    return text


def _check(text: str, name: str) -> None:
    """Read with our own reader first: on some broken modules LLVM's parser ends the process."""
    from irgrad.engine.codegen.llvm import check_text
    from irgrad.engine.ir.text.reader import materialise, read
    from irgrad.engine.ir.verify import verify_function

    try:
        check_text(text)
        module = read(text)
        for function in module.functions.values():
            materialise(function, module)
            problems = verify_function(function)
            if problems:
                raise IRInvalid(f"@{function.name}", because=problems[0])
    except IRSyntaxError as error:
        raise LoadError(f"`{name}` cannot be read as IR of LLVM {_NEWEST}", where=error.where, which=error.which,
                        because=_sentence(error), fix=_NEWER) from None
    except IRInvalid as error:
        raise LoadError(f"`{name}` is not valid LLVM IR", where=error.where, which=error.which,
                        because=_sentence(error), fix="check the file with `opt -passes=verify`") from None


def _sentence(error: IRGradError) -> str:
    what = error.what.removeprefix("this text is not LLVM IR that irgrad can read")
    return f"{what}: {error.because}" if what and error.because else error.because or what


def _parse(text: str, name: str, context: Any) -> Any:
    from irgrad.engine.codegen.llvm import parse

    try:
        return parse(text, context)
    except (IRSyntaxError, IRInvalid) as error:
        raise _unreadable(name, error.because) from None


def _unreadable(name: str, message: str) -> LoadError:
    message = message.strip().removeprefix("LLVM IR parsing error").strip()
    if re.search(r"Unknown attribute kind|Unknown intrinsic|newer|Invalid record|Unknown bitstream|Invalid cast"
                 r"|expected type|expected top-level entity|unterminated attribute", message):
        return LoadError(f"`{name}` cannot be read as IR of LLVM {_NEWEST}", because=message,
                         fix=_NEWER)
    return LoadError(f"`{name}` is not valid LLVM IR", because=message, fix="check the file with `opt -passes=verify`")


def _too_new(name: str, because: str) -> LoadError:
    return LoadError(f"`{name}` is of a newer LLVM than {_NEWEST}", because=because,
                     fix=f"load the source   or   compile with a clang of LLVM <= {_NEWEST}, such as the bundled one")

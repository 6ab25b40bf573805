"""What Rust's standard library keeps by the thread, or asks the system for: variables of a thread, hash seeds, locks.

A kernel runs on one thread, and calls that share a variable run one at a time: a variable of the thread is one of the
module, and a lock that is held already is never let go. The seed of `HashMap` is the same in each run, so that what a
function computes by the order of its keys is the same too.
"""

from __future__ import annotations

import re

from irgrad.interop.loaders.rust_panics import HELD, demangled

__all__ = ["one_thread"]

_VARIABLE = re.compile(
    r'^@(?P<name>[\w.$]+|"[^"\n]+") = (?P<head>[^\n{%\[]*?)\bthread_local(?:\(\w+\))? (?P<rest>[^\n]*)$', re.M
)
_ADDRESS = re.compile(r"call (?:[^@%\n]*? )?ptr @llvm\.threadlocal\.address\.p0\(ptr (?:[^@%\n]*)(?P<of>@[^)\n]+)\)")
_SEEDS = re.compile(
    r'^(?P<head>define [^@\n]*\{ i64, i64 \} @"?_ZN3std4hash6random11RandomState3new28_\$u7b\$\$u7b\$closure[^\n]*\{\n)'
    r".*?^\}\n", re.M | re.S,
)  # fmt: skip
_COUNT = re.compile(
    r"^(?P<head>@[\w.$]*18GLOBAL_PANIC_COUNT = )external (?P<rest>global [^,\n]+)(?P<tail>[^\n]*)$", re.M
)
_DECLARED = re.compile(
    r'^declare (?P<head>[^@\n]*)@(?P<symbol>_R[\w.$]+)\((?P<types>[^\n]*?)\)(?P<tail>[^()\n]*)\n', re.M
)
_CALLED_ONCE = re.compile(
    r"^declare void @(?P<symbol>_R\w*3std3sys4sync4once5futex\w*4Once4call)\(ptr [^\n]*\n", re.M
)
_VERSION = re.compile(r"\(rustc version (\d+)\.(\d+)")
_COMPLETE_IS_ZERO = (1, 90)
_SEED = "  ret { i64, i64 } { i64 1, i64 2 }\n"
_FAILS = f"  call void @irgrad.panic(ptr @{HELD[0]}) noreturn nounwind\n  unreachable\n"
_NOTHING = "  ret void\n"
_BODIES = {
    "hashmap_random_keys": _SEED, "is_zero_slow_path": "  ret i1 true\n",
    "lock_contended": _FAILS, "read_contended": _FAILS, "write_contended": _FAILS,
    "wake": _NOTHING, "wake_writer_or_readers": _NOTHING,
    "sqrt_approx": """  %odd = or i64 %0, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %odd, i1 true)
  %bits = sub i64 64, %zeros
  %half = lshr i64 %bits, 1
  %power = shl i64 1, %half
  %rest = lshr i64 %0, %half
  %twice = add i64 %power, %rest
  %root = lshr i64 %twice, 1
  ret i64 %root
""",
}  # fmt: skip
"""Functions of the library, by the ends of their paths; a lock that is held would be waited for without end."""
_ONCE = """  %state = alloca {{ i32, i8 }}, align 4
  store {{ i32, i8 }} zeroinitializer, ptr %state
  %slot = getelementptr i8, ptr {2}, i64 32
  %run = load ptr, ptr %slot
  call void %run(ptr {1}, ptr %state)
  store i32 0, ptr {0}
  ret void
"""
"""`Once::call`: the closure, an object and its table, is run and leaves the state of what is complete."""
_LAST = re.compile(rf"(\d+)({'|'.join(_BODIES)})$")


def one_thread(text: str) -> str:
    """The module in which nothing is asked of a thread or of the system."""
    if "thread_local" in text:
        text = _SEEDS.sub(lambda row: f"{row['head']}{_SEED}}}\n", text)
        text = _ADDRESS.sub(lambda row: f"getelementptr i8, ptr {row['of']}, i64 0", text)
        text = _VARIABLE.sub(_plain, text)
    text = _COUNT.sub(lambda row: f"{row['head']}internal {row['rest']} zeroinitializer{row['tail']}", text)

    def once(row: re.Match[str]) -> str:
        types = [f"ptr %a{n}" if n != 1 else "i1 %a1" for n in range(5)]
        made = _ONCE.format("%a0", "%a2", "%a3")
        return f"define internal void @{row['symbol']}({', '.join(types)}) {{\n{made}}}\n"

    def body(row: re.Match[str]) -> str:
        name = _LAST.search(row["symbol"])
        if demangled(row["symbol"])[:1] not in (["std"], ["core"]) or name is None or int(name[1]) != len(name[2]):
            return row[0]
        return f"define internal {row['head']}@{row['symbol']}({row['types']}) {{\n{_BODIES[name[2]]}}}\n"

    version = _VERSION.search(text)
    if version and (int(version[1]), int(version[2])) >= _COMPLETE_IS_ZERO:
        text = _CALLED_ONCE.sub(once, text)
    made = _DECLARED.sub(body, text)
    counts = "@llvm.ctlz.i64(" in made and not re.search(r"^declare [^\n]*@llvm\.ctlz\.i64\(", made, re.M)
    return made + ("declare i64 @llvm.ctlz.i64(i64, i1 immarg)\n" if counts else "")


def _plain(row: re.Match[str]) -> str:
    head, rest = row["head"], row["rest"]
    if "external" in head:
        type_, _, tail = rest.removeprefix("global ").rpartition(", align ")
        return f"@{row['name']} = internal global {type_ or rest.removeprefix('global ')} zeroinitializer" + \
            (f", align {tail}" if type_ else "")
    return f"@{row['name']} = {head}{rest}"

"""Allocators of Zig's library, by `malloc`.

Their own pages come from the system, or hold floats beside addresses that are exchanged atomically, which no derivative
is found through. Here each piece of memory is one of C's; an arena keeps a list of its pieces, which it frees when it
ends or is reset. Nothing grows in place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

__all__ = ["by_malloc"]

_BODY = r"(?P<where> !dbg !(?P<node>\d+)) \{\n.*?^\}\n"
_ARENA = re.compile(
    r"^(?P<head>define [^@\n]*@heap\.ArenaAllocator\.(?P<name>alloc|resize|remap|free|deinit|reset)\([^\n]*?)" + _BODY,
    re.M | re.S,
)  # fmt: skip
_PLAIN = re.compile(
    r"^(?P<head>define [^@\n]*@(?:heap\.(?:Page|Smp)Allocator|\"heap\.debug_allocator\.DebugAllocator\([^\"\n]*\))\."
    r"(?P<name>alloc|resize|remap|free)\"?\([^\n]*?)" + _BODY, re.M | re.S,
)  # fmt: skip
_LAYOUT = re.compile(r"^%heap\.ArenaAllocator = type \{ %mem\.Allocator, %heap\.ArenaAllocator\.State \}$", re.M)
_LIST = "  %list = getelementptr i8, ptr %0, i64 16\n"  # behind the allocator, an address and a table
_FREED = f"""Entry:
{_LIST}  %first = load ptr, ptr %list
  br label %Next
Next:
  %node = phi ptr [ %first, %Entry ], [ %after, %Free ]
  %none = icmp eq ptr %node, null
  br i1 %none, label %Done, label %Free
Free:
  %after = load ptr, ptr %node
  %slot = getelementptr i8, ptr %node, i64 8
  %data = load ptr, ptr %slot
  call void @free(ptr %data)
  call void @free(ptr %node)
  br label %Next
Done:
"""
_NEW = """Entry:
  %wide = icmp ugt i6 %2, 4
  br i1 %wide, label %None, label %Some
None:
  ret ptr null
Some:
  %data = call noalias ptr @malloc(i64 %1)
"""
_OF_ARENAS = {
    "alloc": f"""{_NEW}  %node = call noalias ptr @malloc(i64 16)
{_LIST}  %before = load ptr, ptr %list
  store ptr %before, ptr %node
  %slot = getelementptr i8, ptr %node, i64 8
  store ptr %data, ptr %slot
  store ptr %node, ptr %list
  ret ptr %data
""",
    "resize": "Entry:\n  %fits = icmp ule i64 %4, %2\n  ret i1 %fits\n",
    "remap": "Entry:\n  %fits = icmp ule i64 %4, %2\n  %same = select i1 %fits, ptr %1, ptr null\n  ret ptr %same\n",
    "free": "Entry:\n  ret void\n",
    "deinit": f"{_FREED}  ret void\n",
    "reset": f"{_FREED}  store ptr null, ptr %list\n  ret i1 true\n",
}
_OF_OTHERS = {
    **_OF_ARENAS, "alloc": f"{_NEW}  ret ptr %data\n", "free": "Entry:\n  call void @free(ptr %1)\n  ret void\n",
}  # fmt: skip
_OF_C = {"malloc": "declare noalias ptr @malloc(i64)\n", "free": "declare void @free(ptr)\n"}


def by_malloc(text: str, library: Set[str]) -> str:
    """The module in which allocators have their memory of `malloc`; `library`: the nodes of functions that stand in
    Zig's own files."""

    def replaced(row: re.Match[str], bodies: Mapping[str, str]) -> str:
        if row["node"] not in library:
            return row[0]
        return f"{row['head']} alwaysinline{row['where']} {{\n{bodies[row['name']]}}}\n"

    made = _PLAIN.sub(lambda row: replaced(row, _OF_OTHERS), text)
    if _LAYOUT.search(text):
        made = _ARENA.sub(lambda row: replaced(row, _OF_ARENAS), made)
    if made == text:
        return text
    known = {name for name in _OF_C if re.search(rf"^(?:declare|define) [^@\n]*@{name}\(", made, re.M)}
    return made + "".join(row for name, row in _OF_C.items() if name not in known)

"""Internal procedures of Fortran that are passed on as arguments.

Such a procedure sees the variables of the one that it stands in. flang passes their address in a parameter of its own
(`nest`), and the address of a few instructions, written to the stack, that supply it (`llvm.init.trampoline`). Here the
place of those is taken by a function of the module, which finds the address in a variable:

    call void @llvm.init.trampoline(%t, @inner, %frame)      store ptr %frame, ptr @inner.frame
    %f = call ptr @llvm.adjust.trampoline(%t)                %f = @inner.bound      calls @inner(..., load @inner.frame)

A procedure gives the variable its old value back when it returns. That is not enough where one that runs twice at a
time is entered again below a call of what it passed on: `inner` fails there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from irgrad.engine.ir.text.outline import calls_itself
from irgrad.engine.signature.prototype import prototype_of

__all__ = ["bound"]

_INIT = re.compile(
    r"^  (?:tail )?call void @llvm\.init\.trampoline\(ptr (?:[^,%\n]*)(?P<at>%[\w.]+),"
    r" ptr (?:[^,@\n]*)@(?P<inner>[\w.]+), ptr (?:[^,%\n]*)(?P<frame>%[\w.]+)\)[^\n]*\n", re.M,
)  # fmt: skip
_ADJUST = re.compile(
    r"^  (?P<value>%[\w.]+) = (?:tail )?call ptr @llvm\.adjust\.trampoline\("
    r"ptr (?:[^,%\n]*)(?P<at>%[\w.]+)\)[^\n]*\n", re.M,
)  # fmt: skip
_DECLARED = re.compile(r"^declare [^@\n]*@llvm\.(?:init|adjust)\.trampoline\([^\n]*\n", re.M)
_FUNCTION = re.compile(r'^define [^@\n]*@(?P<name>[\w.]+|"[^"\n]+")\([^\n]*\{\n(?P<body>.*?)^\}\n', re.M | re.S)
_RETURN = re.compile(r"^  ret ", re.M)
_SYMBOL = re.compile(r'@([\w.]+|"[^"\n]+")')
_DIRECT = re.compile(r'\bcall (?:[^@%\n]|%(?=[\w.]+ @))*?@([\w.]+|"[^"\n]+")\(')
_INDIRECT = re.compile(r"\bcall [^@\n]*? %[\w.]+\(")
_ENTRY = re.compile(r"(?P<label>[\w.]+:[^\n]*\n)?")
_SAID = ("an internal procedure of a recursive one is called through an argument: make it a module procedure, and hand"
         " over what it needs")  # fmt: skip


def bound(text: str) -> str:
    """The module in which internal procedures that are passed on are functions of their own."""
    if "@llvm.init.trampoline(" not in text:
        return text
    graph = _calls(text)
    used: dict[str, bool] = {}

    def rewritten(function: re.Match[str]) -> str:
        body = function["body"]
        passed = {row["at"]: row["inner"] for row in _INIT.finditer(body)}
        taken = {row["at"] for row in _ADJUST.finditer(body)}
        inner = sorted({passed[at] for at in taken if at in passed})
        for name in inner:
            used[name] = used.get(name, False) or calls_itself(graph, function["name"])
        body = _INIT.sub(lambda row: f"  store ptr {row['frame']}, ptr @{row['inner']}.frame\n"
                         if row["at"] in taken else "", body)  # fmt: skip
        body = _ADJUST.sub(lambda row: f"  {row['value']} = getelementptr i8, ptr @{passed[row['at']]}.bound, i64 0\n",
                           body)  # fmt: skip
        if inner:
            label = _ENTRY.match(body)
            at = label.end() if label else 0
            kept = "".join(f"  %{name}.before = load ptr, ptr @{name}.frame\n" for name in inner)
            back = "".join(f"  store ptr %{name}.before, ptr @{name}.frame\n" for name in inner)
            body = body[:at] + kept + _RETURN.sub(lambda row: back + row[0], body[at:])
        start = function.start("body") - function.start()
        return function[0][:start] + body + "}\n"

    text = _DECLARED.sub("", _FUNCTION.sub(rewritten, text))
    made = [_thunk(text, name, again) for name, again in used.items()]
    if any(used.values()):
        made.append(f'\n@_QQirgradNest = internal constant [{len(_SAID)} x i8] c"{_SAID}"\n')
        if "@_FortranAStopStatementText(ptr" not in text:
            made.append("declare void @_FortranAStopStatementText(ptr, i64, i1, i1) noreturn\n")
    return re.sub(r"\bptr nest ", "ptr ", text) + "".join(made)


def _thunk(text: str, name: str, again: bool) -> str:
    """The function that calls an internal procedure with the variables of the one that it stands in."""
    prototype = prototype_of(text, name)
    parameters = [row for row in prototype.written if not re.search(r"\bnest\b", row)]
    head = (f"\n@{name}.frame = internal global ptr null\n"
            f"define internal {prototype.returns} @{name}.bound({', '.join(parameters)}) {{\n")  # fmt: skip
    if again:
        stop = f"  call void @_FortranAStopStatementText(ptr @_QQirgradNest, i64 {len(_SAID)}, i1 true, i1 false)\n"
        return f"{head}{stop}  unreachable\n}}\n"
    arguments = ", ".join(row if row in parameters else "ptr %irgrad.frame" for row in prototype.written)
    call = f"call {prototype.returns} @{name}({arguments})"
    result = f"  {call}\n  ret void\n" if prototype.returns == "void" else f"  %irgrad.value = {call}\n" \
        f"  ret {prototype.returns} %irgrad.value\n"
    return f"{head}  %irgrad.frame = load ptr, ptr @{name}.frame\n{result}}}\n"


def _calls(text: str) -> Mapping[str, set[str]]:
    """Which functions of the module each may call; one that is called through a pointer may be any whose address is
    taken, which is that of `""`."""
    graph: dict[str, set[str]] = {"": set()}
    spans = []
    for function in _FUNCTION.finditer(text):
        body = function["body"]
        called = _DIRECT.findall(body)
        graph[function["name"]] = {*called, *([""] if _INDIRECT.search(body) else [])}
        mentioned = _SYMBOL.findall(body)
        graph[""].update(name for name in set(mentioned) if mentioned.count(name) > called.count(name))
        spans.append(function.span())
    between = zip([(0, 0), *spans], [*spans, (len(text), 0)], strict=True)
    outside = "".join(text[end:start] for (_, end), (start, _) in between)
    for line in outside.splitlines():
        if line.startswith("@"):
            graph[""].update(_SYMBOL.findall(line)[1:])
    return graph

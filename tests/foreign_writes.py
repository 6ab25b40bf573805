"""Assignments to attributes of another object from outside its class, found by reading the sources.

Types are inferred as far as annotations, constructors and return types go: of parameters, of local variables, of the
attributes of the package's own classes. An assignment whose object has no type that can be told is not found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Write(NamedTuple):
    """`function` of `module` assigns to `attribute` of an object of the class `owner`."""

    module: str
    function: str
    owner: str
    attribute: str
    line: int


@dataclass
class _Class:
    name: str
    modules: set[str]  # where a class of this name is
    bases: list[str]
    attributes: dict[str, str] = field(default_factory=dict)  # name -> class
    results: dict[str, str] = field(default_factory=dict)  # method or property -> class
    setters: set[str] = field(default_factory=set)  # properties that may be assigned: that is a call of a method


@dataclass
class _Scope:
    """What is known where a statement stands."""

    classes: dict[str, _Class]
    functions: dict[str, str]  # function of a module -> class of its result
    own: str  # the class around, or ""
    names: dict[str, str] = field(default_factory=dict)  # variable -> class

    def type_of(self, node: ast.expr) -> str:
        """The class of an expression, "" where it cannot be told."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "")
        if isinstance(node, ast.Attribute):
            return self._member(self.type_of(node.value), node.attr)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                return node.func.id if node.func.id in self.classes else self.functions.get(node.func.id, "")
            return self.type_of(node.func)
        if isinstance(node, ast.IfExp):
            return self.type_of(node.body) or self.type_of(node.orelse)
        return ""

    def _member(self, owner: str, name: str) -> str:
        for cls in lineage(self.classes, owner):
            found = self.classes[cls].attributes.get(name) or self.classes[cls].results.get(name)
            if found:
                return found
        return ""


def lineage(classes: dict[str, _Class], name: str) -> Iterator[str]:
    """A class and those that it inherits from."""
    work, seen = [name], set()
    while work:
        current = work.pop()
        if current in classes and current not in seen:
            seen.add(current)
            yield current
            work += classes[current].bases


def _named(annotation: ast.expr | None, classes: dict[str, _Class]) -> str:
    """The one class of ours that an annotation names (`Unit`, `Unit | None`, `"Unit"`)."""
    if annotation is None:
        return ""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if isinstance(annotation, ast.BinOp):
        return _named(annotation.left, classes) or _named(annotation.right, classes)
    if isinstance(annotation, ast.Attribute):
        return annotation.attr if annotation.attr in classes else ""
    return annotation.id if isinstance(annotation, ast.Name) and annotation.id in classes else ""


def _parameters(function: ast.FunctionDef, classes: dict[str, _Class]) -> dict[str, str]:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {arg.arg: found for arg in given if (found := _named(arg.annotation, classes))}


def _functions(body: list[ast.stmt], own: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """(class around or "", function), the functions within functions left to their outer one."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield own, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, node.name)
        elif isinstance(node, ast.If | ast.With | ast.Try):
            yield from _functions(node.body, own)


def _assigned(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
        targets = [node.target]
    else:
        return []
    flat: list[ast.expr] = []
    for target in targets:
        flat += target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return flat


def _learn(scope: _Scope, function: ast.FunctionDef) -> None:
    """Types of the local variables of a function; a variable of two classes has none."""
    for node in ast.walk(function):
        pairs: list[tuple[ast.expr, str]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, scope.type_of(node.value)) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, _named(node.annotation, scope.classes))]
        elif isinstance(node, ast.NamedExpr):
            pairs = [(node.target, scope.type_of(node.value))]
        for target, found in pairs:
            if isinstance(target, ast.Name) and found:
                scope.names.setdefault(target.id, found)


def writes(files: dict[str, Path]) -> list[Write]:
    """The assignments to attributes of objects of a class that is neither the one around, nor one of its bases, nor
    one of the same module (what a module does to its own records is seen in one file)."""
    trees = {module: ast.parse(file.read_text()) for module, file in files.items()}
    classes, functions = _declared(trees)
    found = []
    for module, tree in trees.items():
        for own, function in _functions(tree.body):
            scope = _scope(classes, functions[module], own, function)
            for node in ast.walk(function):
                for target in _assigned(node) if isinstance(node, ast.stmt) else []:
                    if not isinstance(target, ast.Attribute):
                        continue
                    owner = scope.type_of(target.value)
                    inside = module in classes[owner].modules if owner else True
                    inside = inside or any(target.attr in classes[cls].setters for cls in lineage(classes, owner))
                    inside = inside or owner in lineage(classes, own) or own in lineage(classes, owner)
                    if not inside:
                        found.append(Write(module, function.name, owner, target.attr, node.lineno))
    return found


def _scope(classes: dict[str, _Class], functions: dict[str, str], own: str, function: ast.FunctionDef) -> _Scope:
    scope = _Scope(classes, functions, own, _parameters(function, classes))
    if own and function.args.args and not any(_is_static(d) for d in function.decorator_list):
        scope.names[function.args.args[0].arg] = own
    _learn(scope, function)
    return scope


def _is_static(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Name) and decorator.id == "staticmethod"


def _declared(trees: dict[str, ast.Module]) -> tuple[dict[str, _Class], dict[str, dict[str, str]]]:
    """The classes of all modules by name, and the functions whose result is an object of one of them."""
    classes: dict[str, _Class] = {}
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                classes.setdefault(node.name, _Class(node.name, set(), bases)).modules.add(module)
    functions: dict[str, dict[str, str]] = {module: {} for module in trees}
    for module, tree in trees.items():
        for own, function in _functions(tree.body):
            made = _named(function.returns, classes)
            if own and any(isinstance(d, ast.Attribute) and d.attr == "setter" for d in function.decorator_list):
                classes[own].setters.add(function.name)
            if own and made:
                classes[own].results[function.name] = made
            elif made:
                functions[module][function.name] = made
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for item in node.body:
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                        classes[node.name].attributes[item.target.id] = _named(item.annotation, classes)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in functions:
                theirs = functions[node.module]
                functions[module].update({a.asname or a.name: theirs[a.name] for a in node.names if a.name in theirs})
    for _ in range(2):  # attributes that are made from attributes of other classes
        for module, tree in trees.items():
            for own, function in _functions(tree.body):
                if own:
                    _attributes(classes, functions[module], own, function)
    return classes, functions


def _attributes(classes: dict[str, _Class], functions: dict[str, str], own: str, function: ast.FunctionDef) -> None:
    scope = _scope(classes, functions, own, function)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            pairs = [(target, scope.type_of(node.value)) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, _named(node.annotation, classes))]
        else:
            continue
        for target, made in pairs:
            named = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
            if made and named and scope.type_of(target.value) == own:
                classes[own].attributes.setdefault(target.attr, made)

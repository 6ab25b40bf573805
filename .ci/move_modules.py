"""Moves modules of the engine to the folders of the table below, and rewrites every mention of them: imports, dotted
names, paths in comments and documents. Tests move beside their modules. Changes nothing where nothing is left to move.

Usage: python .ci/move_modules.py        from the root of the repository
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

# package of irgrad.engine -> its modules today, each OLD or OLD=NEW NAME
PLACES = {
    "support": "limits progress pause scratch foreign own_sources",
    "ir": "analyses.locations",
    "ir.text": "ir.reader ir.lexer ir.cursor ir.body ir.instructions ir.entities ir.validate",
    "runtime": "transforms.runtime=helpers transforms.arena batch_driver batch_writer=ir_writer tape_memory",
    "analyses.control": "analyses.cfg analyses.dominators analyses.loops",
    "analyses.memory": "analyses.assembly analyses.objects analyses.pointers=points_to analyses.inclusion "
    "analyses.cells=fields analyses.spots=pointer_offsets analyses.ranges=value_ranges analyses.offsets=strided_sets "
    "analyses.modref analyses.effects=call_effects analyses.bodies analyses.kinds=byte_kinds analyses.tbaa",
    "analyses.evolution": "analyses.affine analyses.induction analyses.counting analyses.trips transforms.reductions "
    "transforms.counters transforms.earlier transforms.clobber",
    "analyses.types": "analyses.memory_types analyses.carriers analyses.contents analyses.argument_accesses",
    "analyses.activity": "analyses.activity analyses.dataflow analyses.shadows analyses.structural_zeros "
    "analyses.bits analyses.facts",
    "normalise": "transforms.canonical transforms.reducible transforms.demote transforms.alike=equal_phis "
    "transforms.desugar transforms.library transforms.variadic",
    "normalise.reinterpret": "transforms.packed transforms.mixed transforms.elements transforms.unions "
    "transforms.retype",
    "normalise.exceptions": "transforms.unwinding transforms.handlers transforms.typeinfo",
    "legality": "transforms.screen transforms.undecidable transforms.puns=type_punning "
    "transforms.partial=partial_stores transforms.pieces=split_pointers transforms.refuse",
    "differentiate": "transforms.derive transforms.unit transforms.split",
    "differentiate.primitives": "transforms.rows transforms.emit transforms.leaves transforms.strong_zero",
    "differentiate.shadow": "transforms.lanes transforms.apart=separate_shadows transforms.aliased=runtime_activity "
    "transforms.either=tagged_words transforms.carried transforms.copies transforms.kept=persistent_memory "
    "transforms.releases",
    "differentiate.forward": "transforms.sweep transforms.forward transforms.replay",
    "differentiate.tape": "transforms.plan=min_cut transforms.recall=rematerialise transforms.storage "
    "transforms.room=tape_size transforms.liveness transforms.taped",
    "differentiate.reverse": "transforms.reverse transforms.augment transforms.backward transforms.adjoints "
    "transforms.idle=zero_adjoint_skip",
    "differentiate.custom_rules": "analyses.rulebook transforms.ruled transforms.custom transforms.context "
    "transforms.symbols transforms.views transforms.rule_arguments transforms.rule_batches transforms.rule_lanes "
    "transforms.fixed transforms.left=memory_snapshot transforms.foreign transforms.hosted transforms.registered",
    "schedule": "transforms.cells transforms.neighbours transforms.upward transforms.levels transforms.demand "
    "transforms.marks transforms.jam=unroll_and_jam transforms.distribute transforms.factors transforms.clears "
    "transforms.guards",
    "widen": "transforms.batch=widening transforms.batch_flatten=if_conversion transforms.batch_masks=loop_masks "
    "transforms.batch_uniform=uniformity transforms.batch_worth=profitability",
    "signature": "signature signature_parser=parser extents dtypes structs prototype slots status",
    "kernel": "kernel binding programs run options writes host turns=serialised_calls messages tapes linearity trees "
    "normal=normal_form packing select",
    "functions": "gradients jacobians directions strips sparse implicit checking explain export",
    "batches": "batched batch_axes=axes batch_blocks=blocks batch_first=widen_first batch_plan=plan "
    "batch_threads=threads batch_unit=unit",
    "rulecheck": "rule_check=check rule_measure=measure rule_runs=runs rule_subjects=subjects rule_testing=testing",
    "enzyme": "notation.calls notation.dispatch notation.interposable notation.leaving notation.lower notation.names "
    "notation.plain notation.registered notation.results notation.splitting notation.thunks",
}
HELPERS = (
    "bit_programs cases cases_calls cases_control cases_math cases_memory cases_structs cases_types made "
    "opcode_cases"
)
DATA = {"transforms/arena.ll": "runtime/arena.ll", "transforms/kept.ll": "runtime/persistent_memory.ll"}
ROOT = "irgrad.engine."


def moves() -> dict[str, str]:
    """Old dotted name -> new one, both without `irgrad.engine.`."""
    found = {}
    for package, modules in PLACES.items():
        for entry in modules.split():
            old, _, name = entry.partition("=")
            found[old] = f"{package}.{name or old.rpartition('.')[2]}"
    return {old: new for old, new in found.items() if old != new}


def main() -> None:
    """Move, rewrite, and let git know."""
    table = moves()
    names = sorted(table, key=len, reverse=True)
    files = [Path(f) for f in _listed() if f != ".ci/move_modules.py"]
    if not Path("engine/transforms").exists():
        raise SystemExit("nothing to move")
    dotted = re.compile(r"\birgrad\.engine\.(" + "|".join(map(re.escape, names)) + r")(?!\w)(?!\.py)")
    paths = [name.replace(".", "/") for name in names]
    path = re.compile(r"\b(tests/)?(engine/)(" + "|".join(paths) + r")\.py(?!\w)")
    short = re.compile(r"(?<![\w/])((?:transforms|analyses|notation)/\w+)\.py(?!\w)")
    for file in files:
        if file.suffix not in (".py", ".md", ".toml", ".ll", ".sh", ".c", ".cpp") or not file.is_file():
            continue
        text = before = file.read_text(encoding="utf-8", errors="surrogateescape")
        if file.suffix == ".py":
            text = _package_imports(text, table)
        text = dotted.sub(lambda m: ROOT + table[m[1]], text)
        text = path.sub(lambda m: f"{m[1] or ''}engine/{table[m[3].replace('/', '.')].replace('.', '/')}.py", text)
        text = short.sub(lambda m: f"{table.get(m[1].replace('/', '.'), m[1].replace('/', '.')).replace('.', '/')}.py",
                         text)  # fmt: skip
        for old, new in DATA.items():
            text = text.replace(f"engine/{old}", f"engine/{new}")
        if text != before:
            file.write_text(text, encoding="utf-8", errors="surrogateescape")
    for old, new in table.items():
        _move(Path("engine", *old.split(".")).with_suffix(".py"), Path("engine", *new.split(".")).with_suffix(".py"))
    for old, new in DATA.items():
        _move(Path("engine", old), Path("engine", new))
    moved = _move_tests(files, table)
    for name in HELPERS.split():
        _move(Path(f"tests/engine/transforms/{name}.py"), Path(f"tests/handwritten/{name}.py"))
    beside = re.compile(r"^(\s*)from \.(" + "|".join(HELPERS.split()) + r") import", re.M)
    for file in (Path(f) for f in _listed()):
        if file.suffix == ".py" and file.parts[0] == "tests" and file != Path(__file__):
            text = before = file.read_text(encoding="utf-8", errors="surrogateescape")
            if file.parts[:2] != ("tests", "handwritten"):
                text = beside.sub(r"\1from handwritten.\2 import", text)
            for old, new in moved.items():
                text = text.replace(old, new)
            if text != before:
                file.write_text(text, encoding="utf-8", errors="surrogateescape")
    for left in ("engine/transforms", "engine/notation", "tests/engine/transforms", "tests/engine/notation"):
        init = Path(left, "__init__.py")
        if init.exists():
            subprocess.run(["git", "rm", "-q", str(init)], check=True)


def _listed() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    return [name for name in listed if name and Path(name).is_file()]


def _package_imports(text: str, table: dict[str, str]) -> str:
    """`from irgrad.engine.transforms import apart, lanes` in terms of the new packages, with uses of new names."""
    lines = text.split("\n")
    renamed: dict[str, str] = {}
    tree = ast.parse(text)
    for node in sorted((n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)), key=lambda n: -n.lineno):
        module = node.module or ""
        if not (module + ".").startswith(ROOT):
            continue
        package = module[len(ROOT) :]
        new: list[str] = []
        rest: list[ast.alias] = []
        for alias in node.names:
            old = f"{package}.{alias.name}".lstrip(".")
            if old not in table or (not package and alias.name in ("kernel",)):
                rest.append(alias)
                continue
            home, _, name = table[old].rpartition(".")
            if alias.asname is None and name != alias.name:
                renamed[alias.name] = name
            new.append(f"from {ROOT}{home} import {name}" + (f" as {alias.asname}" if alias.asname else ""))
        if new:
            indent = lines[node.lineno - 1][: node.col_offset]
            if rest:
                kept = ", ".join(a.name + (f" as {a.asname}" if a.asname else "") for a in rest)
                new.insert(0, f"from {module} import {kept}")
            assert node.end_lineno is not None
            lines[node.lineno - 1 : node.end_lineno] = [indent + line for line in new]
    text = "\n".join(lines)
    if renamed:
        lines = text.split("\n")
        uses = [n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Attribute)]
        found = [(n.lineno, n.col_offset, n.id) for n in uses if isinstance(n, ast.Name) and n.id in renamed]
        for row, column, old in sorted(found, reverse=True):
            line = lines[row - 1].encode()
            lines[row - 1] = (line[:column] + renamed[old].encode() + line[column + len(old) :]).decode()
        text = "\n".join(lines)
    return text


def _move(old: Path, new: Path) -> None:
    if not old.exists():
        return
    new.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "mv", str(old), str(new)], check=True)
    folder = new.parent
    while folder != Path("engine") and folder.parts[0] == "engine":
        init = folder / "__init__.py"
        if not init.exists():
            init.write_text("")
            subprocess.run(["git", "add", str(init)], check=True)
        folder = folder.parent


def _move_tests(files: list[Path], table: dict[str, str]) -> dict[str, str]:
    """Test files are named after their module: the longest name that theirs begins with. Old paths -> new ones."""
    moved: dict[str, str] = {}
    for file in files:
        if file.parts[:2] != ("tests", "engine") or not file.name.startswith("test_") or not file.exists():
            continue
        package = ".".join(file.parts[2:-1])
        words = file.stem.removeprefix("test_").split("_")
        for count in range(len(words), 0, -1):
            old = f"{package}.{'_'.join(words[:count])}".lstrip(".")
            if old in table:
                home, _, name = table[old].rpartition(".")
                rest = "".join(f"_{word}" for word in words[count:])
                target = Path("tests/engine", *home.split("."), f"test_{name}{rest}.py")
                target.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(["git", "mv", str(file), str(target)], check=True)
                moved[str(file)] = str(target)
                break
            if Path("engine", *old.split(".")).with_suffix(".py").exists():
                break
    return moved


if __name__ == "__main__":
    main()

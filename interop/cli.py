"""The command line: `irgrad demo | grad | check | run | cc | rules | hints | cache`.

Exit code 0: done; 1: an irgrad error (printed without a traceback), a derivative that does not pass its check;
2: wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irgrad.rules.errors import IRGradError, SignatureError

if TYPE_CHECKING:
    from irgrad.engine.kernel import Kernel
    from irgrad.interop.loaders import Library

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in (["run"], ["cc"]):  # the command lines of a compiler: argparse does not read them
        from irgrad.interop.driver import main_cc, main_run

        return _guarded(lambda: main_run(words[1:]) if words[0] == "run" else main_cc(words[1:]))
    parser = _parser()
    options = parser.parse_args(words)
    if not hasattr(options, "run"):
        parser.print_help(sys.stderr)
        return 2
    from irgrad.engine.progress import show_always

    show_always()
    return _guarded(lambda: int(options.run(options)))


def _guarded(action: Callable[[], int]) -> int:
    """The exit code of a command; errors are printed."""
    try:
        return action()
    except IRGradError as error:
        print(error.render(), file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print("irgrad: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    from irgrad import __version__

    parser = argparse.ArgumentParser(prog="irgrad", description="Derivatives of compiled functions.")
    parser.add_argument("--version", action="version", version=f"irgrad {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    demo = commands.add_parser("demo", help="differentiate a C function: value, gradient, check, timing, JAX")
    demo.add_argument("--bodies", type=_positive, default=256, help="number of bodies (default 256)")
    demo.add_argument("--no-jax", action="store_true", help="leave JAX out")
    demo.set_defaults(run=_demo)

    grad = commands.add_parser("grad", help="write a gradient as .ll, .s, .o or .so, with a C header")
    _function_arguments(grad)
    grad.add_argument("--wrt", required=True, help="arguments to differentiate, separated by commas")
    grad.add_argument("-o", "--output", type=Path, required=True, help="file to write; its suffix says the form")
    grad.add_argument("--name", help="name of the C function (default FUNC_grad)")
    grad.add_argument("--cpu", choices=("native", "baseline"), default="native",
                      help="code for this CPU, or for every CPU of this architecture")  # fmt: skip
    grad.set_defaults(run=_grad)

    check = commands.add_parser("check", help="compare reverse, forward and differences at random arguments")
    _function_arguments(check)
    check.add_argument("--wrt", help="arguments to check, separated by commas (default: all floats)")
    check.add_argument("--size", action="append", default=[], metavar="NAME=N",
                       help="value of an extent or an integer argument (default 5)")  # fmt: skip
    check.add_argument("--seed", type=int, default=0, help="of the random arguments")
    check.add_argument("--range", type=float, nargs=2, default=(0.5, 1.5), metavar=("LOW", "HIGH"),
                       help="of the random arguments (default 0.5 1.5)")  # fmt: skip
    check.set_defaults(run=_check)

    commands.add_parser("run", help="compile and run a C or C++ program that calls __enzyme_autodiff and the like")
    commands.add_parser("cc", help="compile such a program to an executable, .o, .so or .ll")

    rules = commands.add_parser("rules", help="the rules of derivatives: all of them, or those of one function")
    rules.add_argument("action", choices=("list", "show"))
    rules.add_argument("function", nargs="?", help="for show: a symbol")
    _rules_argument(rules)
    rules.set_defaults(run=_rules)

    hints = commands.add_parser("hints", help="functions that a file calls and that have no derivative: lines to paste")
    hints.add_argument("file", metavar="FILE", help="C, C++ or LLVM IR (.c .cc .cpp .ll .bc)")
    _build_arguments(hints)
    _rules_argument(hints)
    hints.set_defaults(run=_hints)

    cache = commands.add_parser("cache", help="the disk cache: where, how large; empty it")
    cache.add_argument("action", choices=("info", "clear"))
    cache.set_defaults(run=_cache)
    return parser


def _function_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="C, C++ or LLVM IR (.c .cc .cpp .ll .bc)")
    parser.add_argument("function", metavar="FUNC", help="name of the function")
    parser.add_argument("--sig", metavar="SIGNATURE", help='e.g. "f64(f64[n,3] pos, f64[n] mass, i64 n)"')
    _build_arguments(parser)


def _rules_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rules", action="append", default=[], metavar="MODULE",
                        help="a Python module or file that defines rules")  # fmt: skip


def _build_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-I", dest="include", action="append", default=[], metavar="DIR", help="folder for #include")
    parser.add_argument("-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]", help="a macro")
    parser.add_argument("--link", action="append", default=[], metavar="FILE", help="more sources, or shared libraries")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _library(options: argparse.Namespace) -> Library:
    from irgrad.engine.progress import Progress
    from irgrad.interop.loaders import load

    define = dict(row.split("=", 1) if "=" in row else (row, "1") for row in options.define)
    with Progress(f"compiling {options.file}"):
        return load(options.file, include=options.include, define=define, link=options.link)


def _kernel(options: argparse.Namespace) -> Kernel:
    made = _library(options).kernel(options.function, options.sig)
    kernel: Kernel = getattr(made, "kernel", made)  # of a function with structs: the one that takes their fields
    return kernel


def _demo(options: argparse.Namespace) -> int:
    from irgrad.interop.demo import run_demo

    return 0 if run_demo(options.bodies, jax=not options.no_jax) else 1


def _grad(options: argparse.Namespace) -> int:
    from irgrad.engine.codegen.objects import write
    from irgrad.engine.export import export_header, export_text
    from irgrad.engine.gradients import grad
    from irgrad.engine.progress import Progress
    from irgrad.engine.status import shown_name

    kernel = _kernel(options)
    names = _names(options.wrt)
    gradient = grad(kernel, wrt=names[0] if len(names) == 1 else names)
    name = options.name or f"{shown_name(kernel.name)}_grad"
    with Progress(f"differentiating {shown_name(kernel.name)}"):
        text = export_text(gradient, name)
    with Progress(f"writing {options.output}"):
        output = write(options.output, text, [name], cpu=options.cpu)
    header = output.with_suffix(".h")
    header.write_text(export_header(gradient, name), encoding="utf-8")
    print(f"{output}: {output.stat().st_size} bytes, `{name}`\n{header}: its prototype")
    return 0


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise SignatureError("`--wrt` is empty", fix="--wrt x   or   --wrt x,y")
    return names


def _check(options: argparse.Namespace) -> int:
    from irgrad.engine.checking import check
    from irgrad.engine.progress import Progress
    from irgrad.engine.status import shown_name

    kernel = _kernel(options)
    args = _random_arguments(kernel, _sizes(options.size), options.seed, options.range)
    with Progress(f"checking {shown_name(kernel.name)}"):
        report = check(kernel, *args, wrt=_names(options.wrt) if options.wrt else None, seed=options.seed)
    print(report)
    return 0 if report else 1


def _sizes(rows: list[str]) -> dict[str, int]:
    sizes = {}
    for row in rows:
        name, equals, number = row.partition("=")
        if not equals or not number.lstrip("-").isdigit():
            raise SignatureError(f"`--size {row}` cannot be read", fix="--size n=16")
        sizes[name] = int(number)
    return sizes


def _random_arguments(kernel: Kernel, sizes: dict[str, int], seed: int, bounds: tuple[float, float]) -> list[Any]:
    import numpy as np

    rng = np.random.default_rng(seed)
    names = {n for p in kernel.signature.parameters for e in p.shape or () for n in e.names()}
    values = {**dict.fromkeys(sorted(names), 5), **sizes}
    args: list[Any] = []
    for p in kernel.signature.arguments:
        shape = p.extents(values)
        if p.dtype.is_float:
            array = rng.uniform(*bounds, shape).astype(p.dtype.numpy)
            args.append(array if p.is_array else float(array))
        elif p.is_array:
            args.append(rng.integers(0, 2, shape).astype(p.dtype.numpy))
        else:
            args.append(values.get(p.name, 5))
    return args


def _rules(options: argparse.Namespace) -> int:
    from irgrad.interop.hints import import_rules
    from irgrad.rules.report import show
    from irgrad.rules.table import rows

    import_rules(options.rules)
    if options.action == "show":
        if not options.function:
            raise SignatureError("`rules show` needs a function", fix="irgrad rules show sin")
        print(show(options.function))
        return 0
    print(show())
    print(f"tables: {', '.join(sorted(rows()))}")
    return 0


def _hints(options: argparse.Namespace) -> int:
    from irgrad.interop.hints import hints, import_rules

    import_rules(options.rules)
    print(hints(_library(options)))
    return 0


def _cache(options: argparse.Namespace) -> int:
    from irgrad.engine.codegen.cache import default_cache

    cache = default_cache()
    if options.action == "clear":
        print(f"{cache.root}: removed {cache.clear()} entries")
    else:
        print(cache.info())
    return 0


if __name__ == "__main__":
    sys.exit(main())

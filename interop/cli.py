"""The command line: `irgrad demo | grad | check | explain | run | cc | ar | rules | hints | cache | ...`.

Exit code 0: done; 1: an irgrad error (printed without a traceback), a derivative that does not pass its check;
2: wrong usage.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from irgrad.rules.errors import IRGradError, LimitExceeded, SignatureError

if TYPE_CHECKING:
    from irgrad.engine.kernel.kernel import Kernel
    from irgrad.engine.report.explain import Explanation
    from irgrad.interop.loaders import Library

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):  # closed by who started us: what we print goes nowhere
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    if words[:1] in (["run"], ["cc"]):  # the command lines of a compiler: argparse does not read them
        from irgrad.engine.support.scratch import orderly_end
        from irgrad.interop.driver import main_cc, main_run

        with orderly_end():
            return _guarded(lambda: main_run(words[1:]) if words[0] == "run" else main_cc(words[1:]))
    if words[:1] in (["ar"], ["ranlib"]):
        from irgrad.interop.build_tools import archiver

        return _guarded(lambda: archiver(words))
    parser = _parser()
    options = parser.parse_args(_ranges(words))
    if not hasattr(options, "run"):
        parser.print_help(sys.stderr)
        return 2
    from irgrad.engine.support.progress import show_always

    show_always()
    return _guarded(lambda: int(options.run(options)))


def _ranges(words: list[str]) -> list[str]:
    """`--range NAME=LOW:HIGH` as an option of its own: that of all arguments takes two numbers."""
    pairs = zip(words, [*words[1:], ""], strict=False)
    return ["--range-of" if word == "--range" and "=" in after else word for word, after in pairs]


def _guarded(action: Callable[[], int]) -> int:
    """The exit code of a command; errors are printed."""
    try:
        return action()
    except IRGradError as error:
        from irgrad.interop.arguments import as_options

        print(as_options(error).render(), file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print("irgrad: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    from irgrad import __version__

    parser = Parser(prog="irgrad", description="Derivatives of compiled functions.")
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
    grad.add_argument("--target", metavar="sm_90", help="an architecture of NVIDIA's GPUs: a kernel with a sample a "
                      "thread, as .ptx, or .cubin where ptxas is installed")
    grad.add_argument("--shared", default="", metavar="NAMES", help="with --target: arguments that all samples share")
    _rules_argument(grad)
    grad.set_defaults(run=_grad)

    check = commands.add_parser("check", help="compare reverse, forward and differences at random arguments")
    _function_arguments(check)
    check.add_argument("--wrt", help="arguments to check, separated by commas (default: all floats)")
    check.add_argument("--size", action="append", default=[], metavar="NAME=N",
                       help="value of an extent or an integer argument (default 5)")  # fmt: skip
    check.add_argument("--seed", type=_natural, default=0, help="of the random arguments")
    check.add_argument("--range", type=float, nargs=2, default=(0.5, 1.5), metavar=("LOW", "HIGH"),
                       help="of the random arguments (default 0.5 1.5); of one of them: --range NAME=LOW:HIGH")
    check.add_argument("--range-of", action="append", default=[], help=argparse.SUPPRESS)
    check.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                       help="an argument: a number, FILE.npy, or FILE.npz[:KEY]")  # fmt: skip
    _rules_argument(check)
    check.set_defaults(run=_check)

    explain = commands.add_parser("explain", help="what is known of a derivative: activity, loops, tape, rules, lanes")
    _function_arguments(explain)
    explain.add_argument("--wrt", help="arguments to differentiate, separated by commas (default: all floats)")
    explain.add_argument("--derivative", default="vjp", choices=("vjp", "grad", "value_and_grad", "jvp"),
                         help="of which function (default vjp)")  # fmt: skip
    explain.add_argument("--size", action="append", default=[], metavar="NAME=N",
                         help="an integer argument: tell the bytes of the tape for such")  # fmt: skip
    explain.add_argument("--html", type=Path, metavar="FILE", help="write a page with the source and the facts")
    explain.add_argument("--passes", action="store_true", help="tell the passes, their times and instructions")
    explain.add_argument("--target", default="", metavar="ARCHITECTURE", help="what a GPU makes of it, as sm_90")
    explain.add_argument("--no-lanes", action="store_true", help="leave vector lanes out: the derivative is not made")
    _rules_argument(explain)
    explain.set_defaults(run=_explain)

    commands.add_parser("run", help="compile and run a C or C++ program that calls __enzyme_autodiff and the like")
    commands.add_parser("cc", help="compile such a program to an executable, .o, .so or .ll")

    rules = commands.add_parser("rules", help="the rules of derivatives: all of them, or those of one function")
    rules.add_argument("action", choices=("list", "show"))
    rules.add_argument("function", nargs="?", help="for show: a symbol")
    _rules_argument(rules)
    rules.set_defaults(run=_rules)

    hints = commands.add_parser("hints", help="what lacks a derivative, lines to paste; floats tested for equality")
    hints.add_argument("file", metavar="FILE", help="a source (.c .cc .cpp .zig .rs .f90), or LLVM IR (.ll .bc)")
    _build_arguments(hints)
    _rules_argument(hints)
    hints.set_defaults(run=_hints)

    served = commands.add_parser("tesseract", help="write a tesseract_api.py: a function and its derivatives")
    _function_arguments(served)
    served.add_argument("-o", "--output", type=Path, default=Path("tesseract_api.py"), help="file to write")
    served.set_defaults(run=_tesseract)

    opt = commands.add_parser("opt", help="run passes of the engine on a file and print the IR")
    opt.add_argument("file", metavar="FILE", nargs="?", help="LLVM IR, C or C++; - for IR on standard input")
    opt.add_argument("-p", "--passes", metavar="NAME[,NAME]", help="passes or stages, in this order")
    opt.add_argument("--root", action="append", default=[], metavar="FUNC", help="a function that stays visible")
    opt.add_argument("--no-preopt", action="store_true", help="only what canonical form needs")
    opt.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    opt.add_argument("--list", action="store_true", help="the stages and their passes")
    opt.set_defaults(run=_opt)

    commands.add_parser("ar", help="an archiver for objects of -flto: ar qc lib.a a.o ...")
    commands.add_parser("ranlib", help="its index: ranlib lib.a")
    cmake = commands.add_parser("cmake-file", help="print a toolchain file: cmake -B build --toolchain FILE")
    cmake.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    cmake.set_defaults(run=_cmake_file)

    cache = commands.add_parser("cache", help="the disk cache: where, how large; empty it")
    cache.add_argument("action", choices=("info", "clear"))
    cache.set_defaults(run=_cache)

    tune = commands.add_parser("tune", help="measure what the tape and what functions cost on this machine")
    action = tune.add_mutually_exclusive_group()
    action.add_argument("--show", action="store_true", help="print the costs that are used, and the shipped ones")
    action.add_argument("--reset", action="store_true", help="remove the table: the shipped costs are used again")
    tune.set_defaults(run=_tune)
    return parser


def _function_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a source (.c .cc .cpp .zig .rs), or LLVM IR (.ll .bc)")
    parser.add_argument("function", metavar="FUNC", help="name of the function")
    parser.add_argument("--sig", metavar="SIGNATURE", help='e.g. "f64(f64[n,3] pos, f64[n] mass, i64 n)"')
    _build_arguments(parser)


class Parser(argparse.ArgumentParser):
    """argparse, with the nearest command or option behind what it does not know."""

    def error(self, message: str) -> NoReturn:
        import difflib

        known = [word for action in self._actions for word in (*action.option_strings, *(action.choices or ()))]
        for command in self._actions:
            for parser in command.choices.values() if isinstance(command.choices, dict) else ():
                known += parser._option_string_actions
        wrong = re.search(r"invalid choice: '([^']*)'|unrecognized arguments: (--?[-\w]+)", message)
        near = difflib.get_close_matches((wrong[1] or wrong[2]), map(str, known), 1) if wrong else []
        super().error(message + (f"\ndid you mean {near[0]}?" if near else ""))


def _rules_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rules", action="append", default=[], metavar="MODULE",
                        help="a Python module or file that defines rules")  # fmt: skip


def _build_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-I", dest="include", action="append", default=[], metavar="DIR", help="folder for #include")
    parser.add_argument("-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]", help="a macro")
    parser.add_argument("--link", action="append", default=[], metavar="FILE", help="more sources, or shared libraries")


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must be at least 0")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _library(options: argparse.Namespace) -> Library:
    from irgrad.engine.support.progress import Progress
    from irgrad.interop.loaders import load

    define = dict(row.split("=", 1) if "=" in row else (row, "1") for row in options.define)
    with Progress(f"compiling {options.file}"):
        return load(options.file, include=options.include, define=define, link=options.link)


def _kernel(options: argparse.Namespace) -> Kernel:
    from irgrad.interop.hints import import_rules

    import_rules(options.rules)
    made = _library(options).kernel(options.function, options.sig)
    kernel: Kernel = getattr(made, "kernel", made)  # of a function with structs: the one that takes their fields
    return kernel


def _demo(options: argparse.Namespace) -> int:
    from irgrad.interop.demo import run_demo

    return 0 if run_demo(options.bodies, jax=not options.no_jax) else 1


def _grad(options: argparse.Namespace) -> int:
    from irgrad.engine.codegen.objects import write
    from irgrad.engine.functions.export import export_header, export_text
    from irgrad.engine.functions.gradients import grad
    from irgrad.engine.signature.status import shown_name
    from irgrad.engine.support.progress import Progress

    kernel = _kernel(options)
    names = _names(options.wrt)
    gradient = grad(kernel, wrt=names[0] if len(names) == 1 else names)
    name = options.name or re.sub(r"\W+", "_", f"{shown_name(kernel.name)}_grad")
    if options.target:
        return _device_grad(options, gradient, name)
    with Progress(f"differentiating {shown_name(kernel.name)}"):
        text = export_text(gradient, name)
    with Progress(f"writing {options.output}"):
        output = write(options.output, text, [name], cpu=options.cpu)
    header = output.with_suffix(".h")
    header.write_text(export_header(gradient, name), encoding="utf-8")
    print(f"{output}: {output.stat().st_size} bytes, `{name}`\n{header}: its prototype")
    return 0


def _device_grad(options: argparse.Namespace, gradient: Any, name: str) -> int:
    from irgrad.engine.codegen import nvptx
    from irgrad.engine.codegen.objects import write_whole
    from irgrad.engine.grids.export import gradient_grid, gradient_header
    from irgrad.engine.grids.threads_of_loops import for_device
    from irgrad.engine.report.explain import explain
    from irgrad.rules.errors import LoadError

    output: Path = options.output
    if output.suffix not in (".ptx", ".cubin"):
        raise LoadError(f"`{output.suffix}` is no form of device code", because="the forms are .ptx and .cubin",
                        fix=f"-o {output.with_suffix('.ptx')}")
    nvptx.nvidia(options.target)
    shared = _names(options.shared) if options.shared else ()
    code = nvptx.ptx(gradient_grid(gradient, name, shared), [name], options.target)
    tape = explain(for_device(gradient.kernel), "grad", options.wrt.split(","), lanes=False).total
    header = gradient_header(gradient, name, options.target, shared, tape)
    data = nvptx.cubin(code, options.target) if output.suffix == ".cubin" else code.encode()
    write_whole(output, data)
    beside = output.with_suffix(".h")
    beside.write_text(header, encoding="utf-8")
    print(f"{output}: {len(data)} bytes, kernel `{name}` for {options.target}\n{beside}: how to launch it")
    if nvptx.ptxas() is not None:
        used = nvptx.resources(code, options.target)
        print(", ".join(f"{word}: {number}" for word, number in used.items()))
    return 0


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise SignatureError("`--wrt` is empty", fix="--wrt x   or   --wrt x,y")
    return names


def _check(options: argparse.Namespace) -> int:
    from irgrad.engine.functions.checking import check
    from irgrad.engine.signature.status import shown_name
    from irgrad.engine.support.progress import Progress
    from irgrad.interop.arguments import Choice, random_arguments, sizes_of

    kernel = _kernel(options)
    choice = Choice(sizes_of(options.size), options.set, options.range, options.range_of, options.seed)
    try:
        args = random_arguments(kernel, choice)
    except MemoryError as error:
        raise LimitExceeded("the arguments do not fit into memory", where=f"`{kernel.signature}`", because=str(error),
                            fix="smaller numbers with --size") from None
    with Progress(f"checking {shown_name(kernel.name)}"):
        report = check(kernel, *args, wrt=_names(options.wrt) if options.wrt else None, seed=options.seed)
    print(report)
    return 0 if report else 1


def _explain(options: argparse.Namespace) -> int:
    from irgrad.engine.report.explain import explain
    from irgrad.engine.signature.status import shown_name
    from irgrad.engine.support.progress import Progress
    from irgrad.interop.arguments import known_size, sizes_of

    kernel, sizes = _kernel(options), sizes_of(options.size)
    integers = [p.name for p in kernel.signature.parameters if not (p.is_array or p.dtype.is_float)]
    for name in sizes:
        known_size(kernel, name, sizes[name], integers)
    wrt = _names(options.wrt) if options.wrt else None
    with Progress(f"explaining {shown_name(kernel.name)}"):
        found = explain(kernel, options.derivative, wrt, lanes=not options.no_lanes, passes=options.passes,
                        target=options.target)  # fmt: skip
    text = str(found)
    if sizes:
        text += f"\n\n{_tape_bytes(found, sizes)}"
    print(text)
    if options.html is not None:
        found.to_html(options.html)
        print(f"\n{options.html}: the page")
    return 0


def _tape_bytes(found: Explanation, sizes: dict[str, int]) -> str:
    """The bytes for these sizes, or what is missing."""
    shown = ", ".join(f"{name}={value}" for name, value in sizes.items())
    try:
        number = found.tape_bytes(sizes)
    except KeyError as error:
        name = error.args[0]
        raise SignatureError(f"the bytes of the tape follow from `{name}` too", where=f"`{found.signature}`",
                             fix=f"--size {name}=1000") from None
    return f"tape of a call for {shown}: " + ("not known before it runs" if number is None else f"{number} bytes")


def _opt(args: argparse.Namespace) -> int:
    from irgrad.interop.passes import listed, optimised

    if args.list:
        print(listed())
        return 0
    if args.file is None or args.passes is None:
        raise IRGradError("no file or no passes", fix="irgrad opt -p normalise in.ll   or   irgrad opt --list")
    text = optimised(args.file, args.passes, args.root, preopt=not args.no_preopt)
    if args.output is not None:
        args.output.write_text(text, encoding="utf-8", errors="surrogateescape")
    else:
        print(text, end="" if text.endswith("\n") else "\n")
    return 0


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


def _cmake_file(options: argparse.Namespace) -> int:
    from irgrad.interop.build_tools import toolchain

    if options.output is None:
        print(toolchain(), end="")
    else:
        options.output.write_text(toolchain(), encoding="utf-8")
    return 0


def _tesseract(options: argparse.Namespace) -> int:
    from irgrad.interop.tesseract import api_text, relative

    define = dict(row.split("=", 1) if "=" in row else (row, "1") for row in options.define)
    given = {"include": options.include, "define": define, "link": options.link}
    kernel = _library(options).kernel(options.function, options.sig)
    source = relative(Path(options.file), options.output)
    text = api_text(kernel, source, options.function, {name: value for name, value in given.items() if value})
    options.output.write_text(text, encoding="utf-8")
    print(f"{options.output}: apply, jacobian, jacobian_vector_product, vector_jacobian_product, abstract_eval")
    return 0


def _cache(options: argparse.Namespace) -> int:
    from irgrad.engine.codegen.cache import default_cache

    cache = default_cache()
    if options.action == "clear":
        print(f"{cache.root}: removed {cache.clear()} entries")
    else:
        print(cache.info())
    return 0


def _tune(options: argparse.Namespace) -> int:
    from irgrad.interop import tuning

    print(tuning.shown() if options.show else tuning.reset() if options.reset else tuning.tune())
    return 0


if __name__ == "__main__":
    sys.exit(main())

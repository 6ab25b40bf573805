"""Programs with jobs under the thread sanitiser: machine code of their IR with its instrumentation, on four threads.

    python tests/fuzz/sanitised.py [NAME ...]        the cases of `team_cases.py` that are named, or all
    python tests/fuzz/sanitised.py 0:10              programs of `region_programs.py` as `irgrad cc` makes them, by seed
    python tests/fuzz/sanitised.py --parts           kernels and programs of `part_cases.py` and `memory_cases.py`

clang (of the ziglang wheel) writes the instrumented code, gcc's libtsan is its runtime.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RUN = "irgrad_team_run"
_HEAD = re.compile(r"^(define [^\n]*?\)[^\n{]*?)( personality [^\n{]*| !dbg [^\n{]*)?\{$", re.M)
_PART = re.compile(r"^(define internal ptr @irgrad\.team\.\d+\.part[.\d]*\([^\n]*\{\n(?:[\w.]+:[^\n]*\n)?)", re.M)
_CLANG = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-gnu", "-fsanitize=thread",
          "-fno-sanitize=undefined", "-O1", "-w", "-c"]  # fmt: skip
MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void *__tsan_memset(void *to, int byte, size_t size) { return memset(to, byte, size); }
void *__tsan_memcpy(void *to, const void *from, size_t size) { return memcpy(to, from, size); }
void *__tsan_memmove(void *to, const void *from, size_t size) { return memmove(to, from, size); }
void *program(void **frame);
void irgrad_team_threads(long threads);
int main(int count, char **files) {
    void *frame[64];
    for (int k = 1; k < count; k++) {
        FILE *file = fopen(files[k], "rb");
        fseek(file, 0, SEEK_END);
        long size = ftell(file);
        rewind(file);
        frame[k - 1] = aligned_alloc(64, (size + 64) / 64 * 64);
        if (fread(frame[k - 1], 1, size, file) != (size_t)size) return 2;
        fclose(file);
    }
    irgrad_team_threads(4);
    for (int k = 0; k < 400; k++)
        if (program(frame)) return 3;
    return 0;
}
"""


def available() -> bool:
    """Whether gcc and its sanitiser are there."""
    if shutil.which("gcc") is None:
        return False
    found = subprocess.run(["gcc", "-print-file-name=libtsan.so"], capture_output=True, text=True, check=False)
    return found.returncode == 0 and "/" in found.stdout


def instrumented(text: str) -> str:
    """A module whose functions ask for instrumentation, with a rest at the beginning of each part of a job: one thread
    would be through with small ones before the others are awake."""
    text, count = _PART.subn(r"\1  %rest = call i32 @usleep(i32 100)\n", text)
    text += "\ndeclare i32 @usleep(i32)\n" if count and "@usleep(i32)" not in text else ""
    return _HEAD.sub(r"\1 sanitize_thread\2 {", text)


def race(program: Any, buffers: list[np.ndarray[Any, Any]], change: Callable[[str], str] = str) -> str:
    """What the sanitiser says of some calls of a program; "" where it says nothing. change: of the text before."""
    from irgrad.engine.codegen.team import pages_text, team_text

    entry = program.entry_symbol
    text = change(program.ir).replace(f"@{entry}", "@program").replace(f'@"{entry}"', "@program")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "program.ll").write_text(instrumented(text), encoding="utf-8")
        (place / "team.ll").write_text(instrumented(team_text()), encoding="utf-8")
        shared = pages_text().replace("linkonce_odr hidden ", "")
        (place / "pages.ll").write_text(instrumented(shared), encoding="utf-8")
        (place / "main.c").write_text(MAIN, encoding="utf-8")
        objects = [f"{name}.o" for name in ("program", "team", "pages")]
        for name in objects:
            _run([*_CLANG, f"{name[:-1]}ll", "-o", name], folder)
        _run(["gcc", "-fsanitize=thread", "-O1", "main.c", *objects, "-lm", "-o", "main"], folder)
        files = []
        for number, array in enumerate(buffers):
            (place / str(number)).write_bytes(np.ascontiguousarray(array).tobytes() or b"\0")
            files.append(str(number))
        command = ["setarch", "-R", "./main"] if shutil.which("setarch") else ["./main"]  # it wants a known layout
        done = subprocess.run([*command, *files], cwd=folder, capture_output=True, text=True, check=False,
                              env={"TSAN_OPTIONS": "exitcode=66"})  # fmt: skip
        return "" if done.returncode == 0 else f"{done.returncode}: {done.stderr[:3000]}"


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def check(name: str, change: Callable[[str], str] = str) -> str:
    """The value, the gradient and the tangents of a case."""
    import irgrad
    from fuzz.team_cases import CASES, SOURCE

    signature, args, _ = CASES[name]
    return race_of(irgrad.load(SOURCE, flags=["-fopenmp"]).kernel(name, signature, threads=4), args, change)


def race_of(kernel: Any, args: Sequence[Any], change: Callable[[str], str] = str) -> str:
    """The value, the gradient and the tangents of a kernel, each of which has jobs."""
    bound = kernel.bind(tuple(args), {})
    said = ""
    active = [n for n, slot in enumerate(kernel.primal.slots) if slot.differentiable]
    for program in (kernel.primal, kernel.primal.vjp(active), kernel.primal.jvp(active)):
        assert f"@{RUN}(" in program.ir, "no loop is shared"
        given = {slot.index: array for slot, array in zip(kernel.primal.slots, bound.buffers, strict=False)}
        buffers = []
        for slot, shape in zip(program.slots, program.shapes(bound.sizes), strict=True):
            array = None if slot.steps else given.get(slot.index)
            buffers.append(np.full(shape, 0.25, slot.dtype.numpy) if array is None else array)
        said += race(program, buffers, change)
    return said


def check_parts(name: str, change: Callable[[str], str] = str) -> str:
    """A kernel of `part_cases.py`."""
    import irgrad
    from fuzz.part_cases import SIGNATURE, X, Y, source_of

    lib = irgrad.load(source_of(name).replace("static double f(", "double f("), flags=["-fopenmp"])
    return race_of(lib.kernel("f", SIGNATURE, threads=4), (X, Y), change)


def check_memory(name: str, change: Callable[[str], str] = str) -> str:
    """A kernel of `memory_cases.py`."""
    import irgrad
    from fuzz.memory_cases import OWN, SIGNATURE, A, text_of

    lib = irgrad.load(text_of(OWN[name]), flags=["-fopenmp"])
    return race_of(lib.kernel("f", SIGNATURE, threads=4), (A,), change)


def check_parts_program(name: str, change: Callable[[str], str] = str) -> str:
    """A program of `part_cases.py`: its values, its gradient and its tangents."""
    from fuzz.part_cases import MAIN as MAIN_OF_PARTS
    from fuzz.part_cases import source_of

    def changed(text: str) -> str:
        assert f"@{RUN}(" in text, "no loop is shared"
        return change(text)

    return race_of_program(source_of(name) + MAIN_OF_PARTS, [], changed)


def check_tape(name: str) -> str:
    """The two sweeps of a case with a tape between them."""
    import ctypes

    import irgrad
    from fuzz.team_cases import CASES, SOURCE
    from irgrad.engine.kernel.tapes import tape_of
    from irgrad.engine.signature.slots import TAPE, TAPE_BYTES

    signature, args, _ = CASES[name]
    kernel = irgrad.load(SOURCE, flags=["-fopenmp"]).kernel(name, signature, threads=4)
    bound, slots = kernel.bind(tuple(args), {}), kernel.primal.slots
    active = [n for n, slot in enumerate(slots) if slot.differentiable]
    given = {slot.index: array for slot, array in zip(slots, bound.buffers, strict=False)}
    whole = {n: int(given[slot.index]) for n, slot in enumerate(slots)
             if not slot.parameter.is_array and not slot.dtype.is_float}  # fmt: skip
    size = tape_of(kernel.primal, active).bytes(whole)
    assert size
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    tape = memory[start : start + size]

    def buffers(program: Any) -> list[np.ndarray[Any, Any]]:
        own: dict[int, Any] = {TAPE: tape, TAPE_BYTES: np.array(size)}
        made = []
        for slot in program.slots:
            array = own.get(slot.index, None if slot.steps else given.get(slot.index))
            made.append(np.full(slot.shape(bound.sizes), 0.25, slot.dtype.numpy) if array is None else array)
        return made

    forward, reverse = kernel.primal.forward_with_tape(active), kernel.primal.reverse_from_tape(active)
    rows = buffers(forward)
    frame = (ctypes.c_void_p * len(rows))(*[row.ctypes.data for row in rows])
    assert forward.entry(ctypes.addressof(frame)) is None
    return race(forward, buffers(forward)) + race(reverse, buffers(reverse))


def check_program(seed: int, change: Callable[[str], str] = str) -> str:
    """A random program with regions: its own values, its gradient and its tangents. change: of its text before."""
    from fuzz.region_programs import source_of

    return race_of_program(source_of(seed), [str((400, 4000)[seed % 2])], change)


def race_of_program(source: str, words: Sequence[str], change: Callable[[str], str] = str) -> str:
    """What the sanitiser says of a C program, as `irgrad cc` makes it, on four threads."""
    import warnings

    from irgrad.interop.driver import program_text

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = Path(folder)
        (place / "p.c").write_text(source)
        text = program_text(["-O1", "-fopenmp", str(place / "p.c"), "-lm"])
        (place / "p.ll").write_text(instrumented(change(text)), encoding="utf-8")
        (place / "t.c").write_text("\n".join(row for row in MAIN.splitlines() if "__tsan" in row or row[:1] == "#"))
        _run([*_CLANG, "p.ll", "-o", "p.o"], folder)
        _run(["gcc", "-fsanitize=thread", "-O1", "t.c", "p.o", "-lm", "-o", "main"], folder)
        command = ["setarch", "-R", "./main"] if shutil.which("setarch") else ["./main"]
        done = subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, check=False,
                              env={"TSAN_OPTIONS": "exitcode=66", "OMP_NUM_THREADS": "4"})  # fmt: skip
        return "" if done.returncode == 0 else f"{done.returncode}: {done.stderr[:3000]}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from small_chunks import small_chunks

    from fuzz import memory_cases, part_cases
    from fuzz.team_cases import CASES

    small_chunks()
    if "--parts" in sys.argv:
        for names, checked in ((part_cases.CASES, check_parts), (part_cases.CASES, check_parts_program),
                               (memory_cases.OWN, check_memory)):  # fmt: skip
            for case in names:
                print(checked.__name__, case, checked(case) or "no race", flush=True)
        sys.exit()
    if sys.argv[1:] and sys.argv[1][0].isdigit():
        first, _, last = sys.argv[1].partition(":")
        for seed in range(int(first), int(last or int(first) + 1)):
            print(seed, check_program(seed) or "no race", flush=True)
        sys.exit()
    for case in sys.argv[1:] or CASES:
        print(case, check(case) or "no race", flush=True)

"""The benchmark command: `python benchmarks/run.py [names...] [--quick] [--json FILE]`, or `python -m benchmarks`.

Each case runs in a process of its own, so that one that dies or hangs costs one line of the table, and so that no case
inherits the memory of another.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks.cases import Case, select  # noqa: E402 - the clone is not installed

COLUMNS = (
    "case", "primal", "gradient", "ratio", "to beat", "/to beat", "/here", "call", "manual", "JAX", "tape",
    "compile", "verdict",
)  # fmt: skip
WIDTHS = (15, 8, 8, 6, 7, 8, 6, 8, 8, 8, 8, 7, 7)


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen cases and print the table. Returns 0 when every derivative is right, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="benchmarks", description="Gradients against their primals, checked first.")
    parser.add_argument("names", nargs="*", help="cases, or the part of their name before the dash; all by default")
    parser.add_argument("--quick", action="store_true", help="reduced sizes and few runs: checks, not measurements")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--no-jax", action="store_true", help="leave JAX out")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds a case may take")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return _child(options)
    cases = select(options.names)
    if options.list:
        for case in cases:
            print(f"{case.name:16}{case.operation:8}{case.signature}")
        return 0
    print(line(COLUMNS))
    rows = []
    for case in cases:
        row = _isolated(case, options)
        rows.append(row)
        print(render(row), flush=True)
    print(summary(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["verdict"] == "right" for row in rows) else 1


def _child(options: argparse.Namespace) -> int:
    from benchmarks import peer_jax

    peer_jax.one_thread()
    from benchmarks.harness import run_case

    row = run_case(select([options.child])[0], quick=options.quick, with_jax=not options.no_jax)
    print(json.dumps(row.as_json()))
    return 0


def _isolated(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).resolve()), "--child", case.name]
    command += ["--quick"] * options.quick + ["--no-jax"] * options.no_jax
    # The disk cache is off: what is reported is the cold compile time. The C compiler's own cache stays.
    environment = {**os.environ, "IRGRAD_CACHE": "0", "OMP_NUM_THREADS": "1"}
    failed = {"name": case.name, "number": case.number, "to_beat": case.to_beat, "verdict": "died"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=options.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {**failed, "verdict": "hung", "note": f"no end after {options.timeout:.0f} s"}
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        return {**failed, "note": f"exit code {done.returncode}\n{done.stderr[-2000:]}"}
    row: dict[str, Any] = json.loads(lines[-1])
    return row


def line(cells: tuple[str, ...]) -> str:
    """One line of the table: the first column to the left, the others to the right."""
    padded = [f"{cell:>{width}}" for cell, width in zip(cells[1:], WIDTHS[1:], strict=True)]
    return f"{cells[0]:<{WIDTHS[0]}}" + " ".join(padded)


def render(row: dict[str, Any]) -> str:
    """The row as a line; what irgrad said about a failure follows indented."""

    def duration(key: str) -> str:
        return "-" if row.get(key) is None else _seconds(row[key]["least"])

    ratio = row.get("ratio")
    tape = row.get("tape_bytes")
    compiled = row.get("compile_s")
    native = "gradient_native" if row.get("gradient_native") else "gradient"
    peers = [row[key]["least"] for key in ("manual", "jax") if row.get(key)]
    cells = (
        row["name"],
        duration("primal"),
        duration(native),
        "-" if ratio is None else f"{ratio:.2f}",
        f"{row['to_beat']:.2f}",
        "-" if ratio is None else f"{ratio / row['to_beat']:.2f}",
        "-" if not peers or not row.get(native) else f"{row[native]['least'] / min(peers):.2f}",
        duration("gradient"),
        duration("manual"),
        duration("jax"),
        "-" if tape is None else _bytes(tape),
        "-" if compiled is None else f"{compiled:.2f} s",
        row["verdict"],
    )
    notes = [f"irgrad: {row['note']}"] if row.get("note") else []
    notes += [f"JAX: {row['jax_note']}"] if row.get("jax_note") else []
    if row["verdict"] == "WRONG":
        notes.append(f"largest error {row['error']:.1e}, relative to the largest entry")
    return "\n".join([line(cells), *("    " + text.replace("\n", "\n    ") for text in notes)])


def summary(rows: list[dict[str, Any]]) -> str:
    """How many are right and within once, twice and ten times the ratio to beat, and how many kernels are within twice
    in every variant."""
    right = sum(row["verdict"] == "right" for row in rows)
    factors = [row["ratio"] / row["to_beat"] for row in rows if row.get("ratio") is not None]
    parts = [f"{right} of {len(rows)} right"]
    parts += [f"{sum(f <= limit for f in factors)} within {limit:g}x of the ratio to beat" for limit in (1, 2, 10)]
    kernels: dict[int, bool] = {}
    for row in rows:
        within = row.get("ratio") is not None and row["ratio"] <= 2 * row["to_beat"]
        kernels[row["number"]] = kernels.get(row["number"], True) and within
    parts.append(f"{sum(kernels.values())} of {len(kernels)} kernels within 2x in every variant")
    return ", ".join(parts)


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _bytes(value: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value} B"


if __name__ == "__main__":
    sys.exit(main())

"""Plans are made once, and live with their kernel."""

from __future__ import annotations

import gc
import weakref

import numpy as np
from samples import library, sample

import irgrad
from irgrad.interop.programs.arguments import Values, bound_call
from irgrad.interop.programs.plans import Plan, plan_of

VALUES = Values(lambda x: isinstance(x, np.ndarray), lambda x, p: np.asarray(x), lambda x, p: int(x), "map")


def _plan(kernel, values):
    call = bound_call(kernel, values, VALUES)
    return plan_of(Plan, call.spec, call.sizes, call.constants)


def test_a_plan_is_made_once_with_its_derivatives() -> None:
    plan = _plan(sample("scale"), [np.ones(3), np.array(0.5)])
    assert plan is _plan(sample("scale"), [np.ones(3), np.array(0.7)])
    assert plan is not _plan(sample("scale"), [np.ones(4), np.array(0.5)])
    assert plan.results == [((3,), "float64"), ((3,), "float64")] and plan.flows == [True, True]
    (first, term), *_ = plan.gradients((0,), (0, 1))
    assert first is plan.gradients((0,), (0, 1))[0][0] and first.spec == term.spec
    assert plan.tangents((0,))[0][0].spec.directions == ((0,),)
    assert plan.mapped(5).results[0] == ((5, 3), "float64") and plan.mapped(5) is plan.mapped(5)
    assert plan.mapped(2).mapped(5).batch == (5, 2)


def _run(plan, operands):
    out = [np.full(shape, 0 if zero else 7, dtype)
           for (shape, dtype), zero in zip(plan.results, plan.native.zeroed, strict=True)]  # fmt: skip
    plan.native([x.ctypes.data for x in operands], [x.ctypes.data for x in out])
    return out


def test_gradients_from_a_tape_are_those_of_a_second_run() -> None:
    source = """
        #include <math.h>
        void march(const double *x, double w, double *y, double *end, long n) {
            double s = w;
            for (long i = 0; i < n; i++) { s = tanh(s * x[i]) + x[i]; y[i] = s * s; }
            *end = s;
        }"""
    signature = "void(f64[n] x, f64 w, out f64[n] y, out f64 end, i64 n)"
    kernel = irgrad.load(source).kernel("march", signature)
    x, w = np.linspace(0.2, 0.9, 5), np.array(0.7)
    plan = _plan(kernel, [x, w])
    taped = plan.taped((0, 1))
    assert taped is not None and taped is plan.taped((0, 1))
    assert plan.mapped(3).taped((0,)) is None and plan.gradients((0,), (0,))[0][0].taped((0,)) is None
    *values, tape = _run(taped, [x, w])
    assert all(map(np.array_equal, values, _run(plan, [x, w])))
    cotangents = [np.linspace(1, 2, 5), np.array(-0.3)]
    for live in ((0,), (1,), (0, 1)):
        given = [cotangents[n] for n in live]
        (first, term), (second, other) = plan.gradients((0, 1), live)[0], taped.from_tape((0, 1), live)[0]
        assert second.spec.reads_tape and not first.spec.reads_tape and term.targets == other.targets
        for _ in range(2):  # a tape may be read again
            found = _run(second, [x, w, tape, *given])
            assert all(np.allclose(a, b, rtol=1e-14) for a, b in zip(found, _run(first, [x, w, *given]), strict=True))
    assert _plan(irgrad.load(source).kernel("march", signature, tape="recompute"), [x, w]).taped((0,)) is None


def test_names_tell_programs_apart() -> None:
    plan = _plan(sample("scale"), [np.ones(3), np.array(0.5)])
    others = [plan.mapped(2), plan.gradients((0,), (0,))[0][0], _plan(sample("scale"), [np.ones(4), np.array(0.5)])]
    assert len({row.name for row in (plan, *others)}) == 4 and plan.name.startswith("scale.")


def test_plans_go_with_their_kernel() -> None:
    kernel = library().kernel("cubes", "f64(f64[n] x, f64 a, i64 n)")
    _plan(kernel, [np.ones(3), np.array(0.5)]).gradients((0,), (0,))
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None

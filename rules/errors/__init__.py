"""The exceptions of irgrad: one class per kind of repair, all rendered in one shape.

    irgrad.Unsupported: no derivative is known for this call
      in      @kernel (gram.c:41:5), block %for.body
      which   %7 = call double @bessel_k(double %nu, double %x)
      because %x is active and `bessel_k` has neither a body nor a rule
      to fix  @rule("bessel_k") def _(nu, x): ...

What failed comes first, then where, then which instruction or value, then why, and the repair last.  Parts that are
empty are left out.  This module imports nothing, so that every floor may raise these errors.
"""

from __future__ import annotations

from typing import Self

__all__ = [
    "ActivityError",
    "AmbiguousRuleError",
    "CacheError",
    "CompileError",
    "DTypeError",
    "IRGradError",
    "IRInvalid",
    "IRSyntaxError",
    "KernelError",
    "LimitExceeded",
    "LoadError",
    "MissingRuleError",
    "OneAtATime",
    "OneThread",
    "RuleError",
    "ShapeError",
    "SignatureError",
    "TapeMemoryError",
    "Unsupported",
]

PARTS = ("what", "where", "which", "because", "fix")
"""The parts of an error, as they are named in Python."""
_LABEL_WIDTH = 8
"""Width of the column of labels (`in`, `which`, `because`, `to fix`)."""


class IRGradError(Exception):
    """Base class of every error that irgrad raises on purpose.

    `what` is a noun phrase: what failed.  `where` names the function, source line or file; `which` is the printed
    instruction or value; `because` gives the reason, with the value got before the value wanted; `fix` says what to do.
    All five stay readable as attributes.  `str(e)` is the rendered text without the class name.
    """

    def __init__(self, what: str, *, where: str = "", which: str = "", because: str = "", fix: str = "") -> None:
        self.what = what
        self.where = where
        self.which = which
        self.because = because
        self.fix = fix
        super().__init__(what)

    def change(self, **parts: str) -> Self:
        """Say some parts in other words; the error itself, to be raised."""
        for name, text in parts.items():
            if name not in PARTS:
                raise TypeError(f"an error has no part `{name}`")
            setattr(self, name, text)
        self.args = (self.what,)
        return self

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The labelled parts that are not empty, in the order in which they are printed."""
        labelled = (("in", self.where), ("which", self.which), ("because", self.because), ("to fix", self.fix))
        return tuple((label, text) for label, text in labelled if text)

    def __str__(self) -> str:
        lines = [self.what]
        indent = "\n" + " " * (2 + _LABEL_WIDTH)
        for label, text in self.parts:
            lines.append(f"  {label:<{_LABEL_WIDTH}}{text.replace(chr(10), indent)}")
        return "\n".join(lines)

    def render(self) -> str:
        """The whole message, led by the public name of the class: `irgrad.Unsupported: ...`."""
        return f"irgrad.{type(self).__name__}: {self}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments: the default reduction would lose them between processes.
        return _rebuild, (type(self), self.what, self.where, self.which, self.because, self.fix)


def _rebuild(kind: type[IRGradError], what: str, where: str, which: str, because: str, fix: str) -> IRGradError:
    return kind(what, where=where, which=which, because=because, fix=fix)


class Unsupported(IRGradError):
    """An operation, a callee or a pattern of memory that cannot be differentiated."""


class OneAtATime(Unsupported):
    """A rule that takes one tangent or cotangent at a time, in a derivative of several."""


class MissingRuleError(Unsupported):
    """An active call whose callee has neither a body nor a rule."""


class TapeMemoryError(IRGradError, MemoryError):
    """A derivative that ran, and found no memory for its tape. The process goes on; results are what they were."""


class RuleError(IRGradError):
    """A rule that is declared or written wrongly: its types, its prototype, what its body returns or does."""


class AmbiguousRuleError(IRGradError):
    """Two rules match a call equally well."""


class SignatureError(IRGradError):
    """A signature that cannot be read, or that contradicts the function it is given for."""


class LoadError(IRGradError):
    """A file, a symbol or a library that cannot be found or read."""


class CompileError(IRGradError):
    """Source code that its compiler refuses, or generated code that LLVM refuses."""


class IRSyntaxError(IRGradError):
    """Text that is not LLVM IR of a version that irgrad reads."""


class IRInvalid(IRGradError):
    """IR that can be read but breaks a rule of the language, or would endanger the process."""


class LimitExceeded(IRGradError):
    """Input beyond a limit that protects the process: nesting, sizes, time."""


class ShapeError(IRGradError):
    """An array whose rank or extents are not those of the signature."""


class DTypeError(IRGradError):
    """An array whose element type is not that of the signature; nothing is converted in silence."""


class KernelError(IRGradError):
    """A function that reported failure: its status was not 0.

    `status` is what it reported; `samples` are the positions in a batch that failed, the first of which had the status.
    """

    def __init__(self, what: str, *, status: int = 0, samples: tuple[int, ...] = (), **parts: str) -> None:
        super().__init__(what, **parts)
        self.status = status
        self.samples = samples

    def __reduce__(self) -> tuple[object, ...]:
        return (*super().__reduce__(), {"status": self.status, "samples": self.samples})


class CacheError(IRGradError):
    """A disk cache that cannot be used."""


class ActivityError(IRGradError):
    """A request for the derivative of, or with respect to, something that has none."""


class OneThread(RuntimeWarning):
    """One thread runs what many could run if it were written in another way: a loop, a region, a call on a GPU."""

"""What is differentiated is seen at the call, through local variables and wrappers."""

from __future__ import annotations

from irgrad.engine.enzyme.simplified import settle_statics, simplified
from irgrad.engine.ir.text.reader import read

TEXT = """
declare double @__enzyme_autodiff(ptr, double)
define internal double @square(double %x) {
  %y = fmul double %x, %x
  ret double %y
}
define internal ptr @name() {
  ret ptr @square
}
define linkonce_odr double @around(ptr %f, double %x) HOW {
  %d = call double @__enzyme_autodiff(ptr %f, double %x)
  ret double %d
}
define double @slope(double %x) {
  %where = alloca ptr
  %f = call ptr @name()
  store ptr %f, ptr %where
  %g = load ptr, ptr %where
  %d = call double @around(ptr %g, double %x)
  ret double %d
}
define i32 @main() {
  ret i32 0
}
"""


def test_wrappers_and_variables_are_seen_through() -> None:
    text = simplified(TEXT.replace("HOW", ""), whole=True, preopt=True)
    assert "@__enzyme_autodiff(ptr nonnull @square" in text or "@__enzyme_autodiff(ptr @square" in text
    assert "@around(" not in text and "alloca" not in text and "@main(" in text


def test_a_wrapper_that_is_to_stay_stays() -> None:
    text = simplified(TEXT.replace("HOW", "noinline"), whole=True, preopt=True)
    assert "@around(ptr" in text and "@__enzyme_autodiff(ptr %f" in text


VARIABLES = """
@buffer = internal global [8 x double] zeroinitializer
@named = internal global ptr @buffer
@turned = internal global ptr @buffer
@shown = internal global ptr @buffer
@open = global ptr @buffer
@rows = internal global [2 x ptr] [ptr @buffer, ptr getelementptr (i8, ptr @buffer, i64 32)]
@handed = internal global [2 x ptr] [ptr @buffer, ptr @buffer]
@holder = internal global { ptr, i32 } { ptr @shown, i32 1 }
declare void @use(ptr)
define double @f(i64 %i) {
  %w = load ptr, ptr @named
  %place = getelementptr [2 x ptr], ptr @rows, i64 0, i64 %i
  %row = load ptr, ptr %place
  %last = load ptr, ptr getelementptr (i8, ptr @rows, i64 8)
  store ptr %row, ptr @turned
  %given = getelementptr [2 x ptr], ptr @handed, i64 0, i64 %i
  call void @use(ptr %given)
  %x = load double, ptr %w
  ret double %x
}
"""


def test_static_names_of_other_variables_are_constants() -> None:
    """What is written, handed on, has its address in another variable or is not static may change."""
    module = read(VARIABLES, [])
    settle_statics(module)
    assert {var.name for var in module.globals.values() if var.constant} == {"named", "rows", "holder"}

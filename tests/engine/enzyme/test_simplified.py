"""What is differentiated is seen at the call, through local variables and wrappers."""

from __future__ import annotations

from irgrad.engine.enzyme.simplified import simplified

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

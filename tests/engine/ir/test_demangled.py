"""Types of C++ as the source has them."""

from __future__ import annotations

from irgrad.engine.ir.demangled import demangled_type, plain_name


def test_types() -> None:
    assert demangled_type("_ZTISt12domain_error") == "std::domain_error"
    assert demangled_type("_ZTIi.7") == "int"
    assert demangled_type("_ZTIN2my5ErrorE") == "my::Error"


def test_what_is_no_type() -> None:
    assert demangled_type("_ZTI%") == "%"


def test_versions_of_the_library_have_no_namespaces() -> None:
    assert plain_name("std::__1::vector<std::__cxx11::string>") == "std::vector<std::string>"

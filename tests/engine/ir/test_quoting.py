"""Names and strings survive LLVM's spelling both ways."""

from __future__ import annotations

from irgrad.engine.ir.quoting import bare_name, escape, quoted_name, unescape


def test_names_survive_both_ways() -> None:
    for name in ("x", "a b", 'q"q', "back\\slash", "nul\x00", "é", "-$._", "12"):
        assert bare_name("%" + quoted_name(name)) == name
    assert unescape(r"a\0A\\b\22") == b'a\n\\b"'
    assert escape(b'a\n"') == r"a\0A\22"


def test_strings_survive_both_ways() -> None:
    data = bytes(range(256))
    assert unescape(escape(data)) == data
    assert escape(b'a"\\b') == r"a\22\5Cb"

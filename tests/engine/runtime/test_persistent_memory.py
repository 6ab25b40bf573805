"""The list of memory that lives from call to call."""

from __future__ import annotations

import re

from irgrad.engine.runtime.arena import arena_text
from irgrad.engine.runtime.persistent_memory import link_kept


def test_the_definitions_replace_the_declarations() -> None:
    declared = "declare void @irgrad.kept.clear(ptr)\ndeclare void @free(ptr)\n"
    text = link_kept(declared)
    assert "declare void @irgrad.kept" not in text
    assert text.count("declare void @free(ptr)") == 1
    assert "release_later" not in text, "nothing of the tape without a reverse sweep"
    later = link_kept(declared + "declare void @irgrad.kept.free_later(ptr, ptr)\n" + arena_text())
    assert len(re.findall(r"^define [^\n]*release_later", later, re.M)) == 1
    assert not re.search(r"^declare [^\n]*release_later", later, re.M)
    assert link_kept("declare void @free(ptr)\n") == "declare void @free(ptr)\n"

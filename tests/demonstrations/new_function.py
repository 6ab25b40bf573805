"""What it takes to differentiate calls of a function that irgrad does not know: one row, in one file of rules/table.

This file stands for that one. The function is Spence's: its derivative is log(1 + x) / x.
"""

from __future__ import annotations

from irgrad.rules.expressions.functions import eq, log, where
from irgrad.rules.expressions.row import Family

family = Family()
family.define("spence_of_test", "f", lambda x, y: where(eq(x, 0.0), 1.0, log(1.0 + x) / x), domain=(-0.9, 9))

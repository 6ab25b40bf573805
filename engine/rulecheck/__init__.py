"""`check_rule`: is a rule used, is it right, does it keep what rules promise.

Takes the key of a rule, perhaps a kernel that calls it; gives a report. It runs derivatives on buffers between canary
words, and compares with a reference that shares no code with the rule.
"""

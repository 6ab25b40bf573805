"""What a rule is: its key, the types on which it is dispatched, prototypes, digests of bodies.

Knows nothing of which rules there are (layers, builtin tables); dispatch chooses among the rules that it is given.
"""

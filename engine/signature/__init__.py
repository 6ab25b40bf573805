"""C prototypes with shapes.

Takes a text and the prototype of the function in the IR; gives parameters, extents, structs and slots, or an error that
says what contradicts what. Slots name the pointers of a function in normal form, for the primal and for its
derivatives.
"""

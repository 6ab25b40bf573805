"""C++ exceptions as ordinary control flow.

Takes a module with landing pads; gives one in which throwing is an early return and catching a branch. It runs before
anything else looks at the module.
"""

"""The shape of control flow.

Takes a function; gives its control-flow graph, the dominator and post-dominator trees, and its loops. The results
describe the function as it was, and are made anew after a change.
"""

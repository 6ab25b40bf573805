"""From a module as a compiler wrote it to a derivative: the stages and their passes as one list (`stages`).

Takes text or a module, and a `Request`; gives the module with the derivative in it. Everything that makes derivatives
(kernels, batches, programs in the notation, `irgrad opt`) comes through here; no pass is chained anywhere else.
"""

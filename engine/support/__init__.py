"""What any package of the engine may use: limits, progress, temporary folders, a pause of the garbage collector, the
digest of irgrad's own sources. Nothing here knows of programs or derivatives.
"""

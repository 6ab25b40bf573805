"""From a function for one sample to one for L samples, in the lanes of vectors.

Takes a canonical function and the arguments that vary between samples; gives the widened function, or raises
Unsupported. Whether lanes pay is decided here too.
"""

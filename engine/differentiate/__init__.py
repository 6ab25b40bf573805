"""From a function in normal form to its derivative in normal form.

`derive` takes the module, the mode and the activity of the arguments, and adds the derivative to the module. The
packages below are its parts.
"""

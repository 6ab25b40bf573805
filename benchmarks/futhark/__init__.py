"""The ten programs of Futhark's paper (Schenck et al., AD for an Array Language with Nested Parallelism, SC 2022), in C
from their definitions: `python -m benchmarks.futhark`."""

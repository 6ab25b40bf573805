"""Whole OpenMP applications: explicit hydrodynamics on an unstructured mesh, docking energies of many poses."""

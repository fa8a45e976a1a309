"""Statistics on arrays: lifts, null distributions, decoy floors, multiplicity, power."""

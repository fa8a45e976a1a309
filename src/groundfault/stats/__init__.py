"""Pure functions on arrays: lift, null distributions, decoy floors, permutation, multiplicity,
intervals, power.
"""

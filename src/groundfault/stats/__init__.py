"""Pure functions on arrays: lift, exact null laws, decoy floors, permutation, multiplicity,
intervals, power.
"""

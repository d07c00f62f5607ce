"""Constants of the finalizer of splitmix64, a one-to-one map that spreads every bit over all.

Source: https://prng.di.unimi.it/splitmix64.c, by Sebastiano Vigna.
"""

from __future__ import annotations

INCREMENT = 0x9E3779B97F4A7C15
# Each round XORs the number with itself shifted right by so many bits, and multiplies by the factor.
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
LAST_SHIFT = 31

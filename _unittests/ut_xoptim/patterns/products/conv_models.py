"""Pieces of models where a convolution is multiplied."""

from __future__ import annotations

H = "g (float[a, 2, b, c] x) => (float[a, 2, b, c] y)"
T = "g (float[a, 2, b, c] x) => (float[a, 4, b, c] y)"
ANY = "g (float[a, 2, b, c] x) => (float[a, 2, d, e] y)"
W = "float[2, 2, 1, 1] w = {1, 2, 3, 4}"
#: two groups of one channel each
D = "float[2, 1, 1, 1] w = {1, 2}"
B = "float[2] b = {1, -1}"
#: scale 2, -1 after dividing by the deviations 2 and 4, mean 1 and 2, no epsilon
NORM = "float[2] s = {4, -4}, float[2] o = {1, 0.5}, float[2] m = {1, 2}, float[2] v = {4, 16}"
BN = "BatchNormalization<epsilon = 0.0>"
#: the reference evaluator does not run ConvTranspose with groups
GROUPED = {"reference": False}

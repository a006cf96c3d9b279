"""Texts of models, shared by the tests of products that absorb constants."""

from __future__ import annotations

H = "g (float[a, 2] x) => (float[a, 2] y)"
S = "g (float[a, b, 2] x) => (float[a, b, 2] y)"
#: the weight comes first
L = "g (float[b, 2, a] x) => (float[b, 2, a] y)"
LM = "g (float[2, a] x) => (float[2, a] y)"
#: a scale and no shift
NORM0 = "float[2] s = {4, -4}, float[2] o = {0, 0}, float[2] m = {0, 0}, float[2] v = {4, 16}"
W = "float[2, 2] w = {1, 2, 3, 4}"
B = "float[2] b = {1, -1}"
K = "float[2] k = {2, 4}"
NORM = "float[2] s = {4, -4}, float[2] o = {1, 0.5}, float[2] m = {1, 2}, float[2] v = {4, 16}"
BN = "BatchNormalization<epsilon = 0.0>"
#: reasons why a product is kept
NO_BIAS = "the product has no bias and is not known to be one of matrices"

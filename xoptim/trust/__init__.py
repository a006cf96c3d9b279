"""Verification, random inputs, bisection."""

"""Errors raised by symbolic dimensions."""

from __future__ import annotations

from ..errors import XoptimError


class DimensionError(XoptimError, ValueError):
    """Two dimensions contradict each other, or a dimension cannot be computed.

    Example::

        >>> from xbuilder.dims import broadcast_dim
        >>> broadcast_dim(2, 3)
        Traceback (most recent call last):
        ...
        xbuilder.dims.errors.DimensionError: dimensions 2 and 3 cannot be broadcast together
    """


class TooLargeError(Exception):
    """Internal: an expression passes the bounds of the normal form and becomes an opaque symbol."""

"""Converters of torch operators by family. Importing this package registers all of them."""

from xbuilder.support.walking import import_all

from ..writing.registry import find_converter

import_all(__name__, __path__)

__all__ = ["find_converter"]

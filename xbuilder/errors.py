"""The exceptions of the project. A user's input raises one of them, never a bare assert."""

from __future__ import annotations


class XoptimError(Exception):
    """Base class of every error raised on purpose by this project."""


class InvalidModelError(XoptimError, ValueError):
    """The model or the file cannot be read as a valid ONNX model."""


class ExternalDataError(InvalidModelError):
    """A tensor stored outside of the model is missing, truncated or out of reach."""


class LateCheckError(InvalidModelError):
    """A weight that is checked when it is read turns out to be wrong: the model is to be optimized
    again, without the option `late_checks`."""


class FactError(XoptimError, RuntimeError):
    """Two facts about the same result contradict each other."""


class OptionError(XoptimError, ValueError):
    """An option has a value that is not supported."""


class UnknownAttributeError(XoptimError, LookupError):
    """The value of an attribute is not known: it refers to an attribute of the function."""


class PatternError(XoptimError, RuntimeError):
    """A pattern broke a rule of the engine, the graph is left as it was before it."""

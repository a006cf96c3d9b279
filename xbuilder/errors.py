"""The exceptions of the project. A user's input raises one of them, never a bare assert."""

from __future__ import annotations


class XoptimError(Exception):
    """Base class of every error raised on purpose by this project.

    Example::

        >>> from xbuilder import GraphBuilder
        >>> try:
        ...     GraphBuilder("missing.onnx")
        ... except XoptimError as e:
        ...     print(type(e).__name__)
        InvalidModelError
    """


class InvalidModelError(XoptimError, ValueError):
    """The model or the file cannot be read as a valid ONNX model.

    Example::

        >>> from onnx import ModelProto
        >>> from xbuilder import GraphBuilder
        >>> try:
        ...     GraphBuilder(ModelProto())
        ... except InvalidModelError as e:
        ...     print(e)
        The model has neither graph nor opset; is it an ONNX model?
    """


class ExternalDataError(InvalidModelError):
    """A tensor stored outside of the model is missing, truncated or out of reach.

    Example::

        >>> from xbuilder.files.external_data import check_location
        >>> try:
        ...     check_location("../weights.bin", "tensor 'w'")
        ... except ExternalDataError as e:
        ...     print(str(e).split(". ")[-1])
        Move the file next to the model.
    """


class LateCheckError(InvalidModelError):
    """A weight that is checked when it is read turns out to be wrong: the model is to be optimized
    again, without the option `late_checks`.

    Example::

        >>> issubclass(LateCheckError, InvalidModelError)  # `except InvalidModelError` is enough
        True
    """


class FactError(XoptimError, RuntimeError):
    """Two facts about the same result contradict each other.

    Example::

        >>> from xbuilder import GraphBuilder
        >>> g = GraphBuilder(18)
        >>> name = g.make_tensor_input("x", 1, (2, 3))
        >>> try:
        ...     g.set_shape("x", (2, 4))
        ... except FactError as e:
        ...     print(str(e).split(";")[0])
        Contradiction on result 'x': shape (2, 3) against (2, 4)
    """


class OptionError(XoptimError, ValueError):
    """An option has a value that is not supported.

    Example::

        >>> from xbuilder import OptimizationOptions
        >>> try:
        ...     OptimizationOptions(patterns="defaults")
        ... except OptionError as e:
        ...     print(str(e).split("?")[0])
        Unknown pattern or set of patterns 'defaults'. Did you mean default
    """


class UnknownAttributeError(XoptimError, LookupError):
    """The value of an attribute is not known: it refers to an attribute of the function.

    Example::

        >>> from onnx import AttributeProto, NodeProto
        >>> from xbuilder.nodes.attributes import attributes_of
        >>> axis = AttributeProto(name="axis", ref_attr_name="dim", type=AttributeProto.INT)
        >>> try:
        ...     attributes_of(NodeProto(op_type="Softmax", attribute=[axis]))
        ... except UnknownAttributeError as e:
        ...     print(e)
        'axis' refers to 'dim'
    """


class PatternError(XoptimError, RuntimeError):
    """A pattern broke a rule of the engine, the graph is left as it was before it.

    Example::

        >>> import xoptim
        >>> from xoptim.testing import model_from_text
        >>> @xoptim.rewrite(root="Abs")
        ... def broken(g, node):
        ...     return g.op.Relu("z")
        >>> model = model_from_text("agraph (float[n] x) => (float[n] y) { y = Abs(x) }")
        >>> try:
        ...     xoptim.optimize(model, patterns=[broken()])
        ... except PatternError as e:
        ...     print(str(e).splitlines()[0])
        Pattern Broken breaks the graph: Relu reads 'z', which does not exist.
    """


def short_message(error: object) -> str:
    """The first line of the message of an error, which pages may follow.

    >>> short_message(ValueError("the shape is wrong\\nFile ..."))
    'the shape is wrong'
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0][:400]

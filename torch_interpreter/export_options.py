"""The options of the export: what is asked to torch.export."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from xbuilder.errors import OptionError

_NOT_SUPPORTED = {
    "tracing": "tracing without torch.export, use strategy='nostrict'",
    "dynamo": "the old dynamo export, use strategy='strict'",
    "fake": "export with fake weights",
    "tracing_module_leaves": "leaf modules of the tracing",
}


@dataclass(frozen=True)
class ExportOptions:
    """How torch.export is called.

    :param strict: goes through dynamo (True) or runs the model (False)
    :param fallback: tries several strategies until one works
    :param tracing: symbolic tracing, not supported
    :param jit: goes through torch.jit.trace: static shapes, and only the branches the arguments
        of the export take; no other strategy does that, fallback never tries it
    :param decomposition_table: None (operators stay as they are), ``"default"`` (core ATen),
        ``"all"`` or a dictionary of decompositions
    :param strategy: a name in :attr:`STRATEGIES`, replaces the options above
    :param dynamo: not supported
    :param aten_as_function: names of operators (``"aten.scaled_dot_product_attention.default"``)
        converted into local functions, True for
        :func:`torch_interpreter.get_default_aten_as_function`
    :param remove_inplace: rewrites the in-place operators, they cannot be converted otherwise
    :param allow_untyped_output: accepts outputs without known type
    :param save_ep: prefix of files where the exported program is saved (``.ep.txt``, ``.pt2``)
    :param validate_ep: runs the exported program and compares it with the model, a float is the
        tolerance
    :param backed_size_oblivious: True, False, or ``"auto"``: only if a dynamic dimension is 0 or
        1 in the arguments, so that torch does not specialise it
    :param prefer_deferred_runtime_asserts_over_guards: see torch.export
    :param cpu_kernels: casts around the operators onnxruntime has no kernel for on CPU with some
        types (most of them with bfloat16); False leaves them as they are, for another provider
    :param fake: not supported
    :param tracing_module_leaves: not supported
    :raises OptionError: an option has a value that is not supported

    ::

        ExportOptions(strategy="nostrict-dec")
    """

    strict: bool = False
    fallback: bool = False
    tracing: bool = False
    jit: bool = False
    decomposition_table: str | Mapping[Any, Callable[..., Any]] | None = None
    strategy: str | None = None
    dynamo: bool = False
    aten_as_function: bool | Collection[str] | None = None
    remove_inplace: bool = True
    allow_untyped_output: bool = False
    save_ep: str | None = None
    validate_ep: bool | float = False
    backed_size_oblivious: bool | str = "auto"
    prefer_deferred_runtime_asserts_over_guards: bool = True
    cpu_kernels: bool = True
    fake: bool = False
    tracing_module_leaves: Any = None

    STRATEGIES: ClassVar[dict[str, dict[str, Any]]] = {
        "none": {},
        "strict": {"strict": True},
        "strict-dec": {"strict": True, "decomposition_table": "default"},
        "nostrict": {"strict": False},
        "nostrict-dec": {"strict": False, "decomposition_table": "default"},
        "jit": {"jit": True},
        "fallback": {"fallback": True},
        "dec": {"decomposition_table": "default"},
        "decall": {"decomposition_table": "all"},
        "tracing": {"tracing": True},
        "fake": {"fake": True},
    }
    # order in which strategies are tried by fallback; jit is not one of them: it keeps the branch
    # the arguments of the export take, the user asks for it
    FALLBACKS: ClassVar[tuple[str, ...]] = (
        "nostrict",
        "strict",
        "nostrict-dec",
        "strict-dec",
    )

    def __post_init__(self) -> None:
        """Applies the strategy and refuses what is not supported."""
        if self.strategy is not None:
            if self.strategy not in self.STRATEGIES:
                raise OptionError(
                    f"Unknown strategy {self.strategy!r}, choose one of {list(self.STRATEGIES)}."
                )
            for name, value in self.STRATEGIES[self.strategy].items():
                object.__setattr__(self, name, value)
        for name, what in _NOT_SUPPORTED.items():
            if getattr(self, name):
                raise OptionError(f"ExportOptions({name}=...) is not supported yet: {what}.")
        if isinstance(self.aten_as_function, str):
            raise OptionError(
                f"aten_as_function must be True, False, None or a set of names of operators, not "
                f"{self.aten_as_function!r}."
            )
        if isinstance(self.decomposition_table, str) and self.decomposition_table not in (
            "default",
            "all",
        ):
            raise OptionError(
                f"decomposition_table must be None, 'default', 'all' or a dictionary, not "
                f"{self.decomposition_table!r}."
            )
        if self.backed_size_oblivious not in (True, False, "auto"):
            raise OptionError(
                f"backed_size_oblivious must be True, False or 'auto', not "
                f"{self.backed_size_oblivious!r}."
            )

    def candidates(self) -> list[ExportOptions]:
        """The options to try in order, only one unless *fallback* is set."""
        if not self.fallback:
            return [self]
        return [replace(self, fallback=False, strategy=name) for name in self.FALLBACKS]

    @property
    def label(self) -> str:
        """A short name for messages."""
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return self.strategy or ", ".join(changed) or "default"

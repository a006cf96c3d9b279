"""The options of the export: how torch.export is called."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from xbuilder.errors import OptionError
from xbuilder.support.argument_types import PATH, check_type


@dataclass(frozen=True)
class ExportOptions:
    """The arguments of the call of torch.export.

    :param strict: goes through dynamo (True) or runs the model (False)
    :param fallback: tries several strategies until one works
    :param tracing: traces the model with torch.fx before, on placeholders: nothing depends on the
        sizes of the arguments, but python cannot look at them; what was traced runs on the
        arguments and is compared with the model
    :param jit: goes through torch.jit.trace: static shapes, and only the branches the arguments
        of the export take; no other strategy does that, fallback never tries it
    :param decomposition_table: None (operators stay as they are), ``"default"`` (core ATen),
        ``"all"`` or a dictionary of decompositions
    :param strategy: a name in :attr:`STRATEGIES`, replaces the options above
    :param dynamo: goes through dynamo, another name of *strict*
    :param aten_as_function: names of operators (``"aten.scaled_dot_product_attention.default"``)
        converted into local functions, True for all those that give tensors; `"cond"` for the
        branches of ``torch.cond``
    :param remove_inplace: rewrites the in-place operators; False leaves those the user's dispatcher
        has a converter for
    :param allow_untyped_output: accepts outputs without known type
    :param save_ep: prefix of files where the exported program is saved (``.ep.txt``, ``.pt2``), or
        ``(prefix, size)``: no ``.pt2`` if the weights have more bytes than that
    :param validate_ep: runs the exported program and compares it with the model, a float is the
        tolerance
    :param backed_size_oblivious: True, False, or ``"auto"``: only if a dynamic dimension is 0 or
        1 in the arguments, so that torch does not specialise it
    :param prefer_deferred_runtime_asserts_over_guards: see torch.export
    :param cpu_kernels: casts around the operators onnxruntime has no kernel for on CPU with some
        types (most of them with bfloat16); False leaves them as they are, for another provider
    :param example_branches: where the content of a tensor decides in Python, takes the branch of
        the arguments, with a warning that names the line; nothing changes if nothing decides so
    :param fake: exports with tensors without data: the arguments and the weights may be on device
        *meta*, or fake tensors; the weights without data are the last inputs of the model, see
        :func:`torch_interpreter.add_weights`
    :param node_sources: writes the modules, the operator and the lines of code each node comes from
        in its metadata, with the keys of ``torch.onnx``, and its module in its name
    :param tracing_module_leaves: with *tracing*, classes of modules that are called as they are,
        in addition to those of ``torch.nn``; or a dictionary, from classes to functions of the
        module and its name that return whether to do so
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
    save_ep: str | Path | tuple[str | Path, int] | None = None
    validate_ep: bool | float = False
    backed_size_oblivious: bool | str = "auto"
    prefer_deferred_runtime_asserts_over_guards: bool = True
    cpu_kernels: bool = True
    example_branches: bool = False
    fake: bool = False
    node_sources: bool = True
    tracing_module_leaves: (
        Collection[type] | Mapping[type, Callable[[torch.nn.Module, str], bool]] | None
    ) = None

    STRATEGIES: ClassVar[dict[str, dict[str, Any]]] = {
        "none": {},
        "strict": {"strict": True},
        "strict-dec": {"strict": True, "decomposition_table": "default"},
        "strict-decall": {"strict": True, "decomposition_table": "all"},
        "nostrict": {"strict": False},
        "nostrict-dec": {"strict": False, "decomposition_table": "default"},
        "nostrict-decall": {"strict": False, "decomposition_table": "all"},
        "jit": {"jit": True},
        "jit-dec": {"jit": True, "decomposition_table": "default"},
        "fallback": {"fallback": True},
        "fallback-dec": {"fallback": True, "decomposition_table": "default"},
        "fallback-decall": {"fallback": True, "decomposition_table": "all"},
        "dec": {"decomposition_table": "default"},
        "decall": {"decomposition_table": "all"},
        "tracing": {"tracing": True},
        "fake": {"fake": True},
        "example": {"example_branches": True},
    }
    # order in which strategies are tried by fallback; jit and example are not among them: they keep
    # the branch the arguments of the export take, the user asks for it
    FALLBACKS: ClassVar[tuple[str, ...]] = (
        "nostrict",
        "strict",
        "nostrict-dec",
        "strict-dec",
    )

    def __post_init__(self) -> None:
        """Applies the strategy and refuses unsupported values."""
        if self.strategy is not None:
            if self.strategy not in self.STRATEGIES:
                raise OptionError(
                    f"Unknown strategy {self.strategy!r}, choose one of {list(self.STRATEGIES)}."
                )
            for name, value in self.STRATEGIES[self.strategy].items():
                object.__setattr__(self, name, value)
        if self.dynamo:
            object.__setattr__(self, "strict", True)
        self._check_together()
        self._check_saved()
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

    def _check_together(self) -> None:
        """Refuses options one of which would be ignored.

        :raises OptionError: it is the case
        """
        if self.jit and (self.fake or self.tracing or self.strict or self.fallback):
            raise OptionError(
                "jit=True runs the model with torch.jit.trace, it goes with none of fake, tracing, "
                "strict, dynamo, fallback."
            )
        if self.example_branches and (self.jit or self.fake or self.strict or self.fallback):
            raise OptionError(
                "example_branches=True runs the model with its data inside torch.export, it goes "
                "with none of jit, fake, strict, dynamo, fallback."
            )
        if self.tracing_module_leaves and not self.tracing:
            raise OptionError("tracing_module_leaves has no effect without tracing=True.")
        if self.fake and self.validate_ep:
            raise OptionError("validate_ep needs data, fake=True is for tensors without data.")
        leaves = self.tracing_module_leaves or ()
        if not isinstance(leaves, Collection) or not all(isinstance(c, type) for c in leaves):
            raise OptionError(
                f"tracing_module_leaves expects classes, or a dictionary of them, not {leaves!r}."
            )

    def _check_saved(self) -> None:
        """Refuses a prefix of files in no folder, a size that is no number.

        :raises OptionError: it is the case
        """
        path, size = self.saved
        check_type("save_ep", path, PATH, "a path, or a path and a number of bytes", optional=True)
        check_type("save_ep", size, int, "a path, or a path and a number of bytes", optional=True)
        if path and not Path(path).absolute().parent.is_dir():
            raise OptionError(f"save_ep={self.save_ep!r} is in no existing folder.")

    @property
    def saved(self) -> tuple[str | Path | None, int | None]:
        """The prefix of the files where the exported program is saved, and the largest size of
        the weights that are saved, None for any size."""
        if isinstance(self.save_ep, tuple) and len(self.save_ep) == 2:
            return self.save_ep
        return self.save_ep, None

    def candidates(self) -> list[ExportOptions]:
        """The options to try in order, only one unless *fallback* is set.

        All of them use the decompositions that were asked for.
        """
        if not self.fallback:
            return [self]
        table = self.decomposition_table
        if table is None or isinstance(table, str):
            suffix = {"default": "-dec", "all": "-decall"}.get(table or "")
            names = (f"nostrict{suffix}", f"strict{suffix}") if suffix else self.FALLBACKS
            return [replace(self, fallback=False, dynamo=False, strategy=name) for name in names]
        return [
            replace(self, fallback=False, dynamo=False, strategy=None, strict=strict)
            for strict in (False, True)
        ]

    @property
    def label(self) -> str:
        """A short name for messages."""
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)
            if getattr(self, f.name) != f.default
        ]
        return self.strategy or ", ".join(changed) or "default"

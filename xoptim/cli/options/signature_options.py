"""The options that change the signature of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import click

from ...surgery.signature import SignatureChanges
from .bundles import bundled
from .pairs import pairs, parse_sizes


class SignatureOptions(NamedTuple):
    """The changes that are asked for, see :class:`xoptim.surgery.signature.SignatureChanges`."""

    set_dims: Mapping[str, int]
    input_shapes: Mapping[str, Sequence[int | str]]
    rename_dims: Mapping[str, str]
    renamed: Mapping[str, str]
    keep_outputs: Sequence[str]
    inputs_order: Sequence[str]
    cast: Mapping[str, str]
    dynamic: Mapping[str, Sequence[int | str]]

    @property
    def changes(self) -> SignatureChanges:
        """The changes."""
        return SignatureChanges(
            self.set_dims,
            self.input_shapes,
            self.rename_dims,
            self.renamed,
            self.keep_outputs,
            self.inputs_order,
            self.cast,
        )

    @property
    def is_changed(self) -> bool:
        """Whether something is asked for."""
        return any(self)

    @property
    def words(self) -> list[str]:
        """The options of the command line that say the same."""
        found = [w for n, s in self.set_dims.items() for w in ("--set-dim", f"{n}={s}")]
        for option, shapes in (("--input-shape", self.input_shapes), ("--dynamic", self.dynamic)):
            for name, shape in shapes.items():
                found += [option, f"{name}:{','.join(map(str, shape))}"]
        found += [w for n, s in self.rename_dims.items() for w in ("--rename-dim", f"{n}={s}")]
        found += [w for n, s in self.renamed.items() for w in ("--rename", f"{n}={s}")]
        found += ["--keep-outputs", ",".join(self.keep_outputs)] if self.keep_outputs else []
        found += ["--inputs-order", ",".join(self.inputs_order)] if self.inputs_order else []
        return found + [w for n, t in self.cast.items() for w in ("--cast", f"{n}={t}")]


def _read_shape(text: str) -> list[int | str] | None:
    """Reads ``1,3,h,w``: the dimensions of an input."""
    dims = [d.strip() for d in text.split(",")] if text.strip() else []
    if not all(d.isdigit() or d.isidentifier() for d in dims):
        return None
    return [int(d) if d.isdigit() else d for d in dims]


def _read_name(text: str) -> str | None:
    """Reads a name, which is not empty."""
    return text or None


_parse_shapes = pairs(_read_shape, "input:1,3,height,width", "shapes", ":")
_parse_names = pairs(_read_name, "old=new", "new names")


def parse_list(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str]:
    """Reads ``a,b``: names."""
    return [name.strip() for name in value.split(",") if name.strip()] if value else []


#: adds the options to a command, as `signature`
signature_options = bundled(
    SignatureOptions,
    "signature",
    click.option(
        "--set-dim",
        "set_dims",
        multiple=True,
        callback=parse_sizes,
        metavar="NAME=SIZE",
        help="Fixes a dynamic dimension of MODEL, everywhere: batch=1, x[0]=1 without a name.",
    ),
    click.option(
        "--input-shape",
        "input_shapes",
        multiple=True,
        callback=_parse_shapes,
        metavar="INPUT:SHAPE",
        help="Fixes or names the dynamic dimensions of an input: images:1,3,640,640.",
    ),
    click.option(
        "--rename-dim",
        "rename_dims",
        multiple=True,
        callback=_parse_names,
        metavar="OLD=NEW",
        help="Another name for a dynamic dimension.",
    ),
    click.option(
        "--rename",
        "renamed",
        multiple=True,
        callback=_parse_names,
        metavar="OLD=NEW",
        help="Another name for an input, an output or another result.",
    ),
    click.option(
        "--keep-outputs",
        callback=parse_list,
        metavar="A,B",
        help="The outputs to keep, in this order; what only the others need is removed.",
    ),
    click.option(
        "--inputs-order",
        callback=parse_list,
        metavar="A,B",
        help="The first inputs, in this order; the others follow.",
    ),
    click.option(
        "--cast",
        multiple=True,
        callback=pairs(_read_name, "name=type", "types"),
        metavar="NAME=TYPE",
        help="Another type for an input or an output, with a Cast: x=float16.",
    ),
    click.option(
        "--dynamic",
        multiple=True,
        callback=_parse_shapes,
        metavar="INPUT:SHAPE",
        help="Makes sizes of an input dynamic, if no node depends on them: x:batch,3,h,w.",
    ),
)

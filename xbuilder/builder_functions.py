"""Graphs made of other graphs: splicing a builder into another, functions, Constant nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onnx import SparseTensorProto

from .errors import OptionError
from .facts import ResultFacts
from .options import FunctionOptions

if TYPE_CHECKING:
    from .graph_builder import GraphBuilder


class FunctionMaking:
    """Part of :class:`xbuilder.GraphBuilder`: what is made of other builders."""

    def make_nodes(
        self,
        builder: GraphBuilder,
        input_names: Sequence[str],
        output_names: Sequence[str],
        prefix: str = "",
        function_options: FunctionOptions | None = None,
        optimize: bool = False,
        force_rename_with_prefix: str | None = None,
    ) -> str | list[str]:
        """Adds the content of another builder, or a call to a function made of it.

        :param builder: what is added; it is not usable afterwards
        :param input_names: results of this graph given to its inputs, in the same order; an empty
            string for an input that is missing
        :param output_names: names of its outputs in this graph
        :param prefix: written before the names that are already taken
        :param function_options: adds a function and a call to it
        :param optimize: optimizes what is added first
        :param force_rename_with_prefix: written before every name
        :return: the name of the output, or the list of names if there are several
        :raises OptionError: the number of inputs or outputs is not the right one, an input does not
            exist, the opsets are different

        ::

            inner = GraphBuilder(18)
            inner.make_tensor_input("a", TensorProto.FLOAT, ("n",))
            inner.op.Exp("a", outputs=["b"])
            inner.make_tensor_output("b")
            g.make_nodes(inner, ["x"], ["y"])
        """
        from .nested.embedding import leave_folder
        from .nested.local_functions import add_functions, make_local_function

        self._check_spliced(builder, input_names, output_names)
        if optimize:
            builder.optimize()
        if function_options is not None and function_options.export_as_function:
            facts = [builder.facts[n] for n in builder.output_names]
            added, key = make_local_function(self, builder, function_options)  # type: ignore[arg-type]
            self.make_node(  # type: ignore[attr-defined]
                key[1], [*input_names, *added], list(output_names), key[0], name=prefix or None
            )
        else:
            leave_folder(builder, self)  # type: ignore[arg-type]
            renamed = add_functions(self, builder.functions, True, True)  # type: ignore[arg-type]
            facts = self._splice(
                builder, input_names, output_names, prefix, force_rename_with_prefix, renamed
            )
        for name, known in zip(output_names, facts, strict=True):
            if not self.facts[name].type and known.type:  # type: ignore[attr-defined]
                self.facts.refine(name, ResultFacts(known.type), "make_nodes")  # type: ignore[attr-defined]
        return output_names[0] if len(output_names) == 1 else list(output_names)

    def make_local_function(
        self,
        builder: GraphBuilder,
        function_options: FunctionOptions,
        optimize: bool = False,
        metadata_props: dict[str, str] | None = None,
    ) -> tuple[list[str], tuple[str, str]]:
        """Turns another builder into a local function of this one; nothing calls it yet.

        Initializers stay in the function as Constant nodes, except those above
        `external_threshold` bytes, and all of them with `return_initializer=True`: they become
        initializers of this graph and additional inputs of the function.

        :param builder: what becomes a function; it is not usable afterwards
        :param function_options: name, domain, what happens to the initializers
        :param optimize: optimizes the function first
        :param metadata_props: metadata stored in the function
        :return: names, in this graph, of the initializers the calls must give after the inputs, and
            the key `(domain, name)` of the function
        :raises OptionError: a function of this name exists

        ::

            added, (domain, name) = g.make_local_function(
                inner, FunctionOptions(export_as_function=True, name="Linear", domain="d")
            )
            g.make_node(name, ["x", *added], ["y"], domain=domain)
        """
        from .nested.local_functions import make_local_function

        return make_local_function(
            self,  # type: ignore[arg-type]
            builder,
            function_options,
            optimize,
            metadata_props,
        )

    def _check_spliced(
        self, builder: GraphBuilder, input_names: Sequence[str], output_names: Sequence[str]
    ) -> None:
        for kind, expected, found in (
            ("input", builder.input_names, input_names),
            ("output", builder.output_names, output_names),
        ):
            if len(expected) != len(found):
                raise OptionError(
                    f"The other graph has {len(expected)} {kind}s {expected}, "
                    f"{len(found)} names were given: {list(found)}."
                )
        for name in input_names:
            if name and not self.has_name(name):  # type: ignore[attr-defined]
                raise OptionError(f"Result {name!r} does not exist in the graph; add it first.")
        opsets = self.opsets  # type: ignore[attr-defined]
        for domain, version in builder.opsets.items():
            if opsets.setdefault(domain, version) != version:
                raise OptionError(
                    f"Domain {domain or 'ai.onnx'!r} has version {opsets[domain]} in this graph "
                    f"and {version} in the other one; make both with the same opsets."
                )

    def _splice(
        self,
        builder: GraphBuilder,
        input_names: Sequence[str],
        output_names: Sequence[str],
        prefix: str,
        forced: str | None,
        renamed: dict[tuple[str, str], tuple[str, str]],
    ) -> list[ResultFacts]:
        from .nested.splicing import rename_calls, splice

        def fresh(name: str) -> str:
            if forced is not None:
                return self.unique_name(f"{forced}{name}")  # type: ignore[attr-defined]
            taken = name in self.names  # type: ignore[attr-defined]
            return self.unique_name(f"{prefix}{name}" if taken else name)  # type: ignore[attr-defined]

        facts = [builder.facts[n] for n in builder.output_names]
        mapping = dict(zip(builder.input_names, input_names, strict=True))
        results = list(zip(builder.output_names, output_names, strict=True))
        for name in output_names:
            if self.has_name(name):  # type: ignore[attr-defined]
                raise OptionError(f"Result {name!r} exists already; give another output name.")
            self.names.reserve(name)  # type: ignore[attr-defined]
        for name, value in list(builder.constants.initializers.items()):
            if not mapping.get(name):  # a constant, or the default value of a missing input
                mapping[name] = fresh(name)
                self._copy_initializer(builder, name, mapping[name], value)
        for sparse in builder.sparse_initializers:
            name = sparse.values.name
            mapping[name] = fresh(name)
            self._copy_sparse(sparse, mapping[name])
        nodes = rename_calls(builder.nodes, renamed)
        splice(self, None, nodes, mapping, results, fresh)  # type: ignore[arg-type]
        kept = builder.kept_nodes & set(mapping)
        self.kept_nodes.update(mapping[name] for name in kept)  # type: ignore[attr-defined]
        return facts

    def _copy_sparse(self, sparse: SparseTensorProto, new: str) -> None:
        copy = SparseTensorProto()
        copy.CopyFrom(sparse)
        copy.values.name = new
        self.sparse_initializers.append(copy)  # type: ignore[attr-defined]
        known = ResultFacts(copy.values.data_type, tuple(copy.dims))
        self.facts.refine(new, known, "a sparse initializer")  # type: ignore[attr-defined]

    def _copy_initializer(self, builder: GraphBuilder, name: str, new: str, value: Any) -> None:
        self.constants.add_initializer(new, value)  # type: ignore[attr-defined]
        if name in builder.sources:
            self.sources[new] = builder.sources[name]  # type: ignore[attr-defined]
        if name in builder.external_names:
            self.external_names.add(new)  # type: ignore[attr-defined]

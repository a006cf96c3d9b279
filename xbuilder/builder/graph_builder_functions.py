"""Part of GraphBuilder: adds the graph of another builder, inlined or as a local function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..facts.facts import ResultFacts
from ..nested.joining import check_joined, join
from ..nested.local_functions import make_local_function
from ..options import FunctionOptions
from ..support.argument_types import check_names, check_type
from .graph_builder_making import BuilderMaking
from .graph_builder_passes import run_passes


class BuilderFunctions(BuilderMaking):
    """The methods of :class:`xbuilder.GraphBuilder` that combine it with other builders."""

    def make_nodes(
        self,
        builder: BuilderFunctions,
        input_names: Sequence[str],
        output_names: Sequence[str],
        prefix: str = "",
        function_options: FunctionOptions | None = None,
        optimize: bool = False,
        force_rename_with_prefix: str | None = None,
    ) -> str | list[str]:
        """Adds the content of another builder, or a call to a function made of it.

        :param builder: the builder to add; it is not usable afterwards
        :param input_names: results of this graph given to its inputs, in the same order; an empty
            string for an input that is missing
        :param output_names: names of its outputs in this graph
        :param prefix: written before the names that are already taken
        :param function_options: adds a function and a call to it
        :param optimize: optimizes the added graph first
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
        check_type("builder", builder, BuilderFunctions, "a GraphBuilder")
        check_type("function_options", function_options, FunctionOptions, optional=True)
        check_names("input_names", input_names)
        check_names("output_names", output_names)
        graph, source = self.graph, builder.graph
        check_joined(graph, source, input_names, output_names)
        for name in output_names:
            self.check_watched(name)
        if optimize:
            run_passes(source)
        if function_options is not None and function_options.export_as_function:
            facts = [source.facts[n] for n in source.output_names]
            added, key = make_local_function(graph, source, function_options)
            self.make_node(
                key[1], [*input_names, *added], list(output_names), key[0], name=prefix or None
            )
        else:
            fresh = self._namer(prefix, force_rename_with_prefix)
            facts = join(graph, source, input_names, output_names, fresh)
        for name, known in zip(output_names, facts, strict=True):
            if not graph.facts[name].type and known.type:
                graph.facts.refine(name, ResultFacts(known.type), "make_nodes")
        return output_names[0] if len(output_names) == 1 else list(output_names)

    def _namer(self, prefix: str, forced: str | None) -> Callable[[str], str]:
        """Makes the function that names, in this graph, a result of another one."""

        def fresh(name: str) -> str:
            if forced is not None:
                return self.graph.unique_name(f"{forced}{name}")
            taken = name in self.graph.names
            return self.graph.unique_name(f"{prefix}{name}" if taken else name)

        return fresh

    def make_local_function(
        self,
        builder: BuilderFunctions,
        function_options: FunctionOptions,
        optimize: bool = False,
        metadata_props: dict[str, str] | None = None,
    ) -> tuple[list[str], tuple[str, str]]:
        """Turns another builder into a local function of this one; nothing calls it yet.

        Initializers are kept in the function as Constant nodes, except those above
        `external_threshold` bytes, and all of them with `return_initializer=True`: they become
        initializers of this graph and additional inputs of the function.

        :param builder: the builder that becomes a function; it is not usable afterwards
        :param function_options: name, domain, treatment of the initializers
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
        check_type("builder", builder, BuilderFunctions, "a GraphBuilder")
        check_type("function_options", function_options, FunctionOptions)
        return make_local_function(
            self.graph,
            builder.graph,
            function_options,
            run_passes if optimize else None,
            metadata_props,
        )

from xbuilder.graph.features import Feature as Feature
from xbuilder.graph.features import attach as attach
from xbuilder.graph.features import attached as attached
from xbuilder.graph.features import detach as detach
from xbuilder.graph.features import features_of as features_of

from ...engine.observers import Observer as Observer
from .base import GraphFeature as GraphFeature
from .distinct_outputs import DistinctOutputs as DistinctOutputs
from .history import History as History
from .node_finder import NodeFinder as NodeFinder
from .preserve_names import PreserveNames as PreserveNames
from .print_listener import PrintListener as PrintListener
from .provenance import Origin as Origin
from .provenance import Provenance as Provenance
from .replace_validate import Failure as Failure
from .replace_validate import ReplacementError as ReplacementError
from .replace_validate import ReplaceValidate as ReplaceValidate

from xbuilder.options import OrderAlgorithm as OrderAlgorithm
from xbuilder.runtimes.custom_operators import custom_operators as custom_operators

from . import repeated_optim as repeated_optim
from . import unfused as unfused
from .authoring.context import RewriteContext as RewriteContext
from .authoring.patterns import MatchResult as MatchResult
from .authoring.patterns import PatternOptimization as PatternOptimization
from .authoring.rewrite import Rewrite as Rewrite
from .catalogue.registry import register_pattern as register_pattern
from .catalogue.rewrite_function import rewrite as rewrite
from .catalogue.selection import get_pattern as get_pattern
from .catalogue.selection import get_pattern_list as get_pattern_list
from .declarative.easy_patterns import EasyPatternOptimization as EasyPatternOptimization
from .declarative.onnx_patterns import OnnxEasyPatternOptimization as OnnxEasyPatternOptimization
from .declarative.onnx_patterns import make_pattern_from_onnx as make_pattern_from_onnx
from .declarative.onnx_patterns import (
    remove_constants_for_initializers as remove_constants_for_initializers,
)
from .declarative.pattern_code import to_graph_pattern_matching as to_graph_pattern_matching
from .declarative.rules import rule as rule
from .engine.optimizer import GraphBuilderPatternOptimization as GraphBuilderPatternOptimization
from .tasks.batch import batch as batch
from .tasks.calls import bisect as bisect
from .tasks.calls import check as check
from .tasks.calls import compare as compare
from .tasks.calls import convert as convert
from .tasks.calls import diff as diff
from .tasks.calls import explain as explain
from .tasks.calls import extract as extract
from .tasks.calls import measure as measure
from .tasks.calls import summary as summary
from .tasks.calls import verify as verify
from .tasks.explain import near_misses as near_misses
from .tasks.optimize import optimize as optimize

from .registry import register_pattern as register_pattern
from .rewrite_function import rewrite as rewrite

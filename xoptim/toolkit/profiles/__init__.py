"""Profiles: the cost and the gain of each rewriter, pass and phase."""

from __future__ import annotations

from .profile import Profile
from .profile_node import ProfileNode
from .profile_text import profile_text, profile_tree

__all__ = ["Profile", "ProfileNode", "profile_text", "profile_tree"]

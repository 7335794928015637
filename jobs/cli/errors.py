"""What goes wrong around a command, rather than in an input."""

from __future__ import annotations

from analytics.errors import GroupscopeError


class InstallationError(GroupscopeError):
    """The packages of groupscope do not come from one place, or a part of them is missing."""


class EnvironmentUnfitError(GroupscopeError):
    """The machine lacks what Spark needs."""

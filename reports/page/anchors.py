"""Ids on the page that stay the same from audit to audit."""

from __future__ import annotations

import hashlib


def group_anchor(group: str) -> str:
    """Return the id of the story of a group."""
    digest = hashlib.sha256(group.encode("utf-8", "surrogatepass")).hexdigest()
    return f"group-{digest[:12]}"


def rule_anchor(rule: str) -> str:
    """Return the id of the findings of a rule."""
    return f"rule-{rule}"

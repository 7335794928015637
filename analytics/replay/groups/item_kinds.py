"""Kinds of items that a record about a group holds, besides the roles `current` and `target`."""

from __future__ import annotations

PRESENCE, SUBSCRIPTION, ASSIGNOR = "presence", "subscription", "assignor"
PENDING = "pending_revocation"

"""The backlog of share groups, as text and the rest."""

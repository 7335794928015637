"""Questions to a replayed workspace: their tables, and what they cannot tell."""

"""Tables of a workspace, read, written and kept."""

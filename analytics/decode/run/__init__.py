"""A decode run: tasks, what became of every record, the manifest."""

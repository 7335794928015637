"""One file a subject: its question, charts and table."""

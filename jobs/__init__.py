"""The commands: the only place that knows paths, sessions, clocks and exit codes."""

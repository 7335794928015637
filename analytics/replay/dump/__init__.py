"""What a replay takes from the manifest of a dump: its times, edges and lines."""

"""Raw records to one Arrow table per record type, control_markers and undecoded."""

"""Groups and offsets that a person may want to delete."""

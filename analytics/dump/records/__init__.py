"""Batches to raw records: formats, compression, columns, archived rows."""

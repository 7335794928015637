"""What headers, files and checkpoints alone say about a dump."""

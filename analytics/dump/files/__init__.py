"""What exists: inputs, folders, log directories, segments, checkpoints, snapshots."""

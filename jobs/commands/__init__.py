"""The commands: one file each, options and nothing else."""

"""What all replays share: which records count, on which line of a log, and what is lost."""

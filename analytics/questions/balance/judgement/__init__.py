"""What is said of one group: figures, verdict, cause, and what other assignors would give."""

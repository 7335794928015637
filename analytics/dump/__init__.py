"""What a dump is, which copy of it tells the truth, and its segments as raw records."""

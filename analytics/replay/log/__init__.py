"""What all replays share: where a log has losses, and what rests on them."""

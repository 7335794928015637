"""What an audit found, for people and for programs."""

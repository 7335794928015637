"""What happened to groups around an instant, and who else suffered at once."""

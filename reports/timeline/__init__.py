"""What happened to a group: a verdict for each topic, then everything in order."""

"""What is known of each key, added up by group, topic, partition and record type."""

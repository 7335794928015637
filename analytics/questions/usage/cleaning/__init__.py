"""What Kafka's cleaner has left to do in a log, and whether it keeps up."""

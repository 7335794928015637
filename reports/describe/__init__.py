"""What `describe` and `list` print: rows under the columns of Kafka's own tools."""

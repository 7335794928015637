"""Groups as Kafka's own tools describe them: the tables that their rows are made of."""

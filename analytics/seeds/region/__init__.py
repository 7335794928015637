"""Checkpoints that are kept outside of Kafka, held against what groups committed."""

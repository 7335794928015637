"""Steps of a replay run over buckets of records: here, or in tasks on Spark."""

"""What is left to deliver of each share partition, what holds it up, and since when."""

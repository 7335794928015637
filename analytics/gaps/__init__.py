"""Which groups a question is about, and what a dump cannot tell of them."""

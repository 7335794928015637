"""The files that give offsets back, and what is said of them."""

"""The command `balance`: what it reads, and what it says."""

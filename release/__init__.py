"""How the distribution is built; nothing of it is shipped."""

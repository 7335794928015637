"""Whether the tables of a workspace hold what is expected of them."""

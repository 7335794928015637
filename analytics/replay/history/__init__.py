"""How the coordinators came to know what they knew: one module a history table."""

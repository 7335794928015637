"""How two states differ, as rows that people and programs read."""

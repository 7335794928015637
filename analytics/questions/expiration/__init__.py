"""What expires when and under which rule, what went and whether rightly, and what might have."""

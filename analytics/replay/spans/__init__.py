"""From which record to which something held: what groups were, and what kept their offsets."""

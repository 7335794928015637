"""What is worth a look: rules applied to the tables of a replay and its evaluations."""

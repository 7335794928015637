"""What a question found, as a person or a program is shown it: one module a question."""

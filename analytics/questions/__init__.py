"""Questions answered from state and history: one package a question."""

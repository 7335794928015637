"""What is judged: groups at an instant or in each of their epochs, with all that this needs."""

"""Groups, their members and assignments: one fold over the records of a coordinator's partition."""

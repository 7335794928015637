"""What `audit` and `report` do."""

"""The public door for notebooks and jobs of others: `open_dump`."""

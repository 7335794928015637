"""How audits changed from one to the next: as text, tables and a page."""

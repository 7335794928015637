"""What an incident did to groups: as text, and as the page that a review wants."""

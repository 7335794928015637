"""The history of groups: epochs, who was a member, who owned what."""

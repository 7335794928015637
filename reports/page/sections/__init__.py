"""The sections of a page, each made of what a workspace holds."""

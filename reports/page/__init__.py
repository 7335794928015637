"""The page of an audit: a model made of tables of a workspace, and its forms."""

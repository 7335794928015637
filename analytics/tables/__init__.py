"""Tables of a workspace, as Arrow and as DataFrames."""

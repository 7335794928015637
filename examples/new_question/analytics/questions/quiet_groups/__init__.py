"""Groups that have members and commit nothing."""

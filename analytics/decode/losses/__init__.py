"""What a dump lost: lines of history, elections that lost records, records that do not decode."""

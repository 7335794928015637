"""Where batches are: headers, chains, resynchronisation, checksums, limits."""

"""Names of people, machines and data, replaced by stable keyed pseudonyms."""

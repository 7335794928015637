"""Designs that no release of Kafka has: dialects of share state, consistent regions."""

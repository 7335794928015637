"""The metadata log: topics, configs, leaders."""

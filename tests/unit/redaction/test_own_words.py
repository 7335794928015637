"""Words of our own sentences: a name that is one of them cannot be told apart in text."""

from __future__ import annotations

from jobs.workspaces.redacted_workspace import own_words


def test_words_of_sentences_are_known_and_names_of_examples_are_not() -> None:
    assert {"group", "the", "records", "lag", "of", "kafka-consumer-groups"} <= own_words()
    assert not {"broker-1", "night-audit", "payments"} & own_words()

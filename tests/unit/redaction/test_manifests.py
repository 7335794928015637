"""A manifest without names names no place, nor what only an earlier run was made of."""

from __future__ import annotations

from analytics.redaction.redactor import WITHHELD, Redactor
from schemas.manifest import ResumedEntry

KEY = bytes(32)


def test_why_nothing_was_kept_of_an_earlier_run_is_withheld() -> None:
    resumed: ResumedEntry = {
        "resumed_from": "/audits/acme",
        "resumed_copies": ["kafka-7.acme.example"],
        "refusal": "it was made of copies of other names, kafka-7.acme.example",
        "partitions": [],
    }
    redactor = Redactor.of(KEY, {}, (), frozenset())
    copy = redactor.pseudonyms.of("copy", "kafka-7.acme.example")
    assert redactor.document({"resumed": resumed}) == {
        "resumed": {
            "resumed_from": WITHHELD,
            "resumed_copies": [copy],
            "refusal": WITHHELD,
            "partitions": [],
        }
    }


def test_that_something_was_kept_is_told() -> None:
    redactor = Redactor.of(KEY, {}, (), frozenset())
    assert redactor.document({"refusal": None}) == {"refusal": None}

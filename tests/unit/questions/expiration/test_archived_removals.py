"""Removals among archived rows: which commit one took is known where it names its topic's id.

A commit in a transaction that was aborted leaves the same row as one that took effect.
"""

from __future__ import annotations

from analytics.questions.expiration.retention_settings import ASSUMED, Retention, Setting
from tests.support.archived_removals import ARCHIVED, NAMED, NAMELESS, TOPICS, records
from tests.support.expiration_logs import Around, begins, log_of, removals_in, state_of


def test_the_audit_names_no_offset_that_may_never_have_been() -> None:
    rows = records()
    log = log_of(rows, "4.3", "current")
    retention = Retention(Setting(60_000, ASSUMED, 60_000))
    around = Around(state_of("topics", TOPICS), begins(rows), coverage=ARCHIVED)
    told = {
        each.record_offset: each for each in removals_in(log, retention, 1_800_000_000_000, around)
    }
    nameless, named = told[NAMELESS], told[NAMED]
    assert (nameless.last_offset, nameless.last_commit_timestamp) == (None, None)
    assert (nameless.cause, nameless.verdict) == ("unknown", "cannot_tell")
    assert nameless.reason.startswith("archived rows do not show transactions")
    assert (named.last_offset, named.cause) == (7, "offsets_deleted")

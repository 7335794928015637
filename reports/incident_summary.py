"""What an incident came from and what it cost in a few sentences, and what to do now.

The words of `incident_causes`, in one place: the page has them on top, text first. What no record
shows is not said, and what the dump cannot tell is said to be so, with its reason.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from reports.answers.restore import counts_of
from reports.layout.output_format import OutputFormat
from reports.page.rows import harmless, moment
from reports.plain_text import Bullet, count, lines_of, paragraphs, printable
from reports.row_formats import MARKUP
from schemas.evaluation_rules import timeline_verdicts

if TYPE_CHECKING:
    from schemas.manifest import CopyEntry

Row = Mapping[str, Any]
_CANNOT_TELL: Final = "cannot_tell"
_ELECTION: Final = "lost_by_election"
_MOST_CAUSES: Final = 3
"""So many causes have sentences of their own; the others are counted."""
_CANNOT: Final = "cannot tell"
_STATE: Final = "the state of "
NOTHING: Final = "Nothing that the dump shows was lost in this time."


@dataclass(frozen=True)
class Restored:
    """What `restore` gives back of an incident.

    Attributes:
        as_of: The instant that offsets are given back of.
        offsets: How many are given back,
        groups: to how many groups.
        unchanged: How many are there already.
        refused: How many are refused.
        reasons: Of those, how many for which reason; an offset may have several.
        script: Where the commands are; None where nothing is given back.
    """

    as_of: datetime
    offsets: int
    groups: int
    unchanged: int
    refused: int
    reasons: Mapping[str, int]
    script: str | None


def restored_of(plan: pa.Table, groups: pa.Table, as_of: datetime, script: str) -> Restored:
    """Return what `restore` gives back.

    Args:
        plan: The table `restore_plan`.
        groups: The table `restore_groups`.
        as_of: The instant that offsets are given back of.
        script: Where the commands are.
    """
    counts = counts_of(plan)
    with_some = groups.filter(pc.greater(groups["restore"], 0)).num_rows
    return Restored(
        as_of=as_of,
        offsets=counts["restore"],
        groups=with_some,
        unchanged=counts["unchanged"],
        refused=counts["refused"],
        reasons=counts["reasons"],
        script=script if with_some else None,
    )


# Cause and cost.


def sentences_of(
    causes: Sequence[Row], copies: Sequence[CopyEntry], restored: Restored
) -> tuple[str, ...]:
    """Return what happened, what it cost and what can be given back, the costliest first.

    Args:
        causes: Rows of `incident_causes`.
        copies: Of the manifest: brokers are called as the copy of their disks.
        restored: What can be given back.
    """
    names = {
        each["node_id"]: str(each["name"]) for each in copies if each.get("node_id") is not None
    }
    shown = [each for each in causes if not _is_untold(each)][:_MOST_CAUSES]
    # What cannot be told is always said.
    shown += [each for each in causes if _is_untold(each)]
    told = [_sentence(each, names) for each in causes if each in shown]
    more = [_words_of(each) for each in causes if each not in shown]
    if more:
        told.append(f"{count(len(more), 'more cause')}: {', '.join(dict.fromkeys(more))}.")
    return (*(told or [NOTHING]), _given_back(restored))


def _is_untold(cause: Row) -> bool:
    return bool(cause["verdict"] == _CANNOT_TELL)


def _words_of(cause: Row) -> str:
    return timeline_verdicts()[cause["verdict"]].words


def _sentence(cause: Row, names: Mapping[int | None, str]) -> str:
    if cause["verdict"] == _ELECTION and cause["copy"] is not None:
        parts = [*_lost_line(cause, names), *_cost(cause)]
    elif _is_untold(cause):
        parts = [*_unjudged(cause, names), *_untold(cause)]
    else:
        where = f"{_words_of(cause)}{_places(cause)}"
        parts = [f"{count(cause['groups'], 'group')}: {where}", *_cost(cause)]
    text = "; ".join(parts)
    # A name keeps its letters as they are.
    begins = text[0].upper() if text.startswith((_CANNOT, _STATE)) else text[0]
    return f"{begins}{text[1:]}."


def _lost_line(cause: Row, names: Mapping[int | None, str]) -> Iterator[str]:
    """Yield what logs show of records that did not survive, and who was elected without them."""
    copy, lost = cause["copy"], count(cause["lost_records"], "record")
    last = cause["last_record_at"]
    where = f"in {_partitions(cause)}"
    if last is not None:
        yield f"{copy}'s last record in internal topics is from {moment(last)}"
    whose = f"its last {lost}" if last is not None else f"{copy}'s last {lost}"
    elected = _brokers(cause["elected_brokers"], names)
    if not elected:
        yield f"the log that survived, that of {cause['surviving_copy']}, lacks {whose} {where}"
        yield f"a leader was elected{_when(cause)}"
        yield "cannot tell who was elected, or whether unclean: no metadata log says so"
    else:
        were = "was" if len(cause["elected_brokers"]) == 1 else "were"
        text = f"{elected}, which lacked {whose} {where}, {were} elected{_when(cause)}"
        yield f"{text}{_how_clean(cause)}"
        if cause["partitions_without_leader"]:
            yield (
                f"cannot tell who was elected in {cause['partitions_without_leader']:,} of these "
                "partitions"
            )


def _unjudged(cause: Row, names: Mapping[int | None, str]) -> Iterator[str]:
    if cause["partitions"] is None:
        return
    elected = _brokers(cause["elected_brokers"], names)
    were = "was" if len(cause["elected_brokers"]) == 1 else "were"
    who = f"{elected} {were} elected" if elected else "A leader was elected"
    yield f"{who} in {_partitions(cause)}{_when(cause)}{_how_clean(cause)}"


def _untold(cause: Row) -> Iterator[str]:
    """Yield what was removed by nobody knows what, and what else cannot be told."""
    removed = list(_removed(cause))
    yield from removed
    is_all = cause["removed_offsets"] or not cause["groups"]
    if removed and is_all and cause["reason"] is None:
        return
    reason = cause["reason"] or "the dump does not show it"
    more = cause["other_reasons"]
    others = f" (and {count(more, 'other reason')})" if more else ""
    yield f"cannot tell {_what_is_untold(cause)}: {reason}{others}"


def _removed(cause: Row) -> Iterator[str]:
    """Yield how many offsets, states of share partitions and groups tombstones removed."""
    removed, states = cause["removed_offsets"], cause["deleted_states"]
    alone = cause["groups_without_offsets"]
    if removed:
        of_groups = count(cause["removed_groups"], "group")
        were, they = ("was", "it") if removed == 1 else ("were", "they")
        yield f"{count(removed, 'offset')} of {of_groups} {were} removed"
        yield f"cannot tell whether {they} expired or {were} deleted: no record shows it"
    if states:
        of_groups = count(cause["state_groups"], "share group")
        yield f"{_STATE}{count(states, 'share partition')} of {of_groups} was deleted"
    if alone:
        more = "more group" if removed or states else "group"
        were, they = ("was", "it") if alone == 1 else ("were", "they")
        yield f"{count(alone, more)} {were} removed without a committed offset"
        them = "it" if alone == 1 else "them"
        yield (
            f"cannot tell whether {they} {were} deleted or a cleanup removed {them}: no record "
            "shows it"
        )


def _what_is_untold(cause: Row) -> str:
    """Return what cannot be told, beside how offsets were removed."""
    if removed := cause["removed_offsets"]:
        rest = cause["offsets"] - removed
        return f"what happened to {rest:,} more" if rest else "what else happened to them"
    # Elections may cost groups that nobody asked about.
    if not cause["groups"]:
        return "what that cost"
    return f"what happened to {count(cause['groups'], 'group')}{_places(cause)}"


def _partitions(cause: Row) -> str:
    return f"{count(cause['partitions'], 'partition')} of internal topics"


def _places(cause: Row) -> str:
    return f" on {count(cause['offsets'], 'partition')}" if cause["offsets"] else ""


def _brokers(ids: Sequence[int], names: Mapping[int | None, str]) -> str:
    return _listed([names.get(each, f"broker {each}") for each in ids])


def _listed(names: Sequence[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if names[:-1] else []), *names[-1:]])


def _when(cause: Row) -> str:
    first, last = cause["elected_from"], cause["elected_to"]
    if first is None:
        return ", at a time that the dump does not show"
    if cause["election_shown_by"] != "metadata_log":
        return f" by {moment(last)} at the latest"
    return f" at {moment(first)}" if first == last else f" from {moment(first)} to {moment(last)}"


def _how_clean(cause: Row) -> str:
    if cause["unclean"]:
        return " (unclean)"
    return " (cannot tell whether unclean: no metadata log in the dump says so)"


def _cost(cause: Row) -> Iterator[str]:
    """Yield what a cause cost: commits, records, and what else it took."""
    commits, others = cause["commit_groups"], cause["groups"] - cause["commit_groups"]
    again, skipped = cause["records_again"], cause["records_skipped"]
    if commits:
        is_named = cause["verdict"] != _ELECTION and not others
        who = "" if is_named else f"{count(commits, 'group')} lost "
        lost = " lost" if is_named else ""
        amount = f"{who}{count(cause['lost_commits'], 'commit')}{lost}{_how_sure(cause)}"
        yield f"{amount}, {_again(cause)}"
    elif again:
        yield _again(cause)
    if skipped:
        yield f"{count(skipped, 'record is', 'records are')} skipped"
    if cause["verdict"] != _ELECTION:
        return
    if not cause["groups"]:
        yield "no group that this is about is known to have lost a commit by it"
    elif others:
        more = "more group" if commits else "group"
        yield f"{count(others, more)} lost deletions or the state of share groups"


def _how_sure(cause: Row) -> str:
    """Return of how many commits it is not sure that they were in force."""
    if not cause["unsure_commits"]:
        return ""
    return f" (cannot tell for sure of {cause['unsure_commits']:,}: low confidence)"


def _again(cause: Row) -> str:
    again = cause["records_again"]
    if not again and cause["is_at_least"]:
        return "cannot tell how many records are read again: no later commit shows it"
    least = "at least " if cause["is_at_least"] else ""
    return f"{least}{count(again, 'record is', 'records are')} read again"


# What to do now.


def _given_back(restored: Restored) -> str:
    refused = [f"{restored.refused:,} refused"] if restored.refused else []
    if not restored.offsets:
        there = [f"{restored.unchanged:,} there already"] if restored.unchanged else []
        why = ", ".join([*refused, *there])
        return f"No offset can be given back{f': {why}' if why else ''}."
    offsets, groups = count(restored.offsets, "offset"), count(restored.groups, "group")
    why = f" ({refused[0]})" if refused else ""
    return f"{offsets} of {groups} can be given back with the command below{why}."


def steps_of(restored: Restored) -> tuple[str, ...]:
    """Return what the commands do, what they give back and what they refuse, a sentence each."""
    rest = "; ".join(_not_given_back(restored))
    if restored.script is None:
        why = f": {rest}" if rest else ""
        return (f"Nothing is given back as of {moment(restored.as_of)}{why}.",)
    given = f"{count(restored.offsets, 'offset')} of {count(restored.groups, 'group')}"
    why = f"; {rest}" if rest else ""
    return (
        f"Gives back {given} as of {moment(restored.as_of)}{why}.",
        "Kafka's tools reset groups without members only: stop those of groups that have some.",
        _where(restored),
    )


def _not_given_back(restored: Restored) -> Iterator[str]:
    """Yield how many offsets are there already, and how many are refused and why, if any are."""
    if restored.unchanged:
        yield f"{count(restored.unchanged, 'is', 'are')} there already"
    if not restored.refused:
        return
    reasons = ", ".join(
        f"{number:,} {name.replace('_', ' ')}" for name, number in restored.reasons.items()
    )
    have_several = sum(restored.reasons.values()) > restored.refused
    several = ", some for several reasons" if have_several else ""
    why = f" ({reasons}{several}; refused.csv says of each why)" if reasons else ""
    yield f"{count(restored.refused, 'offset is', 'offsets are')} refused{why}"


def _where(restored: Restored) -> str:
    if commands_of(restored):
        return (
            "The first command only shows what would change (--dry-run), the second one changes it."
        )
    return (
        f"Copy the folder of {restored.script} to a machine with Kafka's tools, and run it there."
    )


def commands_of(restored: Restored) -> tuple[str, ...]:
    """Return the commands for all groups, to be pasted.

    None where nothing is given back, or where the script lies in a store that no shell reads.
    """
    if restored.script is None or "://" in restored.script:
        return ()
    run = f"BOOTSTRAP_SERVER=host:port sh {shlex.quote(restored.script)}"
    return (run, f"{run} --execute")


# The same for a terminal, and as Markdown.

_TODO: Final = "What to do now"


def summary_text(sentences: Sequence[str], restored: Restored, output_format: OutputFormat) -> str:
    """Return what happened and what to do now, above the tables of an answer."""
    steps, commands = steps_of(restored), commands_of(restored)
    if output_format == "markdown":
        parts = [
            "\n\n".join(map(_literal, sentences)),
            f"## {_TODO}",
            "\n".join(f"- {_literal(each)}" for each in steps),
            "\n".join(f"    {harmless(each)}" for each in commands),
        ]
        return "\n\n".join([*filter(None, parts), ""])
    width = output_format.width
    lines = [
        *(paragraphs([each], width) for each in sentences),
        "",
        _TODO,
        *lines_of([Bullet(printable(each)) for each in steps], width),
        *(f"  {printable(each)}" for each in commands),
    ]
    return "\n".join([*lines, "", ""])


def _literal(text: str) -> str:
    """Return text that Markdown takes as it is."""
    return re.sub(f"({MARKUP})", r"\\\1", harmless(text))

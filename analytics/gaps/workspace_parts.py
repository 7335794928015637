"""Parts that a workspace is without: left out by whoever made it, or not to be read at all.

A workspace made of some groups or topics only answers for what it holds. Of the rest it knows
nothing: that is not "none".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from analytics.decode.selection import is_name, names_wanted
from analytics.gaps.gap import Gap, gap
from analytics.replay.log.losses_at import leading

if TYPE_CHECKING:
    from analytics.decode.selection import Selection

OPTIONS: Final = {
    "groups": "--group",
    "exclude_groups": "--exclude-group",
    "data_topics": "--topic",
    "topics": "--topics",
    "partitions": "--partitions",
}
"""What filters are called in manifests, and on the command line."""
Filters = dict[str, list[Any]]


def filters_of(manifest: Mapping[str, Any]) -> Filters:
    """Return what the workspace was limited to, when it was decoded and when it was replayed."""
    return {
        name: list(
            dict.fromkeys(each for made in _filters_of(manifest) for each in made.get(name) or ())
        )
        for name in OPTIONS
        if any(made.get(name) for made in _filters_of(manifest))
    }


def filters_sentence(filters: Mapping[str, Sequence[Any]]) -> str | None:
    """Return in words what a workspace was made with; None where with everything."""
    if not filters:
        return None
    said = " ".join(f"{OPTIONS[name]} {each}" for name, some in filters.items() for each in some)
    return f"this workspace was made with {said}: it knows of nothing else"


def topics_held(manifest: Mapping[str, Any], topics: Iterable[str | None]) -> list[str]:
    """Return the names of topics among these whose offsets a workspace was made with.

    Of the others it has no offset: that is not "never committed".
    """
    names = [each for each in topics if each is not None]
    for made in _filters_of(manifest):
        names = names_wanted(names, made.get("data_topics") or ())
    return names


def topics_left_out(manifest: Mapping[str, Any], topics: Iterable[str | None]) -> dict[str, str]:
    """Return those of these topics that a workspace was made without, each with the reason."""
    names = {each for each in topics if each is not None}
    return {
        name: f"offsets of {name} were left out by --topic when this was made"
        for name in sorted(names - set(topics_held(manifest, names)))
    }


def has_topic_filter(manifest: Mapping[str, Any]) -> bool:
    """Return whether a workspace has the offsets of some topics only."""
    return any(made.get("data_topics") for made in _filters_of(manifest))


def are_some_topics(manifest: Mapping[str, Any], selection: Selection) -> bool:
    """Return whether offsets of some topics only are looked at: no sum of them is a whole group's.

    Args:
        manifest: Of the workspace that is asked.
        selection: What the question is about.
    """
    return bool(selection.topics) or has_topic_filter(manifest)


def left_out_of(manifest: Mapping[str, Any], selection: Selection) -> list[Gap]:
    """Return what a question is about and the workspace lacks, a gap for each filter.

    Groups that are asked for by name and lie within the filters are answered for in full.

    Args:
        manifest: Of the workspace that is asked.
        selection: What the question is about.
    """
    return list(
        dict.fromkeys(each for made in _filters_of(manifest) for each in _lacking(made, selection))
    )


def _lacking(filters: Mapping[str, Any], selection: Selection) -> Iterator[Gap]:
    groups, excluded = filters.get("groups") or (), filters.get("exclude_groups") or ()
    topics = filters.get("data_topics") or ()
    are_names = bool(selection.groups) and all(map(is_name, selection.groups))
    is_held = are_names and len(names_wanted(selection.groups, groups, excluded)) == len(
        set(selection.groups)
    )
    if not is_held:
        if groups and not (selection.groups and set(selection.groups) <= set(groups)):
            yield gap("other_groups_left_out", filters=_as_options("groups", groups))
        if not set(excluded) <= set(selection.exclude_groups):
            yield gap("groups_excluded", filters=_as_options("exclude_groups", excluded))
    if topics and not (selection.topics and set(selection.topics) <= set(topics)):
        yield gap("other_topics_left_out", filters=_as_options("data_topics", topics))


def _as_options(name: str, values: Sequence[Any]) -> str:
    return " ".join(f"{OPTIONS[name]} {each}" for each in values)


def _filters_of(manifest: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the filters of the decoding, and those of the replay."""
    return manifest.get("options") or {}, (manifest.get("replay") or {}).get("filters") or {}


def is_unread(manifest: Mapping[str, Any]) -> bool:
    """Return whether a file was unreadable, or records of a partition are lost and none is left."""
    return bool(manifest.get("unreadable") or _nothing_left(manifest))


def _nothing_left(manifest: Mapping[str, Any]) -> list[str]:
    """Return the partitions of which records are lost and none could be read."""
    return [
        f"{each['topic']}-{each['partition']}"
        for each in leading(manifest)
        if each.get("losses") and each.get("batches") == 0 and not _is_filled(manifest, each)
    ]


def _is_filled(manifest: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Return whether another copy gave records to the line of a partition."""
    given = manifest.get("filled") or ()
    return any(
        (each["topic"], each["partition"], each["line"]) == (row["topic"], row["partition"], "")
        for each in given
    )

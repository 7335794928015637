"""Whether the state that a snapshot's logs add up to is what its cluster answered.

`snapshot` asks the cluster for its groups as soon as their logs are read, and keeps the answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow.dataset as ds
from pyarrow import fs

from analytics.contracts import (
    arrow_schema,
    contract_schema,
    in_contract_order,
    table_of_frame,
)
from analytics.decode.selection import names_wanted
from analytics.gaps.gap import Gap, gap
from analytics.questions.cluster.comparison import (
    ASSIGNMENT,
    GROUP,
    KEY,
    LOOK,
    MEMBER,
    NEEDS,
    OFFSET,
    SHARE_PARTITION,
    Compared,
    assignment_fields,
    compared_groups,
    group_fields,
    member_fields,
    of_kinds,
    offset_fields,
    share_fields,
    without,
)
from analytics.questions.cluster.reasons import CANNOT_TELL, CONTRADICTS, EXPLAINED, with_reasons
from analytics.questions.question import Answer, Question
from analytics.replay.dump.choices import iso_time
from analytics.replayed.end_offsets import snapshot_at
from analytics.workspace import DATA_LOGS, reading

if TYPE_CHECKING:
    from analytics.replayed.replayed_workspace import ReplayedWorkspace

TABLE: Final = "cluster_differences"
ANSWERS: Final = "cluster_answers"
_HIDDEN: Final = ("group_instance_id", "client_id", "client_host", "rack_id", "metadata")
"""Fields whose values name clients, or are their text: no table without names may have them."""
_MEMBER: Final = "member_id"
"""Its value is the member's id, which begins with the client's in classic groups."""
_FIRST: Final = 1


@dataclass(frozen=True)
class ClusterSettings:
    """Nothing of it can be set."""


def held_against_cluster(state: ReplayedWorkspace, _settings: ClusterSettings) -> Answer:
    """Return where a snapshot says something else than its cluster answered.

    Raises:
        WorkspaceError: A table cannot be read.
    """
    return answer_of(state, answers_in(state))


def answers_in(state: ReplayedWorkspace) -> pl.DataFrame:
    """Return what the cluster answered of the snapshot that the workspace is of; else no rows.

    Raises:
        WorkspaceError: A file is damaged.
    """
    snapshot = snapshot_at(state)
    path = state.source.path(f"{DATA_LOGS}/{ANSWERS}")
    there = state.source.filesystem.get_file_info(path).type is fs.FileType.Directory
    if snapshot is None or not there:
        return pl.DataFrame(pl.from_arrow(arrow_schema(ANSWERS).empty_table()))
    with reading(path):
        rows = ds.dataset(path, filesystem=state.source.filesystem, format="parquet").to_table(
            filter=ds.field("copy") == snapshot["copy"]
        )
    return pl.DataFrame(pl.from_arrow(rows))


def answer_of(state: ReplayedWorkspace, answers: pl.DataFrame) -> Answer:
    """Return where a snapshot says something else than was answered.

    Args:
        state: The replayed snapshot, with the tables of `NEEDS`.
        answers: Rows of `cluster_answers`.
    """
    if len(answers):
        rows = _differences(state, _asked_about(state, answers))
    else:
        rows = pl.DataFrame(schema=contract_schema(TABLE))
    table = table_of_frame(TABLE, in_contract_order(TABLE, rows))
    counts = dict(rows.group_by("verdict").len().rows())
    verdicts = {each: counts.get(each, 0) for each in (CONTRADICTS, EXPLAINED, CANNOT_TELL)}
    return Answer(
        {TABLE: table},
        doubts=tuple(_doubts(rows)),
        statements=tuple(_statements(state, answers)),
        summary={"verdicts": verdicts},
    )


def unexplained_groups(
    state: ReplayedWorkspace, answer: Answer
) -> dict[str, tuple[str, int | None]]:
    """Return the groups of which something differs that nothing explains, to be asked for again.

    Returns:
        Type and partition of `__consumer_offsets` by name; null where the state has no such group.
    """
    rows = pl.DataFrame(pl.from_arrow(answer.rows(TABLE).whole()))
    names = rows.filter((pl.col("verdict") != EXPLAINED) & pl.col("group_id").is_not_null())
    groups = compared_groups(state).select("group_id", "group_type", "coordinator_partition")
    found = names.select("group_id").unique().join(groups, "group_id", "left").sort("group_id")
    return {name: (kind or "classic", partition) for name, kind, partition in found.rows()}


def _differences(state: ReplayedWorkspace, answers: pl.DataFrame) -> pl.DataFrame:
    first = answers.filter(pl.col("look") == _FIRST)
    groups = group_fields(state, compared_groups(state))
    compared = Compared(groups, first)
    members = compared.differences(MEMBER, member_fields(state))
    current, given_back = assignment_fields(state)
    place = list(given_back.columns)
    assignments = compared.differences(ASSIGNMENT, current).join(
        given_back, place, "anti", nulls_equal=True
    )
    looks = first.filter((pl.col("kind") == LOOK) & pl.col("error").is_not_null())
    whys = "; ".join(looks["error"].drop_nulls().sort().to_list())
    looks = looks.head(1).with_columns(
        pl.lit(LOOK).alias("field"),
        pl.lit(whys).alias("error"),
        pl.lit(None, pl.String).alias("missing"),
        pl.lit(None, pl.String).alias("answer"),
    )
    # Where nobody knows what the cluster lists, that it does not list a group says nothing.
    is_known = pl.lit(not len(looks)) | pl.col("answer").is_not_null()
    refused = compared.unanswered.with_columns(
        pl.lit(None, pl.String).alias("missing"), pl.col("value").alias("answer")
    )
    found = of_kinds(
        (
            (LOOK, looks),
            (GROUP, compared.listed.filter(is_known)),
            (GROUP, refused),
            (GROUP, compared.differences(GROUP, groups)),
            (MEMBER, members),
            (ASSIGNMENT, without(assignments, members)),
            (OFFSET, compared.differences(OFFSET, offset_fields(state))),
            (SHARE_PARTITION, compared.differences(SHARE_PARTITION, share_fields(state))),
        )
    )
    named = with_reasons(found, answers, state)
    return named.with_columns(
        _without_client_names("value").alias("snapshot_value"),
        _without_client_names("answer").alias("cluster_value"),
    )


def _without_client_names(name: str) -> pl.Expr:
    """Return values without names of clients; of a member whether it is there."""
    is_member = (pl.col("field") == _MEMBER) & pl.col(name).is_not_null()
    shown = pl.when(~pl.col("field").is_in([*_HIDDEN, _MEMBER])).then(name)
    return pl.when(is_member).then(pl.lit("yes")).otherwise(shown)


def _asked_about(state: ReplayedWorkspace, answers: pl.DataFrame) -> pl.DataFrame:
    """Leave out groups and topics that are not asked about, or that were not decoded."""
    options, chosen = state.manifest["options"], state.tables.selection
    decoded = options["groups"], options["exclude_groups"]
    asked = chosen.groups, chosen.exclude_groups
    names = answers["group_id"].drop_nulls().unique().to_list()
    wanted = names_wanted(names_wanted(names, *decoded, names), *asked, names)
    kept = answers.filter(pl.col("group_id").is_null() | pl.col("group_id").is_in(wanted))
    topics = kept["topic"].drop_nulls().unique().to_list()
    of_offsets = names_wanted(names_wanted(topics, options["data_topics"]), chosen.topics)
    is_offset = pl.col("kind") == OFFSET
    return kept.filter(~is_offset | pl.col("topic").is_in(of_offsets))


def _doubts(rows: pl.DataFrame) -> Iterator[Gap]:
    unknown = rows.filter(pl.col("verdict") == CANNOT_TELL)
    for why, count in unknown.group_by("missing").len().sort("missing").rows():
        yield gap("cluster_not_compared", differences=count, why=why)


def _statements(state: ReplayedWorkspace, answers: pl.DataFrame) -> Iterator[str]:
    if snapshot_at(state) is None:
        return
    if not len(answers):
        yield "the snapshot was not held against its cluster"
        return
    times: list[datetime] = answers["answered_at"].drop_nulls().to_list()
    if times:
        yield f"held against what the cluster answered until {iso_time(max(times))}"


CLUSTER: Final = Question(
    name="cluster",
    needs=NEEDS,
    tables=(TABLE,),
    settings=ClusterSettings,
    answer=held_against_cluster,
)

__all__ = ["ANSWERS", "CLUSTER", "KEY", "TABLE", "answer_of", "answers_in"]

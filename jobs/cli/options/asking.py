"""Options of every command that asks something of a dump or a workspace."""

from __future__ import annotations

from jobs.cli.options.assumptions import assume_option
from jobs.cli.options.ending import max_undecoded_option
from jobs.cli.options.instant import instant_options
from jobs.cli.options.rows import rows_options
from jobs.cli.options.shared import (
    group_options,
    in_order,
    input_options,
    output_options,
    spark_options,
)
from jobs.cli.settings_files import settings_options
from jobs.cli.topic_ids import topic_ids_option

asking_options = in_order(
    topic_ids_option,
    settings_options,
    assume_option,
    instant_options,
    rows_options,
    group_options,
    input_options,
    max_undecoded_option,
    spark_options,
    output_options,
)
"""What `replayed` takes, and `output_format`."""

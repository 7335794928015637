"""A command that takes every dump for a large one, and looks at few groups at a time.

    python -m tests.cluster.as_for_large replay DUMP --out DIR --master spark://...

Nothing but the sizes at which work goes to tasks of Spark is other than in the program.
"""

from __future__ import annotations

import sys
from unittest import mock

from analytics.questions.balance import balance_tables
from analytics.questions.data_quality import question as data_quality
from analytics.questions.expiration import question as expiration
from analytics.questions.lag import question as lag
from analytics.questions.rebalances import rebalance_tables
from analytics.questions.timeline import group_verdicts
from jobs.cli.main import main

SMALL = (
    "jobs.workspaces.decoding.is_small_plan",
    "jobs.workspaces.replayed.is_small_workspace",
    "jobs.workspaces.replaying.is_small_workspace",
)
ROWS_AT_ONCE = 200

if __name__ == "__main__":
    for each in SMALL:
        mock.patch(each, return_value=False).start()
    for module in (
        *(balance_tables, data_quality, expiration),
        *(lag, rebalance_tables, group_verdicts),
    ):
        mock.patch.object(module, "AT_ONCE", ROWS_AT_ONCE).start()
    sys.exit(main())

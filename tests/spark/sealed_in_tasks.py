"""Opens sealed settings in tasks of a session that writes event logs into the folder given.

Prints what tasks read, and the settings of Spark; the test looks for secrets in the event logs.
"""

from __future__ import annotations

import sys

from analytics.snapshot.cluster_connection import ClientSettings
from analytics.snapshot.sealed_settings import SealedSettings
from analytics.snapshot.tls import OwnKey, TlsMaterial
from analytics.spark_tasks import run_tasks
from jobs.cli.console import Console
from jobs.spark.session import spark_session


def main(folder: str) -> None:
    tls = TlsMaterial("trusted", OwnKey(b"own-hunter2", "key-hunter2"))
    settings = ClientSettings("SASL_SSL", "PLAIN", "auditor-hunter2", "sasl-hunter2", tls)
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder,
        "spark.eventLog.compress": "false",
    }
    with spark_session(Console(), master="local[2]", conf=conf, small=True) as spark:
        with SealedSettings.within(spark, settings) as sealed:
            found = run_tasks(spark, 2, lambda _: sealed.opened())
        print([each == settings for each in found])
        # A job of later has nothing to open them with.
        try:
            run_tasks(spark, 1, lambda _: sealed.opened())
        except Exception as error:  # noqa: BLE001 - Spark's own, of a task that failed
            print("hunter2" in str(error), "TypeError" in str(error))
        print(spark.sparkContext.getConf().getAll())


if __name__ == "__main__":
    main(sys.argv[1])

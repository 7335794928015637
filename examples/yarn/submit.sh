#!/usr/bin/env bash
# Audits a dump on YARN: examples/yarn/submit.sh INPUT OUT [OPTION...]
#
# Run in tests: this script as it is, with a Standalone cluster on loopback in the place of YARN.
# Not run: on YARN, on HDFS, with Kerberos.
#
# INPUT and OUT are URIs (hdfs:, s3:). `make zip worker` makes the two files of dist/; the second one
# is of use where the machines of YARN have the same Python in the same place as this one.
#
# The driver runs on YARN, too: groupscope's exit code is in OUT/summary.json, and what it said in the
# log of the driver.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
input=$1 out=$2
shift 2

# The classes by which Python reads hdfs:.
classpath=$(hadoop classpath --glob)

# What was found ends an audit with 1: no reason to attempt it again.
exec spark-submit --master yarn --deploy-mode cluster --name groupscope \
    --conf spark.yarn.maxAppAttempts=1 \
    --conf spark.pyspark.python=./environment/bin/python \
    --conf spark.yarn.appMasterEnv.CLASSPATH="$classpath" \
    --conf spark.executorEnv.CLASSPATH="$classpath" \
    --archives dist/worker.tar.gz#environment \
    --py-files dist/groupscope.zip \
    examples/submit.py audit "$input" --out "$out" "$@"

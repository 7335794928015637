#!/usr/bin/env bash
# What `make demo` runs: demo.sh GROUPSCOPE DUMP OUT
set -euo pipefail
groupscope=$1 dump=$2 out=$3
python=$(dirname "$groupscope")/python

if [ -t 1 ] || [ -n "${FORCE_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; else bold='' plain=''; fi
say() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; }

say groupscope inspect "$dump"
"$groupscope" inspect "$dump"

say groupscope decode "$dump" --out "$out"
"$groupscope" decode "$dump" --out "$out"

say python examples/what_was_lost.py "$out"
"$python" "$(dirname "$0")/what_was_lost.py" "$out"

# Findings end it with 1: this dump has many.
say groupscope audit "$dump" --out "$out" --fail-on never
"$groupscope" audit "$dump" --out "$out" --fail-on never --top 4
printf '\nThe page: %s\n' "$out/report/index.html"

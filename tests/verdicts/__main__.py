"""Print what commands say of real dumps against what happened, with and without evidence.

    python -m tests.verdicts FOLDER [DUMP...] [--evidence WORDS] [--faults FILE] [--keep DIR]

FOLDER holds dumps by name, as `tests/verdicts/data` names them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from analytics.libraries_later import withhold_libraries
from tests.verdicts.comparison import by_evidence, compared, evidences
from tests.verdicts.held import CANNOT_TELL, RIGHT, WRONG, Held
from tests.verdicts.truth import DATA, Truth, read_truth

WORDS = (RIGHT, CANNOT_TELL, WRONG)


def main() -> int:
    """Run the comparisons asked for and return 1 where anything said is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("dump", nargs="*")
    parser.add_argument("--evidence", default="", help="only what has these words in its name")
    parser.add_argument("--faults", type=Path, help="where to write what is wrong")
    parser.add_argument("--keep", type=Path, help="workspaces stay here, and are asked again")
    given = parser.parse_args()
    withhold_libraries()
    dumps = given.dump or sorted(path.name.removesuffix(".json.gz") for path in DATA.iterdir())
    wrong = 0
    print(_line("dump", "evidence", WORDS), flush=True)
    for dump in dumps:
        folder, truth = given.folder / dump, read_truth(dump)
        for evidence in evidences(folder, truth):
            if given.evidence in evidence:
                with tempfile.TemporaryDirectory(prefix="verdicts-") as scratch:
                    kept = given.keep / dump / evidence if given.keep else Path(scratch)
                    wrong += _compare(folder, truth, evidence, kept, given.faults)
    return 1 if wrong else 0


def _compare(folder: Path, truth: Truth, evidence: str, scratch: Path, faults: Path | None) -> int:
    """Compare, print a line for each evidence, and return how much is wrong."""
    try:
        helds = compared(folder, truth, evidence, scratch)
    except Exception:  # noqa: BLE001 - the others are wanted all the same
        helds = {"command": Held(Counter({("", WRONG): 1}), [("", traceback.format_exc())])}
    for name, held in by_evidence(folder, evidence, helds).items():
        counts = [str(sum(each.count(word) for each in held)) for word in WORDS]
        print(_line(truth.dump, name, counts), flush=True)
    if faults:
        with faults.open("a") as file:
            for command, each in helds.items():
                for _, fault in each.faults:
                    print(f"{truth.dump}; {evidence}; {command}: {fault}", file=file)
    return sum(held.count(WRONG) for held in helds.values())


def _line(dump: str, evidence: str, cells: Sequence[str]) -> str:
    right, untold, wrong = cells
    return f"{dump:<30}{evidence:<44}{right:>8}{untold:>14}{wrong:>8}"


if __name__ == "__main__":
    sys.exit(main())

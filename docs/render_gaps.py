"""Writes docs/gaps.md from schemas/gaps/: everything that a dump may not tell, by code.

    python docs/render_gaps.py

A test fails while the page is not what this would write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from schemas.gaps import FOLDER, GapKind, gap_kinds
from schemas.reading import documents

PAGE = Path(__file__).parent / "gaps.md"
HEAD = """\
<!-- Written by `make docs` from schemas/. Do not edit. -->
# What a dump may not tell

An answer whose evidence is missing says so: on stderr as `cannot tell: ...`, in JSON as
`cannot_tell` (the words) and `gaps` (the same by code), with exit code 3. A gap is one thing that
cannot be told:

| field | what it holds |
|---|---|
| `code` | what cannot be told: one of those below |
| `topic`, `partition` | whose records are missing or uncertain; null where it is about none |
| `from_offset` | the first offset of these records |
| `to_offset` | the offset after the last of them; null where nobody knows it |
| `from_timestamp`, `to_timestamp` | likewise instants |
| `group_id` | the group that it is about; null where it may be about any |
| `parameters` | what the words have besides |
| `words` | what is printed |

Of an answer in a notebook, `answer.gaps` is the table. An audit keeps the gaps of all its questions
in `DIR/evaluations/gaps`, each with its `question`; so it is a query what to take along next time:

```sql
select distinct topic, partition, words from gaps where code like '%without_copy'
```

Scripts go by the code: words may change. Below, what is filled in is *slanted*, and what stands in
[brackets] may be left out.
"""


def page() -> str:
    """Return the text of the page."""
    abouts = dict(_abouts())
    parts = [HEAD]
    by_family = sorted(gap_kinds().values(), key=lambda each: each.family)
    for family, kinds in groupby(by_family, key=lambda each: each.family):
        parts.append(f"## {family.capitalize()}\n\n{abouts[family]}\n")
        parts += [_in_words(each) for each in kinds]
    return "\n".join(parts)


def _abouts() -> Iterator[tuple[str, str]]:
    for family, _, document in documents(FOLDER):
        assert isinstance(document, dict)
        yield family, document["about"]


def _in_words(kind: GapKind) -> str:
    return f"""\
### `{kind.code}`

{kind.about} {kind.advice}

> {_shown(kind.template.text)}
"""


def _shown(words: str) -> str:
    """Return words with what is filled in set apart."""
    counted = re.sub(r"\{\w+:[^{}|]*\|([^{}|]*)\}", lambda each: each[1].replace("#", "*N*"), words)
    return re.sub(r"\{(\w+)\}", r"*\1*", counted).replace("[", "\\[").replace("]", "\\]")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")

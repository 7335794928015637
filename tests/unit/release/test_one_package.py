"""Imports lead below one package, or the build ends with the line that would not."""

from __future__ import annotations

import pytest

from release.one_package import ImportNotMovedError, imports_below

PACKAGES = {"analytics", "jobs"}


@pytest.mark.parametrize(
    ("source", "moved"),
    [
        ("from analytics import errors\n", "from groupscope.analytics import errors\n"),
        (
            "from jobs.cli.main import (\n    run,\n)",
            "from groupscope.jobs.cli.main import (\n    run,\n)",
        ),
        (
            "def read():\n    from analytics.wire import cursor  # noqa: PLC0415\n",
            "def read():\n    from groupscope.analytics.wire import cursor  # noqa: PLC0415\n",
        ),
    ],
)
def test_an_import_leads_below_the_one_package(source: str, moved: str) -> None:
    assert imports_below(source, PACKAGES) == moved


@pytest.mark.parametrize(
    "source",
    [
        "import os\nfrom pathlib import Path\n",
        "from analytics_of_others import x\nfrom jobshop.cli import y\n",
        '"""Says `from analytics import errors`."""\ntext = "from jobs import x"\n',
        "from groupscope.analytics import errors\n",
        "jobs = 1\nprint(jobs, 'é\u2028\x0c')\n",
        "text = 'jobs: analytics.'\n",
    ],
)
def test_all_else_stays_as_it_is(source: str) -> None:
    assert imports_below(source, PACKAGES) == source


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1\nimport analytics.wire\n", "line 2: `import analytics.wire`: write `from"),
        ("import os, jobs\n", "line 1: `import os, jobs`"),
        ("name = 'jobs.commands'\n", "line 1: 'jobs.commands' names a module"),
        ("name = f'jobs.commands.{1}'\n", "line 1: 'jobs.commands.' names a module"),
        ("name = 'jobs.v2_text'\n", "line 1: 'jobs.v2_text' names a module"),
        ("from  jobs import x\n", "line 1: more than one blank"),
        ("é = 1; from jobs import x\n", "line 1: more than one"),
    ],
)
def test_what_cannot_be_moved_ends_the_build(source: str, words: str) -> None:
    with pytest.raises(ImportNotMovedError) as raised:
        imports_below(source, PACKAGES)
    assert words in str(raised.value)

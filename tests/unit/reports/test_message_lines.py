"""A message keeps to the terminal; in a log it is a line."""

from __future__ import annotations

from reports.plain_text import hanging, message_lines

MESSAGE = "/dumps/a was not audited to the end; audit it: groupscope audit /dumps/a --out /dumps/a"


def test_in_a_log_a_message_is_a_line() -> None:
    assert message_lines(MESSAGE, None) == [MESSAGE]


def test_what_fits_stays_as_it_is() -> None:
    assert message_lines(MESSAGE, len(MESSAGE)) == [MESSAGE]
    assert hanging("  a  b", 6) == ["  a  b"]


def test_a_command_at_the_end_stays_whole() -> None:
    assert message_lines(MESSAGE, 40) == [
        "/dumps/a was not audited to the end;",
        "  audit it:",
        "  groupscope audit /dumps/a --out /dumps/a",
    ]


def test_words_about_groupscope_are_no_command() -> None:
    message = "not gone on from the earlier workspace: groupscope 0.1.0 wrote it"
    assert message_lines(message, 40) == [
        "not gone on from the earlier workspace:",
        "  groupscope 0.1.0 wrote it",
    ]
    assert message_lines(f"{message} in another way", 40)[1:] == [
        "  groupscope 0.1.0 wrote it in another",
        "  way",
    ]


def test_what_goes_on_stands_further_in_than_its_line() -> None:
    assert hanging("  skipped: one two three", 12) == ["  skipped:", "    one two", "    three"]


def test_a_path_stays_whole() -> None:
    path = "/a-very-long/path-without-a/blank"
    assert message_lines(f"see {path} there", 20) == ["see", f"  {path}", "  there"]

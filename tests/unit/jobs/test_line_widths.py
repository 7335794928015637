"""How wide lines are, by what is known of the terminal."""

from __future__ import annotations

import io
import os
import sys

import pytest

from jobs.cli.page_width import message_width, page_width


@pytest.fixture(autouse=True)
def _piped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither stream is a terminal, and no variable says more."""

    def refused(_file: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", refused)
    monkeypatch.delenv("COLUMNS", raising=False)


class Terminal(io.StringIO):
    """A stream with a number of its own."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def fileno(self) -> int:
        return self.number


def on_terminals(monkeypatch: pytest.MonkeyPatch, **columns: int) -> None:
    """Let streams be terminals of so many columns."""
    for number, name in enumerate(columns, 100):
        monkeypatch.setattr(sys, name, Terminal(number))
    sizes = dict(enumerate(columns.values(), 100))
    monkeypatch.setattr(os, "get_terminal_size", lambda file: os.terminal_size((sizes[file], 24)))


def test_in_a_pipe_an_answer_has_120_columns_and_a_message_no_end() -> None:
    assert (page_width(None), message_width()) == (120, None)


def test_each_is_as_wide_as_its_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminals(monkeypatch, stdout=90, stderr=150)
    assert (page_width(None), message_width()) == (90, 150)


def test_a_terminal_that_does_not_say_how_wide_it_is_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_terminals(monkeypatch, stdout=0, stderr=0)
    assert (page_width(None), message_width()) == (120, None)


@pytest.mark.parametrize(("columns", "width"), [("100", 100), ("7", 40)])
def test_the_variable_goes_before_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    on_terminals(monkeypatch, stdout=90, stderr=150)
    monkeypatch.setenv("COLUMNS", columns)
    assert (page_width(None), message_width()) == (width, width)


@pytest.mark.parametrize("columns", ["", "0", "wide", "-3"])
def test_a_variable_that_is_no_number_says_nothing(
    monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert (page_width(None), message_width()) == (120, None)


def test_a_file_is_as_wide_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert page_width("lag.txt") == 120

"""Files that a person gives beside a dump: read whole or refused, with the place that is wrong.

Whatever is in such a file is the person's to put right: `InputNotRecognizedError`, one line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from analytics.epoch_times import EPOCH, LAST_MS
from analytics.errors import AbsentFileError, InputNotRecognizedError, InputUnreadableError
from analytics.failed_reads import is_nothing_there, tried_again
from analytics.locations import is_uri, local_path, open_location

MOST: Final = 2**63 - 1
"""Of an offset."""
MOST_INT: Final = 2**31 - 1
"""Of a partition and of most settings."""
_MOST_SHOWN: Final = 60
_MOST_DIGITS: Final = 40
_OTHER_ENCODINGS: Final = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
"""By the mark that such a file begins with, the longer marks first."""


def bad(where: str, field: str, value: object, looked_for: str) -> InputNotRecognizedError:
    """Return the error that names a file, a field, what is there and what was looked for."""
    text = "a number of very many digits" if _is_huge(value) else repr(value)
    shown = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    return InputNotRecognizedError(f"{where}: {field} is {shown}; looked for {looked_for}")


def read_bytes(location: str | Path) -> bytes:
    """Return what is in a file, wherever that is.

    Raises:
        AbsentFileError: There is no such file.
        InputNotRecognizedError: Nothing here opens URIs of that scheme.
        InputUnreadableError: It cannot be read.
        ReadFailedError: A network that it is on fails, and goes on to.
    """
    try:
        return _read_bytes(str(location))
    except InputUnreadableError as error:
        if isinstance(error.__cause__, OSError) and is_nothing_there(error.__cause__):
            raise AbsentFileError(f"{location}: there is no such file") from error
        raise


def _read_bytes(where: str) -> bytes:
    if not is_uri(where):
        return tried_again(Path(local_path(where)).read_bytes, where)
    filesystem, path = open_location(where)

    def read() -> bytes:
        with filesystem.open_input_stream(path, compression=None) as stream:
            content: bytes = stream.read()
            return content

    return tried_again(read, where)


def read_text(path: str | Path) -> str:
    """Return the text of a file, which has to be UTF-8; a mark of UTF-8 at its begin is left out.

    Raises:
        InputNotRecognizedError: It is no text, or in another encoding.
        InputUnreadableError: It cannot be read.
    """
    return text_of(read_bytes(path), str(path))


def text_of(data: bytes, where: str) -> str:
    """Return UTF-8 as text.

    Raises:
        InputNotRecognizedError: It is no text, or in another encoding.
    """
    for mark, name in _OTHER_ENCODINGS.items():
        if data.startswith(mark):
            raise InputNotRecognizedError(f"{where}: this is {name}; save it as UTF-8")
    if (zero := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, zero) + 1
        raise InputNotRecognizedError(
            f"{where}, line {line}: this is not text: there is a zero byte at position {zero}"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputNotRecognizedError(
            f"{where}, line {line}: this is not UTF-8: byte 0x{data[error.start]:02x} at position "
            f"{error.start}; save it as UTF-8"
        ) from error


def read_json(data: bytes | str, where: str) -> Any:  # noqa: ANN401 - as the file has it
    """Return a JSON document.

    Raises:
        InputNotRecognizedError: It is none, or one that is nested too deep.
    """
    text = text_of(data, where) if isinstance(data, bytes) else data
    try:
        return json.loads(text)
    except RecursionError as error:
        raise InputNotRecognizedError(f"{where}: this is nested too deep") from error
    except ValueError as error:
        raise InputNotRecognizedError(f"{where}: this is not JSON: {error!s:.120}") from error


def json_rows(text: str, where: str) -> list[Any]:
    """Return the items of a list, of an object with `rows`, or one document a line.

    Raises:
        InputNotRecognizedError: It is none of these.
    """
    try:
        whole = read_json(text, where)
    except InputNotRecognizedError:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) == 1:
            raise
        return [read_json(line, f"{where}, line {number}") for number, line in lines]
    if isinstance(whole, Mapping):
        whole = whole.get("rows", [whole])
    if not isinstance(whole, list):
        raise bad(where, "rows", whole, "a list of objects")
    return whole


def whole_number(value: object, field: str, where: str, *, least: int = 0, most: int = MOST) -> int:
    """Return a number that a file has as one, or as text; it is there, whole, and not too large.

    Raises:
        InputNotRecognizedError: It is anything else.
    """
    number: object = value
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(value, str):
        digits = value.strip()
        is_number = digits.isascii() and digits.removeprefix("-").isdigit()
        number = int(digits) if is_number and len(digits) <= _MOST_DIGITS else None
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise bad(where, field, value, f"a whole number from {least} to {most}")
    return number


def plain_text(value: object, field: str, where: str) -> str:
    """Return a name, of characters that can be written.

    Raises:
        InputNotRecognizedError: It is none, or half a pair of surrogates stands in it.
    """
    if isinstance(value, int) and not isinstance(value, bool) and not _is_huge(value):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise bad(where, field, value, "a name")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise bad(where, field, value, "a name of valid characters") from error
    return value


def time_of(value: object, field: str, where: str) -> datetime | None:
    """Return a time: epoch milliseconds, ISO 8601 or a time already; None where there is none.

    Raises:
        InputNotRecognizedError: It is something else, or not of the years 1970 to 9999.
    """
    if value is None or value == "":
        return None
    time = value
    if isinstance(value, str) and not value.strip().removeprefix("-").isdecimal():
        try:
            time = datetime.fromisoformat(value)
        except ValueError as error:
            raise bad(where, field, value, "epoch milliseconds or ISO 8601") from error
    if isinstance(time, datetime):
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        if time < EPOCH:
            raise bad(where, field, value, "a time from 1970 on")
        return time
    return EPOCH + timedelta(milliseconds=whole_number(value, field, where, most=LAST_MS))


def _is_huge(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() > 4 * _MOST_DIGITS

"""How a cluster is asked for its groups: what kafka-python has, and what it lacks.

It lacks the messages by which groups of newer protocols are described; `messages` has them, and
its own classes read and write them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

_PACKAGE: Final = f"{__package__}.messages"
LACKING: Final = (
    "ConsumerGroupDescribe",
    "ShareGroupDescribe",
    "StreamsGroupDescribe",
    "DescribeShareGroupOffsets",
)
"""Names of those that are in `messages`."""


@cache
def message(name: str) -> Any:  # noqa: ANN401 - untyped library
    """Return a request of `LACKING` by its name, and have its response read.

    A class is named as its message is: that is where the library looks for it.
    """
    from kafka.protocol.api_message import ApiMessage  # noqa: PLC0415 - optional

    request, response = (
        type(ApiMessage)(f"{name}{end}", (ApiMessage,), {"__slots__": ()}, load_json=_PACKAGE)
        for end in ("Request", "Response")
    )
    # The library keeps only a weak reference to what reads a response.
    _RESPONSES.append(response)
    return request


_RESPONSES: Final[list[Any]] = []

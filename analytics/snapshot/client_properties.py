"""The file that Kafka's own tools take as ``--command-config``, as far as a snapshot needs it.

Keys and values are those of Java's clients (``CommonClientConfigs``, ``SslConfigs``,
``SaslConfigs``). A key that says how to reach or to trust a broker and is not understood is an
error: to pass over it could mean to trust another one. Values of secrets are in no message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from analytics.errors import InputNotRecognizedError
from analytics.snapshot.tls import TLS_KEYS, refused, tls_context

if TYPE_CHECKING:
    import ssl

_PROTOCOL: Final = "security.protocol"
_MECHANISM: Final = "sasl.mechanism"
_JAAS: Final = "sasl.jaas.config"
_SUPPORTED: Final = frozenset({_PROTOCOL, _MECHANISM, _JAAS}) | TLS_KEYS
_MATTERS: Final = ("sasl.", "ssl.", "security.", "socks", "proxy", "config.providers")
"""How keys begin that say how a broker is reached or trusted."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}
"""With the class that logs in, whose package is Kafka's or a vendor's copy of it."""
_LOGIN: Final = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)(?P<options>\s.*?)?;\s*",
    re.DOTALL,
)
_OPTION: Final = re.compile(
    r"\s*([\w.]+)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s;\"']+)", re.DOTALL
)
_JAAS_FORM: Final = 'looked for LOGIN_MODULE required username="..." password="...";'


@dataclass(frozen=True)
class ClientSettings:
    """How brokers are reached.

    Attributes:
        protocol: As ``security.protocol``.
        mechanism: As ``sasl.mechanism``; null without SASL.
        username: Of SASL.
        password: Likewise.
        tls: What certificates are trusted, and the client's own; null without TLS.
        ignored: Keys of the file that mean nothing to a snapshot, in order.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)
    ignored: tuple[str, ...] = ()

    def for_client(self) -> dict[str, Any]:
        """Return the settings as kafka-python calls them."""
        return {
            "security_protocol": self.protocol,
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.username,
            "sasl_plain_password": self.password,
            "ssl_context": self.tls,
        }

    def without_secrets(self, text: str) -> str:
        """Return a text of someone else's in which neither password nor user name stands."""
        for secret in (self.password, self.username):
            if secret:
                text = text.replace(secret, "***")
        return text


def client_settings(properties: Mapping[str, str], where: str) -> ClientSettings:
    """Return what a client's properties say.

    Args:
        properties: By key.
        where: The file, for errors.

    Raises:
        InputNotRecognizedError: A key that matters is not understood, lacks another one, or names
            a file that cannot be used.
    """
    _check_keys(properties, where)
    protocol = properties.get(_PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise refused(where, _PROTOCOL, f"none of {', '.join(_PROTOCOLS)}")
    uses_sasl, uses_tls = protocol.startswith("SASL_"), protocol.endswith("SSL")
    _check_use(properties, where, protocol, uses_sasl=uses_sasl, uses_tls=uses_tls)
    mechanism, username, password = _login(properties, where) if uses_sasl else (None, None, None)
    return ClientSettings(
        protocol=protocol,
        mechanism=mechanism,
        username=username,
        password=password,
        tls=tls_context(properties, where) if uses_tls else None,
        ignored=tuple(sorted(set(properties) - _SUPPORTED)),
    )


def _check_keys(properties: Mapping[str, str], where: str) -> None:
    for key, value in properties.items():
        if key not in _SUPPORTED and key.startswith(_MATTERS):
            raise refused(
                where, key, f"not supported; of its kind are: {', '.join(sorted(_SUPPORTED))}"
            )
        if key in _SUPPORTED and value.lstrip().startswith("${"):
            raise refused(where, key, "to be looked up by a config provider, of which none is run")


def _check_use(
    properties: Mapping[str, str], where: str, protocol: str, *, uses_sasl: bool, uses_tls: bool
) -> None:
    """Refuse keys that have no effect under the protocol: the file means another one.

    Raises:
        InputNotRecognizedError: There is one.
    """
    for key in properties:
        is_idle = (key.startswith("sasl.") and not uses_sasl) or (
            key.startswith("ssl.") and not uses_tls
        )
        if is_idle and key in _SUPPORTED:
            raise refused(where, key, f"without effect: {_PROTOCOL} is {protocol}")


def _login(properties: Mapping[str, str], where: str) -> tuple[str, str, str]:
    mechanism = properties.get(_MECHANISM, "").strip().upper()
    if mechanism not in _MECHANISMS:
        # Java's clients take GSSAPI where none is named.
        raise refused(where, _MECHANISM, f"none of those supported: {', '.join(_MECHANISMS)}")
    text = properties.get(_JAAS)
    if text is None:
        raise InputNotRecognizedError(f"{where}: there is no {_JAAS}; {_JAAS_FORM}")
    login = _LOGIN.fullmatch(text)
    options = _options(login["options"] or "") if login is not None else None
    if login is None or options is None:
        raise refused(where, _JAAS, f"not of the form that is read; {_JAAS_FORM}")
    module = login["module"].rpartition(".")[2]
    if module != _MECHANISMS[mechanism]:
        raise refused(where, _JAAS, f"for {module}; {mechanism} needs {_MECHANISMS[mechanism]}")
    if others := sorted(set(options) - {"username", "password"}):
        raise refused(where, _JAAS, f"with options that are not supported: {', '.join(others)}")
    if missing := [name for name in ("username", "password") if not options.get(name)]:
        raise refused(where, _JAAS, f"without {missing[0]}; {_JAAS_FORM}")
    return mechanism, options["username"], options["password"]


def _options(text: str) -> dict[str, str] | None:
    """Return the options of a login; None where something else stands between them."""
    options: dict[str, str] = {}
    at = 0
    while match := _OPTION.match(text, at):
        name, value = match.groups()
        is_quoted = value[0] in "\"'"
        options[name] = re.sub(r"\\(.)", r"\1", value[1:-1]) if is_quoted else value
        at = match.end()
    return None if text[at:].strip() else options

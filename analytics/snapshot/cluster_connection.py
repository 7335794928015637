"""Questions to a running cluster by the Kafka protocol, with kafka-python's connections.

The library is optional (``groupscope[snapshot]``) and is loaded here only. It reads responses by
the shapes of the protocol; whatever it makes of foreign bytes, and whenever no answer comes in
time, is one error with its reason. Its logs are kept silent: at some levels they hold what is sent,
passwords too.

The file that Kafka's own tools take as ``--command-config``, as far as a snapshot needs it.

Keys and values are those of Java's clients (``CommonClientConfigs``, ``SslConfigs``,
``SaslConfigs``). A key that says how to reach or to trust a broker and is not understood is an
error: to pass over it could mean to trust another one. Values of secrets are in no message.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from analytics.errors import ClusterUnreachableError, InputNotRecognizedError, InstallationError
from analytics.snapshot.tls import TLS_KEYS, TlsMaterial, refused, tls_material

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
    tls: TlsMaterial | None = field(default=None, repr=False)
    ignored: tuple[str, ...] = ()

    def for_client(self) -> dict[str, Any]:
        """Return the settings as kafka-python calls them."""
        return {
            "security_protocol": self.protocol,
            "sasl_mechanism": self.mechanism,
            "sasl_plain_username": self.username,
            "sasl_plain_password": self.password,
            "ssl_context": None if self.tls is None else self.tls.context(),
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
        tls=tls_material(properties, where) if uses_tls else None,
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


CLIENT_LIBRARY: Final = "kafka-python"
TO_INSTALL: Final = (
    "snapshot needs kafka-python 3, which is not installed here: "
    "pip install 'kafka-python>=3.0.12,<4'"
)
CLIENT_ID: Final = "groupscope-snapshot"

_MOST_IN_FLIGHT: Final = 100
"""Requests that one broker has not answered yet; it answers one after the other."""
_LARGEST_RESPONSE: Final = 256 << 20
"""Bytes; memory is set aside for as many as a response says that it has."""
_CONNECTS_WITHIN: Final = 10.0
_BETWEEN: Final = 0.2
"""Seconds."""
_BROKERS_TRIED: Final = 3
"""At least, within the time for an answer, where any of them may give it."""
_FINAL: Final = ("SaslAuthenticationFailedError", "UnsupportedSaslMechanismError")
_OF_TLS: Final = ("Handshake failed", "[SSL: ")
"""Words of errors of TLS: a certificate that is not trusted stays so."""
_TIMEOUTS: Final = ("RequestTimedOutError", "KafkaTimeoutError")
_NO_ANSWER: Final = "no answer"
_CUT: Final = ("socket disconnected", "Invalid frame length")
"""Words of errors where a port is of another protocol: it hangs up, or answers in TLS."""


_HUNG_UP: Final = (
    "it hung up while the client logged in with {}, as brokers do that refuse a user or a password"
)


class NotAnsweredError(Exception):
    """A question that got no answer; the message says why, without secrets.

    Attributes:
        is_passing: It may be answered later, or by another broker.
    """

    def __init__(self, reason: str, *, is_passing: bool) -> None:
        super().__init__(reason)
        self.is_passing = is_passing


def check_client_library() -> None:
    """Check that kafka-python is there, in a release that has what is used.

    Raises:
        InstallationError: It is not.
    """
    try:
        is_there = importlib.util.find_spec("kafka.net.manager") is not None
    except ModuleNotFoundError:
        is_there = False
    if not is_there:
        raise InstallationError(TO_INSTALL)


class ClusterConnection:
    """A cluster that is asked, by several threads where there are.

    Args:
        bootstrap: ``HOST:PORT``, several with commas.
        settings: How brokers are reached.
        seconds: How long an answer is waited for.

    Attributes:
        bootstrap: As given.
        settings: Likewise.
        seconds: Likewise.
    """

    def __init__(self, bootstrap: str, settings: ClientSettings, seconds: float) -> None:
        servers = _servers(bootstrap)
        from kafka.net.manager import KafkaConnectionManager  # noqa: PLC0415 - optional
        from kafka.net.selector import NetworkSelector  # noqa: PLC0415

        logs = logging.getLogger("kafka")
        logs.propagate = False
        logs.setLevel(logging.CRITICAL + 1)
        self.bootstrap = bootstrap
        self.settings = settings
        self._is_abandoned = False
        self.seconds = seconds
        # Its loop has a thread of its own, so that interruptions reach ours.
        self._net = NetworkSelector(client_id=CLIENT_ID)
        self._manager = KafkaConnectionManager(
            self._net,
            bootstrap_servers=servers,
            client_id=CLIENT_ID,
            client_software_name="groupscope",
            receive_message_max_bytes=_LARGEST_RESPONSE,
            request_timeout_ms=int(seconds * 1000),
            max_in_flight_requests_per_connection=_MOST_IN_FLIGHT,
            **settings.for_client(),
        )
        self._manager.cluster.config["allow_auto_create_topics"] = False

    def __enter__(self) -> Self:
        """Reach the first broker that answers.

        Raises:
            ClusterUnreachableError: None does within the time, or one refuses the login.
        """
        self._net.start()
        try:
            self._run(self._reach)
        except NotAnsweredError as error:
            self._close()
            raise ClusterUnreachableError(f"{self.bootstrap}: {error}") from error
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    @property
    def nodes(self) -> list[int]:
        """Ids of the brokers that the cluster named last."""
        return sorted(each.node_id for each in self._manager.cluster.brokers())

    def note_brokers(self, metadata: Any) -> None:  # noqa: ANN401 - untyped library
        """Take the addresses of brokers from a MetadataResponse."""
        self._manager.cluster.update_metadata(metadata)

    def ask(self, request: Any, node: int | None = None) -> Any:  # noqa: ANN401 - untyped library
        """Send a request to a broker, any where none is named, and return its response.

        Raises:
            NotAnsweredError: There is none within the time, or none that can be read.
        """
        return self._run(self._answer, request, node)

    def abandon(self) -> None:
        """Ask nothing any more: whoever waits for an answer in another thread gets an error."""
        self._is_abandoned = True
        self._net.stop(timeout_ms=2000)

    def _run(self, coroutine: Any, *arguments: Any) -> Any:  # noqa: ANN401 - untyped library
        try:
            return self._waited_for(coroutine, *arguments)
        except NotAnsweredError:
            raise
        except Exception as error:  # noqa: BLE001 - of foreign bytes it raises whatever it likes
            is_passing = bool(getattr(error, "retriable", False))
            raise NotAnsweredError(self._reason(error), is_passing=is_passing) from None

    def _waited_for(self, coroutine: Any, *arguments: Any) -> Any:  # noqa: ANN401 - as above
        """Return what a coroutine does in the thread of the loop.

        The library's own `run` waits for ever where the loop is stopped just before it begins to.
        """
        outcome: Future[Any] = Future()

        async def run() -> None:
            try:
                outcome.set_result(await coroutine(*arguments))
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                outcome.set_exception(error)

        until = time.monotonic() + self.seconds + _CONNECTS_WITHIN
        if not self._is_abandoned:
            self._net.call_soon_threadsafe(run)
        while not self._is_abandoned:
            try:
                return outcome.result(_BETWEEN)
            except TimeoutError:
                if outcome.done():
                    raise
                if time.monotonic() > until:
                    raise NotAnsweredError(_NO_ANSWER, is_passing=True) from None
        raise NotAnsweredError("it is no longer asked", is_passing=False)

    def _reason(self, error: Exception) -> str:
        if isinstance(error, NotAnsweredError):
            return str(error)
        words = self.settings.without_secrets(" ".join(str(error).split()))
        kind = type(error).__name__
        return f"{kind}: {words:.200}" if words and kind not in words else words[:200] or kind

    async def _answer(self, request: Any, node: int | None) -> Any:  # noqa: ANN401
        until = time.monotonic() + self.seconds
        while True:
            try:
                if node is not None:
                    return await self._sent(request, node, until)
                # One that does not answer has no more than its part of the time: others may.
                within = min(until, time.monotonic() + self.seconds / _BROKERS_TRIED)
                return await self._sent(request, self._manager.least_loaded_node(), within)
            except Exception as error:
                # A connection that has just been lost is not tried at once (`connection_delay`).
                is_early = type(error).__name__ == "NodeNotReadyError"
                may_go_on = is_early or (node is None and getattr(error, "retriable", False))
                if not may_go_on or time.monotonic() + _BETWEEN > until:
                    raise
            await self._net.sleep(_BETWEEN)

    async def _sent(self, request: Any, node: Any, until: float) -> Any:  # noqa: ANN401
        left_ms = max((until - time.monotonic()) * 1000, 1)
        connection = self._manager.get_connection(
            node, timeout_ms=min(left_ms, _CONNECTS_WITHIN * 1000), refresh_metadata_on_err=False
        )
        try:
            await self._manager.wait_for(connection.init_future, left_ms)
        except Exception as error:
            if self._is_cut_in_login(connection, error):
                words = _HUNG_UP.format(self.settings.mechanism)
                raise NotAnsweredError(words, is_passing=True) from None
            raise
        left_ms = max((until - time.monotonic()) * 1000, 1)
        sent = connection.send_request(request, request_timeout_ms=left_ms)
        return await self._manager.wait_for(sent, left_ms)

    def _is_cut_in_login(self, connection: Any, error: Exception) -> bool:  # noqa: ANN401 - as above
        """Return whether a broker that speaks the protocol hung up where a login is to follow.

        One that refuses a login says why and hangs up: where both come at once, the library drops
        what was said.
        """
        is_first = not self._manager.cluster.brokers()
        speaks = connection.broker_version_data is not None
        uses_login = self.settings.mechanism is not None
        return is_first and speaks and uses_login and _has(str(error), _CUT)

    async def _reach(self) -> None:
        """Ask bootstrap servers in turn who the brokers are, until one answers."""
        until = time.monotonic() + self.seconds
        failure = _NO_ANSWER
        while True:
            for each in self._manager.cluster.bootstrap_brokers():
                try:
                    if await self._learned_from(each.node_id, until):
                        return
                    failure = "it knows of no broker"
                except Exception as error:  # noqa: BLE001 - as in `_run`
                    if type(error).__name__ == "NodeNotReadyError":
                        continue
                    is_late = type(error).__name__ in _TIMEOUTS and failure != _NO_ANSWER
                    # The last try has little time: what an earlier one was told says more.
                    failure = failure if is_late else self._reason(error)
                    if type(error).__name__ in _FINAL or _has(failure, _OF_TLS):
                        raise NotAnsweredError(failure, is_passing=False) from None
            if time.monotonic() + _BETWEEN > until:
                protocol = self.settings.protocol
                hint = f"; does it expect another security.protocol than {protocol}?"
                raise NotAnsweredError(
                    f"no broker answered within {self.seconds:g} seconds ({failure})"
                    f"{hint if _has(failure, _CUT) else ''}",
                    is_passing=True,
                )
            await self._net.sleep(_BETWEEN)

    async def _learned_from(self, node: Any, until: float) -> bool:  # noqa: ANN401
        from kafka.protocol.metadata import MetadataRequest  # noqa: PLC0415 - optional

        request = MetadataRequest(topics=MetadataRequest.NO_TOPICS, allow_auto_topic_creation=False)
        try:
            response = await self._sent(request, node, until)
        except Exception:
            self._manager.update_backoff(node)
            raise
        finally:
            self._manager.close(node)
        self.note_brokers(response)
        return bool(self._manager.cluster.brokers())

    def _close(self) -> None:
        self._net.stop(timeout_ms=2000)
        self._manager.close()
        self._net.close()


def _has(text: str, words: Iterable[str]) -> bool:
    return any(each in text for each in words)


def _servers(bootstrap: str) -> list[str]:
    servers = [each.strip() for each in bootstrap.split(",") if each.strip()]
    for each in servers or [bootstrap]:
        _, colon, port = each.rpartition(":")
        if not colon or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise InputNotRecognizedError(
                f"--bootstrap-server {bootstrap}: looked for HOST:PORT, several with commas"
            )
    return servers


def error_name(code: int) -> str:
    """Return Kafka's name of an error code ("TOPIC_AUTHORIZATION_FAILED")."""
    import kafka.errors  # noqa: PLC0415 - optional

    return str(getattr(kafka.errors.for_code(code), "message", f"error {code}"))


def is_passing(code: int) -> bool:
    """Return whether a broker that answered so may answer otherwise later."""
    import kafka.errors  # noqa: PLC0415 - optional

    return bool(getattr(kafka.errors.for_code(code), "retriable", False))

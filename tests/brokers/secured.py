"""One broker behind every kind of listener, with users, certificates and an authorizer."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.brokers.asking import Ask
from tests.brokers.broker import Addresses
from tests.support.certificates import Authority

AUDITOR = "auditor"
"""Who may do all, by whichever listener."""
SCRAM_PASSWORD, PLAIN_PASSWORD, STORE_PASSWORD = (
    f"hunter2-{each}" for each in ("scram", "plain", "store")
)
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "SCRAM": "SASL_PLAINTEXT",
    "PLAIN": "SASL_PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "SCRAMTLS": "SASL_SSL",
}
"""Their protocols by name."""
LOGIN = "org.apache.kafka.common.security"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_LITERAL, _ALLOW = 3, 3

RESOURCES = {"topic": 2, "group": 3, "cluster": 4}
OPERATIONS = {"read": 3, "describe": 8, "describe_configs": 10}
"""By ``ResourceType`` and ``AclOperation``."""


@dataclass(frozen=True)
class Right:
    """What an ACL allows."""

    operation: str
    resource: str
    name: str


@dataclass(frozen=True)
class Ports:
    """Of the listeners, free a moment ago."""

    by_name: Mapping[str, int]
    controller: int

    @classmethod
    def free(cls) -> Ports:
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(len(LISTENERS) + 1)]
        numbers = [each.getsockname()[1] for each in sockets]
        for each in sockets:
            each.close()
        return cls(dict(zip(LISTENERS, numbers, strict=False)), numbers[-1])

    @property
    def addresses(self) -> Addresses:
        return Addresses(self.by_name["PLAINTEXT"], self.controller)

    def bootstrap(self, listener: str) -> str:
        return f"127.0.0.1:{self.by_name[listener]}"


def secured_settings(ports: Ports, authority: Authority, folder: Path) -> dict[str, str]:
    """Return what makes a broker listen so; its stores are written into the folder."""
    heard = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.by_name.items())
    protocols = ",".join(f"{name}:{protocol}" for name, protocol in LISTENERS.items())
    settings = {
        "listeners": f"{heard},CONTROLLER://127.0.0.1:{ports.controller}",
        "advertised.listeners": heard,
        "listener.security.protocol.map": f"{protocols},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "authorizer.class.name": _AUTHORIZER,
        "super.users": f"User:ANONYMOUS;User:{AUDITOR};User:CN={AUDITOR}",
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": (
            f"{LOGIN}.plain.PlainLoginModule required user_{AUDITOR}='{PLAIN_PASSWORD}';"
        ),
    }
    for name in ("scram", "scramtls"):
        settings |= {
            f"listener.name.{name}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"listener.name.{name}.scram-sha-512.sasl.jaas.config": (
                f"{LOGIN}.scram.ScramLoginModule required;"
            ),
        }
    own = authority.issue("broker").write_pkcs12(folder / "broker.p12", STORE_PASSWORD)
    trusted = authority.write_truststore(folder / "broker.trust.p12", "PKCS12", STORE_PASSWORD)
    for name in ("tls", "mutual", "scramtls"):
        for kind, store in (("keystore", own), ("truststore", trusted)):
            settings |= {
                f"listener.name.{name}.ssl.{kind}.location": str(store),
                f"listener.name.{name}.ssl.{kind}.type": "PKCS12",
                f"listener.name.{name}.ssl.{kind}.password": STORE_PASSWORD,
            }
        settings[f"listener.name.{name}.ssl.key.password"] = STORE_PASSWORD
    return settings | {"listener.name.mutual.ssl.client.auth": "required"}


def scram_login(user: str, password: str) -> dict[str, str]:
    """Return how a client logs in by SCRAM."""
    return {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": (
            f'{LOGIN}.scram.ScramLoginModule required username="{user}" password="{password}";'
        ),
    }


def allow(ask: Ask, rights: Mapping[str, Iterable[Right]]) -> None:
    """Give users rights."""
    creations: list[dict[str, Any]] = [
        {
            "resourceType": RESOURCES[right.resource],
            "resourceName": right.name,
            "resourcePatternType": _LITERAL,
            "principal": f"User:{user}",
            "host": "*",
            "operation": OPERATIONS[right.operation],
            "permissionType": _ALLOW,
        }
        for user, of_user in rights.items()
        for right in of_user
    ]
    answer = ask("CreateAcls", {"creations": creations})
    failed = [each for each in answer["results"] if each["errorCode"]]
    assert not failed, failed

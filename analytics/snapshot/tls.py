"""Which brokers are trusted, and what a client shows them, by the keys of Java's ``SslConfigs``."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from analytics.errors import InputNotRecognizedError
from analytics.locations import local_path
from analytics.snapshot.key_stores import (
    PEM,
    STORE_TYPES,
    OwnKey,
    StoreUnusableError,
    certificates_in_lines,
    key_in_lines,
    load_own_key,
    own_key,
    trusted_certificates,
    why_not_loaded,
)

_HOSTNAME_CHECK: Final = "ssl.endpoint.identification.algorithm"
_TRUST_TYPE: Final = "ssl.truststore.type"
_TRUST_FILE: Final = "ssl.truststore.location"
_TRUST_PASSWORD: Final = "ssl.truststore.password"  # noqa: S105 - the key's name
_TRUST_TEXT: Final = "ssl.truststore.certificates"
_OWN_TYPE: Final = "ssl.keystore.type"
_OWN_FILE: Final = "ssl.keystore.location"
_OWN_PASSWORD: Final = "ssl.keystore.password"  # noqa: S105 - likewise
_OWN_CHAIN: Final = "ssl.keystore.certificate.chain"
_OWN_KEY: Final = "ssl.keystore.key"
_KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - likewise
TLS_KEYS: Final = frozenset(
    {
        *(_HOSTNAME_CHECK, _TRUST_TYPE, _TRUST_FILE, _TRUST_PASSWORD, _TRUST_TEXT),
        *(_OWN_TYPE, _OWN_FILE, _OWN_PASSWORD, _OWN_CHAIN, _OWN_KEY, _KEY_PASSWORD),
    }
)
_USUAL_TYPE: Final = "JKS"
"""Of stores, for Java's clients."""


def refused(where: str, key: str, why: str) -> InputNotRecognizedError:
    """Return the error of a key that cannot be gone by."""
    return InputNotRecognizedError(f"{where}: {key} is {why}")


def tls_context(properties: Mapping[str, str], where: str) -> ssl.SSLContext:
    """Return what certificates are trusted, and the client's own.

    Args:
        properties: By key.
        where: The file, for errors.

    Raises:
        InputNotRecognizedError: A key is not understood, lacks another one, or names a file that
            cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    check = properties.get(_HOSTNAME_CHECK, "https").strip().lower()
    if check not in ("", "https"):
        raise refused(where, _HOSTNAME_CHECK, "neither https nor empty")
    context.check_hostname = bool(check)
    _trust(context, properties, where)
    _show(context, properties, where)
    return context


def _trust(context: ssl.SSLContext, properties: Mapping[str, str], where: str) -> None:
    file, text = properties.get(_TRUST_FILE), properties.get(_TRUST_TEXT)
    if file is None and text is None:
        _check_alone(properties, where, (_TRUST_PASSWORD,), _TRUST_FILE)
        context.load_default_certs()
        return
    if file is not None and text is not None:
        raise refused(where, _TRUST_TEXT, f"given beside {_TRUST_FILE}; one of them is enough")
    is_pem = _is_pem(properties, where, _TRUST_TYPE)
    key = _TRUST_TEXT if file is None else _TRUST_FILE
    try:
        if file is None:
            _check_text(properties, where, _TRUST_TYPE, _TRUST_TEXT)
            context.load_verify_locations(cadata=certificates_in_lines(text or ""))
        elif is_pem:
            _check_without_password(properties, where, _TRUST_PASSWORD, _TRUST_TYPE)
            context.load_verify_locations(cafile=local_path(file))
        else:
            password = _password(properties, where, _TRUST_PASSWORD, _TRUST_TYPE)
            found = trusted_certificates(local_path(file), password)
            context.load_verify_locations(cadata=found)
    except StoreUnusableError as error:
        raise refused(where, key, f"not usable: {error}") from None
    except (OSError, ValueError) as error:
        raise refused(where, key, f"not usable: {why_not_loaded(error)}") from None


def _show(context: ssl.SSLContext, properties: Mapping[str, str], where: str) -> None:
    """Have the client show its certificate, where it has one."""
    keys = (_OWN_FILE, _OWN_CHAIN, _OWN_KEY)
    if not any(each in properties for each in keys):
        _check_alone(properties, where, (_OWN_TYPE, _OWN_PASSWORD, _KEY_PASSWORD), _OWN_FILE)
        return
    source = _OWN_FILE if _OWN_FILE in properties else _OWN_KEY
    try:
        load_own_key(context, _own(properties, where))
    except StoreUnusableError as error:
        raise refused(where, source, f"not usable: {error}") from None
    except (OSError, ValueError) as error:
        raise refused(where, source, f"not usable: {why_not_loaded(error)}") from None


def _own(properties: Mapping[str, str], where: str) -> OwnKey:
    key_password = properties.get(_KEY_PASSWORD, "")
    is_pem = _is_pem(properties, where, _OWN_TYPE)
    file = properties.get(_OWN_FILE)
    if file is None:
        _check_text(properties, where, _OWN_TYPE, _OWN_KEY)
        for key, other in ((_OWN_KEY, _OWN_CHAIN), (_OWN_CHAIN, _OWN_KEY)):
            if key not in properties:
                raise InputNotRecognizedError(f"{where}: there is {other} and no {key}")
        key = key_in_lines(properties[_OWN_KEY])
        chain = certificates_in_lines(properties[_OWN_CHAIN])
        return OwnKey((key + chain).encode(), key_password)
    for key in (_OWN_CHAIN, _OWN_KEY):
        if key in properties:
            raise refused(where, key, f"given beside {_OWN_FILE}; one of them is enough")
    if is_pem:
        _check_without_password(properties, where, _OWN_PASSWORD, _OWN_TYPE)
        return OwnKey(Path(local_path(file)).read_bytes(), key_password)
    password = _password(properties, where, _OWN_PASSWORD, _OWN_TYPE)
    return own_key(local_path(file), password, key_password or password)


def _is_pem(properties: Mapping[str, str], where: str, key: str) -> bool:
    store_type = properties.get(key, _USUAL_TYPE).strip().upper()
    if store_type not in STORE_TYPES:
        raise refused(where, key, f"none of {', '.join(STORE_TYPES)}")
    return store_type == PEM


def _check_text(properties: Mapping[str, str], where: str, key: str, text: str) -> None:
    """Check that what stands in the properties themselves is declared as PEM (KIP-651)."""
    if not _is_pem(properties, where, key):
        raise InputNotRecognizedError(
            f"{where}: {key} is not {PEM} (Java's clients take {_USUAL_TYPE} where it is not "
            f"given), and {text} can be nothing else"
        )


def _check_alone(
    properties: Mapping[str, str], where: str, keys: tuple[str, ...], needed: str
) -> None:
    for key in keys:
        if key in properties:
            raise InputNotRecognizedError(f"{where}: there is {key} and no {needed}")


def _check_without_password(
    properties: Mapping[str, str], where: str, key: str, type_key: str
) -> None:
    """Refuse the password of a store that has none, as Java's clients do."""
    if key in properties:
        raise refused(where, key, f"without effect: {type_key} is {PEM}")


def _password(properties: Mapping[str, str], where: str, key: str, type_key: str) -> str:
    password = properties.get(key)
    if not password:
        raise InputNotRecognizedError(
            f"{where}: there is no {key}, without which a store of Java is not read; a file that "
            f"is {PEM} needs {type_key}={PEM} ({_USUAL_TYPE} where it is not given)"
        )
    return password

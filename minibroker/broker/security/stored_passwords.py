"""`StoredPasswords`: passwords of this broker's altered settings, in the tree and in plain text.

    AlterConfigs ─► encode ─► /config/brokers/<id> ─► decode ─► DynamicConfig

`config.dynamic.is_password` says which settings these are. With a ZooKeeper they need
`password.encoder.secret`, as in Kafka 3.9. The tree of a broker without one is its own, so a
password stands there as it is, as in KRaft; with a secret it is encoded there, too.

Source: Kafka DynamicBrokerConfig (toPersistentProps, fromPersistentProps, maybeReEncodePasswords).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.dynamic import is_password
from minibroker.broker.security.password_encoder import (
    OLD_SECRET_KEY,
    PasswordEncoder,
    encoder_of,
    is_encoded,
)
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.config.broker import BrokerConfig

logger = logging.getLogger(__name__)

PASSWORDS_MAX: Final = 1000
"""Passwords of one alteration. One node of ZooKeeper has room for so many encoded ones."""
NO_SECRET: Final = "Password encoder secret not configured"


class StoredPasswords:
    """Belongs to the loop. Encoding and decoding run beside it: each takes milliseconds."""

    __slots__ = ("_encoder", "_is_plain", "_old", "_plain_texts")

    def __init__(self, config: BrokerConfig) -> None:
        """Raise ConfigError for wrong settings of `password.encoder.…`."""
        self._encoder = encoder_of(config)
        """Constant."""
        self._old = encoder_of(config, OLD_SECRET_KEY)
        """Constant."""
        self._is_plain = config.zookeeper_connect is None
        """Constant. True where a password may stand in the tree as it is."""
        self._plain_texts: dict[str, str | None] = {}
        """Stored text → password of those decoded last, None where it cannot be decoded."""

    # Reading.

    def decoded_values(self, stored: Mapping[str, str]) -> dict[str, str] | None:
        """Return the settings of a node in plain text, None where `decode` has to come first."""
        passwords = {name: text for name, text in stored.items() if is_password(name)}
        if any(text not in self._plain_texts for text in passwords.values()):
            return None
        plain = dict(stored)
        for name, text in passwords.items():
            password = self._plain_texts[text]
            if password is None:
                del plain[name]  # as in Kafka: the others count
            else:
                plain[name] = password
        return plain

    async def decode(self, stored: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a node in plain text. One that cannot be decoded is left out, and
        the log says so.
        """
        self._plain_texts = await asyncio.to_thread(self._decode, stored, self._plain_texts)
        plain = self.decoded_values(stored)
        assert plain is not None
        return plain

    def decode_then(self, stored: Mapping[str, str], then: Callable[[], None]) -> None:
        """Decode beside the loop, then call `then` on it: `decoded_values` has the settings."""
        loop = asyncio.get_running_loop()
        decoding = loop.run_in_executor(None, self._decode, dict(stored), self._plain_texts)

        def apply(future: asyncio.Future[dict[str, str | None]]) -> None:
            self._plain_texts = future.result()
            then()

        decoding.add_done_callback(apply)

    def _decode(
        self, stored: Mapping[str, str], old_texts: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        """Return stored text → password. Runs beside the loop."""
        plain_texts: dict[str, str | None] = {}
        for name, text in stored.items():
            if not is_password(name):
                continue
            try:
                plain_texts[text] = old_texts.get(text) or self._decode_text(text)
            except ConfigError as error:
                logger.error("%s stands in the tree and is ignored: %s", name, error)
                plain_texts[text] = None
        return plain_texts

    def _decode_text(self, text: str) -> str:
        """Return a password. Raises ConfigError."""
        if self._is_plain and not is_encoded(text):
            return text
        if self._encoder is None:
            raise ConfigError(NO_SECRET)
        return self._encoder.decode(text)

    # Writing.

    async def encode(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the passwords among these settings as they are stored.

        Raises ConfigError: there is no secret, or there are more than a node has room for.
        """
        passwords = {name: text for name, text in values.items() if is_password(name)}
        if not passwords:
            return {}
        if len(passwords) > PASSWORDS_MAX:
            raise ConfigError(
                f"{len(passwords)} passwords in one alteration: expected at most {PASSWORDS_MAX}"
            )
        encoder = self._encoder
        if encoder is None:
            if not self._is_plain:
                raise ConfigError(NO_SECRET)
            return passwords
        return await asyncio.to_thread(_encode, encoder, passwords)

    def note(self, plain: Mapping[str, str], stored: Mapping[str, str]) -> None:
        """Remember what was encoded, so that the settings act at once."""
        self._plain_texts = {
            text: plain.get(name) for name, text in stored.items() if is_password(name)
        }

    async def encode_again(self, stored: Mapping[str, str]) -> dict[str, str]:
        """Return the passwords of a node that the old secret opens, encoded with the new one.
        Raises ConfigError.
        """
        if self._old is None or not any(map(is_password, stored)):
            return {}
        if self._encoder is None:
            raise ConfigError(f"{OLD_SECRET_KEY}: {NO_SECRET}")
        return await asyncio.to_thread(_encode_again, self._old, self._encoder, stored)


def _encode(encoder: PasswordEncoder, passwords: Mapping[str, str]) -> dict[str, str]:
    return {name: encoder.encode(password) for name, password in passwords.items()}


def _encode_again(
    old: PasswordEncoder, new: PasswordEncoder, stored: Mapping[str, str]
) -> dict[str, str]:
    """Return what is to be stored. A password that the old secret does not open has the new one."""
    new_values = {}
    for name, text in stored.items():
        if is_password(name):
            try:
                new_values[name] = new.encode(old.decode(text))
            except ConfigError:
                logger.debug("%s is not encoded with the old secret", name)
    return new_values

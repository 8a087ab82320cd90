"""An edit sees passwords in plain text, and the tree gets them encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.handlers.configs.edits import edit_config
from minibroker.broker.handlers.configs.resources import BROKER, TOPIC
from minibroker.broker.security.password_encoder import is_encoded
from minibroker.broker.security.stored_passwords import StoredPasswords
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from tests.unit.broker.handlers.config_services import make_context

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME, OTHER = "listener.name.a.ssl.key.password", "listener.name.b.ssl.key.password"
SECRET = {"password.encoder.secret": "s"}
ZOOKEEPER = {"zookeeper.connect": "localhost:1"}


class Services:
    """The tree of `make_context`, with passwords."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        services = make_context(settings=dict(settings)).services
        self.cluster, self.dynamic = services.cluster, services.dynamic
        self.cluster.dynamic = DynamicConfig(self.dynamic.static)  # it takes no encoded text
        self.passwords = StoredPasswords(self.dynamic.static)
        self.configs: list[dict[str, str]] = []

    async def give(
        self, values: dict[str, str], *, kind: int = BROKER, name: str = "0", dry: bool = False
    ) -> dict[str, str]:
        """Set these values; return what the tree has then."""

        def edit(current: dict[str, str]) -> dict[str, str]:
            self.configs.append(current)
            return current | values

        services: Any = self
        await edit_config(services, kind, name, edit, values, validate_only=dry)
        entity = ("brokers", name or "<default>") if kind == BROKER else ("topics", name)
        return dict(self.cluster.config_of(*entity))


async def test_an_edit_sees_plain_text_and_what_stays_keeps_its_text() -> None:
    services = Services(SECRET | ZOOKEEPER)
    first = await services.give({NAME: "opens"})
    second = await services.give({OTHER: "too", "background.threads": "9"})
    assert is_encoded(first[NAME])
    assert is_encoded(second[OTHER])
    assert second[NAME] == first[NAME]
    assert services.configs[-1] == {NAME: "opens"}
    again = await services.give({NAME: "opens"})
    assert again == second
    other = await services.give({NAME: "other"})
    assert other[NAME] != second[NAME]
    assert services.passwords.decoded_values(other) == {
        NAME: "other", OTHER: "too", "background.threads": "9"
    }  # fmt: skip


async def test_without_a_secret_only_a_trial_is_taken() -> None:
    services = Services(ZOOKEEPER)
    assert await services.give({NAME: "opens"}, dry=True) == {}
    for name, complaint in (
        ("0", "name='0'): Password encoder secret not configured"),
        ("", "name=''): Password config can be defined only at broker level"),
    ):
        with pytest.raises(KafkaError) as caught:
            await services.give({NAME: "opens"}, name=name)
        assert caught.value.code == ErrorCode.INVALID_CONFIG
        assert str(caught.value.detail).endswith(complaint)
    assert services.cluster.written == []


async def test_an_error_of_the_edit_comes_before_that_of_the_secret() -> None:
    services = Services(ZOOKEEPER)

    def refuse(current: dict[str, str]) -> dict[str, str]:
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    arguments: Any = (services, BROKER, "0", refuse, {NAME: "opens"})
    with pytest.raises(KafkaError) as caught:
        await edit_config(*arguments, validate_only=False)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


async def test_other_resources_have_no_passwords() -> None:
    services = Services(ZOOKEEPER)
    assert await services.give({NAME: "x"}, kind=TOPIC, name="t") == {NAME: "x"}

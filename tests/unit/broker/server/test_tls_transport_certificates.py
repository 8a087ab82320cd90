"""Certificates are replaced while the broker runs, as kafka-configs does it."""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from tests.support.certificates import broker_certificate, client_tls, pem_of, tls_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.support.in_process import InProcessBroker, RawClient

    Serve = Callable[..., Awaitable[InProcessBroker]]

KEY = "listener.name.ssl.ssl.keystore.location"
METADATA = MetadataRequest(topics=[])


def alteration(name: str, value: str) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name=name, config_operation=0, value=value)
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=4, resource_name="0", configs=[change])]
    )


async def alter(client: RawClient, name: str, value: str) -> tuple[int, str | None]:
    answer = (await client.call(alteration(name, value), 1)).responses[0]
    return answer.error_code, answer.error_message


async def trusts(running: InProcessBroker, number: int) -> bool:
    try:
        async with await running.connect(tls=client_tls(number)) as client:
            await client.call(METADATA, 9)
    except ssl.SSLCertVerificationError:
        return False
    return True


@pytest.fixture
def stores(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"{number}.pem" for number in range(2)]
    for number, file in enumerate(files):
        file.write_text(pem_of(broker_certificate(number)))
    return files


def settings_of(store: Path) -> dict[str, str]:
    settings = tls_settings()
    del settings["ssl.keystore.key"], settings["ssl.keystore.certificate.chain"]
    return {**settings, "listener.name.ssl.ssl.keystore.location": str(store)}


async def test_new_clients_get_the_new_certificate_and_others_go_on(
    serve: Serve, stores: list[Path]
) -> None:
    running = await serve(**settings_of(stores[0]))
    async with await running.connect(tls=client_tls(0)) as client:
        assert await alter(client, KEY, str(stores[1])) == (0, None)
        assert await trusts(running, 1)
        assert not await trusts(running, 0)
        await client.call(METADATA, 9)


async def test_a_store_that_cannot_be_read_is_refused(serve: Serve, stores: list[Path]) -> None:
    running = await serve(**settings_of(stores[0]))
    async with await running.connect(tls=client_tls(0)) as client:
        code, message = await alter(client, KEY, "/nowhere")
        assert code == ErrorCode.INVALID_REQUEST
        assert "/nowhere cannot be read" in str(message)
        code, message = await alter(client, "ssl.keystore.location", str(stores[1]))
        assert code == ErrorCode.INVALID_REQUEST
        assert "only per-listener using the listener prefix" in str(message)
    assert await trusts(running, 0)


async def test_a_store_that_is_replaced_in_place_is_read_with_the_next_alteration(
    serve: Serve, stores: list[Path]
) -> None:
    running = await serve(**settings_of(stores[0]))
    async with await running.connect(tls=client_tls(0)) as client:
        stores[0].write_text(stores[1].read_text())
        os.utime(stores[0], ns=(1, 1))
        assert await trusts(running, 0)
        assert await alter(client, KEY, str(stores[0])) == (0, None)
    assert await trusts(running, 1)

"""Alterations of a broker's configuration, by IncrementalAlterConfigs, on any broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Mapping


def alter(
    port: int, values: Mapping[str, str | None], broker: str = "0", *, validate_only: bool = False
) -> tuple[int, str | None]:
    """Return code and message of an alteration; None takes a value away."""
    with WireClient("127.0.0.1", port) as client:
        return alter_by(client, values, broker, validate_only=validate_only)


def alter_by(
    client: WireClient,
    values: Mapping[str, str | None],
    broker: str = "0",
    *,
    validate_only: bool = False,
) -> tuple[int, str | None]:
    """Alter by a connection that is open, as `alter` does."""
    configs = [
        {"name": name, "config_operation": 0 if value is not None else 1, "value": value}
        for name, value in values.items()
    ]
    resource = {"resource_type": 4, "resource_name": broker, "configs": configs}
    answer = client.call(
        "incremental_alter_configs", 1, resources=[resource], validate_only=validate_only
    )
    (result,) = answer["responses"]
    return result["error_code"], result["error_message"]

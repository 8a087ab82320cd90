"""Settings of a topic and of a broker, changed by a new broker's call and by an old broker's."""

from __future__ import annotations

import pytest

from minibroker.client import admin
from minibroker.client.client import Client
from minibroker.client.configs import (
    BROKER,
    TOPIC,
    Resource,
    alter_settings,
    settings_of,
    topic_settings,
)
from minibroker.client.settings import client_settings
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.testing import Broker


def own(client: Client, topic: str) -> dict[str, str | None]:
    settings = topic_settings(client, topic)
    return {setting.name: setting.value for setting in settings if setting.source == 1}


@pytest.mark.parametrize("release", ["4.4", "1.1"])
def test_a_change_keeps_the_other_settings(release: str) -> None:
    """Kafka before 2.3 takes all settings of a resource at once."""
    with Broker(config={"minibroker.advertised.kafka.version": release}) as broker:
        client = Client(client_settings({"bootstrap.servers": broker.bootstrap}))
        configs = {"retention.ms": "1000", "max.message.bytes": "5000"}
        admin.create_topic(client, "t", 1, configs, timeout_s=10)
        topic = Resource(TOPIC, "t")
        changes = {"retention.ms": None, "cleanup.policy": "compact"}
        alter_settings(client, topic, changes, only_checks=True)
        assert own(client, "t") == configs
        alter_settings(client, topic, changes, only_checks=False)
        assert own(client, "t") == {"max.message.bytes": "5000", "cleanup.policy": "compact"}
        with pytest.raises(KafkaError) as refused:
            alter_settings(client, topic, {"retention.ms": "soon"}, only_checks=False)
        assert refused.value.code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)


def test_a_broker_is_asked_about_itself() -> None:
    with Broker() as broker:
        client = Client(client_settings({"bootstrap.servers": broker.bootstrap}))
        node = str(admin.describe(client, ()).controller_id)
        settings = {
            setting.name: setting for setting in settings_of(client, Resource(BROKER, node))
        }
        assert settings["broker.id"].value == node
        assert settings["broker.id"].is_read_only
        alter_settings(client, Resource(BROKER, node), {"log.retention.ms": "9"}, only_checks=False)
        changed = {s.name: s.value for s in settings_of(client, Resource(BROKER, node))}
        assert changed["log.retention.ms"] == "9"
        with pytest.raises(KafkaError, match="broker 77"):
            settings_of(client, Resource(BROKER, "77"))

"""The topics' keys, and the broker keys that give their defaults."""

from __future__ import annotations

from minibroker.broker.config.broker_keys import BROKER_KEYS
from minibroker.broker.config.topic_keys import BROKER_SYNONYMS, SYNONYMS, TOPIC_KEYS


def test_synonyms_name_keys_that_exist() -> None:
    for topic_key, synonyms in SYNONYMS.items():
        assert topic_key in TOPIC_KEYS
        assert all(name in BROKER_KEYS for name, _ in synonyms)
    for name, synonyms_of in BROKER_SYNONYMS.items():
        assert name in synonyms_of
        assert all(synonym in BROKER_KEYS for synonym in synonyms_of)
    without_default = {name for name, key in TOPIC_KEYS.items() if not key.is_hidden} - set(
        SYNONYMS
    )
    assert without_default == {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "remote.storage.enable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    }


def test_units_of_synonyms_lead_to_the_topics_unit() -> None:
    """The factor times the broker key's default is the topic key's default."""
    for name, synonyms in SYNONYMS.items():
        given = [(BROKER_KEYS[key].default, factor) for key, factor in synonyms]
        default, factor = next((text, factor) for text, factor in given if text is not None)
        expected = str(int(default) * factor) if factor > 1 else default
        assert TOPIC_KEYS[name].default == expected, name


def test_keys_that_kafka_4_added_are_hidden() -> None:
    hidden = [name for name, key in TOPIC_KEYS.items() if key.is_hidden]
    assert "remote.copy.lag.ms" in hidden
    assert "retention.ms" not in hidden

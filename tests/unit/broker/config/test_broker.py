"""`BrokerConfig`: values that do not contradict each other, and changes of them."""

from __future__ import annotations

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.kafka.errors import ConfigError


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"node\.id=1 and broker\.id=2"):
        BrokerConfig({"node.id": "1", "broker.id": "2"})
    with pytest.raises(ConfigError, match=r"node\.id=0 and broker\.id=2"):
        BrokerConfig({"node.id": "0"}).with_overrides({"broker.id": "2"})


def test_overrides_make_a_new_config() -> None:
    config = BrokerConfig({"num.partitions": "2"})
    changed = config.with_overrides({"num.partitions": "3", "log.segment.bytes": "2000"})
    assert (config.num_partitions, changed.num_partitions) == (2, 3)
    assert changed.get("log.segment.bytes") == 2000

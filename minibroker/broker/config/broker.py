"""`BrokerConfig`: the broker's settings, each of them right and all of them together.

An instance never changes. What is altered at run time makes a new one (`dynamic.DynamicConfig`);
ask there for the present value of a key that may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.config.checks import check_broker_config
from minibroker.broker.config.listeners import Listener
from minibroker.broker.config.values import BrokerValues

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BrokerConfig", "Listener"]


class BrokerConfig(BrokerValues):
    """The broker's settings. Raises ConfigError when one is wrong or two contradict each other."""

    __slots__ = ()

    def __init__(
        self, originals: Mapping[str, str] | None = None, generated_id: int | None = None
    ) -> None:
        """Take `originals`: key → text as the user gave it. An absent key has its default.
        `generated_id`: the broker's id in place of `broker.id=-1`.
        """
        super().__init__(originals, generated_id)
        check_broker_config(self)

    def with_overrides(self, overrides: Mapping[str, str]) -> BrokerConfig:
        """Return a config in which `overrides` are stronger than what the user gave at start."""
        return BrokerConfig({**self.originals, **overrides}, self.generated_id)

    def with_generated_id(self, broker_id: int) -> BrokerConfig:
        """Return a config of the broker that got this id, because its own was `broker.id=-1`."""
        return BrokerConfig(self.originals, broker_id)

"""minibroker without its quota manager: what the row `quotas` measures the hot path against.

`python -m benchmarks.without_quotas serve …` takes what `python -m minibroker` takes.
"""

import sys
from collections.abc import Mapping

from minibroker.broker import app
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.quotas.connection_rates import ConnectionRates
from minibroker.cli import main
from minibroker.clock import Clock


class NoMutations:
    """The account of a request that nobody charges."""

    throttle_time_ms = 0

    def record(self, partition_count: int) -> None:
        """Count nothing."""


class NoQuotas:
    """The broker's questions to its quotas, always with the same answer: no limit."""

    is_active = False

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self.connection_rates = ConnectionRates(1, 1000)

    def on_config_changed(
        self, entity_type: str, entity_name: str, config: Mapping[str, str]
    ) -> None:
        """No limit is ever set."""

    def mutations(self, client: tuple[str, str], *, is_strict: bool) -> NoMutations:
        return NoMutations()


if __name__ == "__main__":
    app.QuotaManager = NoQuotas  # type: ignore[assignment, misc]
    sys.exit(main())

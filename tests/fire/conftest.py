"""The test of three brokers runs where faults are asked for: `make fire`."""

from __future__ import annotations

from tests.fire.plan import CLUSTER_KILLS

collect_ignore = [] if CLUSTER_KILLS else ["test_three_brokers.py"]

"""The kinds of mixed clusters.

Broker 0 is the controller at the beginning of each situation, broker 1 dies most often. In each
kind broker 1 is not of the controller's kind.
"""

from __future__ import annotations

from typing import Final

ONE_KAFKA_UNDER_MINIBROKER: Final = "one_kafka_under_minibroker"
ONE_KAFKA_CONTROLS: Final = "one_kafka_that_controls"
TWO_KAFKAS_UNDER_MINIBROKER: Final = "two_kafkas_under_minibroker"
TWO_KAFKAS_ONE_CONTROLS: Final = "two_kafkas_of_which_one_controls"

KINDS: Final = {
    ONE_KAFKA_UNDER_MINIBROKER: frozenset({1}),
    ONE_KAFKA_CONTROLS: frozenset({0}),
    TWO_KAFKAS_UNDER_MINIBROKER: frozenset({1, 2}),
    TWO_KAFKAS_ONE_CONTROLS: frozenset({0, 2}),
}
"""Kind → ids of the brokers that are Apache Kafka; the others are minibroker."""

"""All client quotas of the broker: record the use of clients, tell how long they have to wait.

Stands between the limits (`limits.py`, fed from the metadata tree) and the parts that charge: the
connection (bytes produced, time of the loop), Fetch (bytes of its answer) and the APIs that change
topics.

A *sensor* counts the use of all clients with the same tags; it goes after an hour of silence.
While no limit is set anywhere `is_active` is False and nothing is charged.

Source: Kafka ClientQuotaManager, ClientRequestQuotaManager, ControllerMutationQuotaManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.paths import sanitize
from minibroker.broker.quotas.connection_rates import ConnectionRates
from minibroker.broker.quotas.limits import (
    CLIENT_KEYS,
    CONNECTION_RATE,
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    Limits,
    split_entity,
)
from minibroker.broker.quotas.rate import Rate, delay_ms
from minibroker.broker.quotas.token_bucket import TokenBucket, refill_ms
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.java_numbers import parse_double

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.quotas.limits import Tags
    from minibroker.clock import Clock

    class _Connection(Protocol):
        """Fields of `RequestContext` about the last request; key -1 before the first."""

        @property
        def api_key(self) -> int: ...
        @property
        def quota_client(self) -> Client: ...


SILENCE_MS_MAX: Final = 3_600_000
"""A sensor that nobody used for an hour is dropped."""
SWEEP_MS: Final = 60_000
"""Interval of the check for unused sensors, while requests come."""
_CLIENTS_MAX: Final = 10_000
"""Clients are forgotten all at once beyond this, and looked up again."""
_CLIENT_LENGTH_MAX: Final = 512
"""A client whose principal and client id are longer together is looked up each time."""
_NS_TO_PERCENT: Final = 100.0 / 1e9
logger = logging.getLogger(__name__)

Client = tuple[str, str]
"""Principal ("User:name") and client id."""


class _Sensor:
    """Usage of one quota by the clients that share its tags, and their limit now."""

    __slots__ = ("bucket", "last_used_ms", "limit", "rate")

    def __init__(self, limit: float | None, *, is_bucket: bool) -> None:
        self.limit = limit
        self.last_used_ms = 0
        self.rate = None if is_bucket else Rate()
        self.bucket = TokenBucket() if is_bucket else None


class _Quota:
    """One quota key: its limits and its sensors."""

    __slots__ = (
        "_is_bucket",
        "_sensor_of_client",
        "_sensors",
        "_swept_ms",
        "count",
        "limits",
        "window_ms",
    )

    def __init__(self, window_count: int, window_ms: int, *, is_bucket: bool = False) -> None:
        self.limits = Limits()
        self.count = window_count
        self.window_ms = window_ms
        self._is_bucket = is_bucket
        self._sensors: dict[Tags, _Sensor] = {}
        self._sensor_of_client: dict[Client, _Sensor] = {}
        self._swept_ms = 0

    def __len__(self) -> int:
        return len(self._sensors)

    def set(self, user: str | None, client: str | None, limit: float | None) -> None:
        """Change a limit. Clients may then share with others; their use stays counted."""
        if not self.limits.set(user, client, limit):
            return
        self._sensor_of_client.clear()
        if not self.limits:
            self._sensors.clear()
        for tags, sensor in self._sensors.items():
            sensor.limit = self.limits.limit(tags)

    def sensor(self, client: Client, now_ms: int) -> _Sensor:
        """Return the sensor of a client, made if it is new."""
        if now_ms - self._swept_ms >= SWEEP_MS:
            self._sweep(now_ms)
        sensor = self._sensor_of_client.get(client)
        if sensor is None:
            user = client[0].partition(":")[2]
            tags = self.limits.tags(sanitize(user), sanitize(client[1]))
            sensor = self._sensors.get(tags)
            if sensor is None:
                sensor = _Sensor(self.limits.limit(tags), is_bucket=self._is_bucket)
                self._sensors[tags] = sensor
            if len(client[0]) + len(client[1]) <= _CLIENT_LENGTH_MAX:
                if len(self._sensor_of_client) >= _CLIENTS_MAX:
                    self._sensor_of_client.clear()
                self._sensor_of_client[client] = sensor
        sensor.last_used_ms = now_ms
        return sensor

    def _sweep(self, now_ms: int) -> None:
        self._swept_ms = now_ms
        oldest_ms = now_ms - SILENCE_MS_MAX
        silent = [
            tags for tags, sensor in self._sensors.items() if sensor.last_used_ms <= oldest_ms
        ]
        for tags in silent:
            del self._sensors[tags]
        if silent:
            self._sensor_of_client.clear()

    def record(self, client: Client, value: float, now_ms: int) -> int:
        """Count `value`; return the delay in ms that is due now."""
        sensor = self.sensor(client, now_ms)
        rate = sensor.rate
        assert rate is not None
        rate.record(value, now_ms, self.window_ms, self.count)
        if sensor.limit is None:
            return 0
        rate_per_s, span_ms = rate.measure(now_ms, self.window_ms, self.count)
        return delay_ms(rate_per_s, sensor.limit, span_ms)

    def unrecord(self, client: Client, value: float, now_ms: int) -> None:
        """Take back the value that `record` counted."""
        rate = self.sensor(client, now_ms).rate
        assert rate is not None
        rate.record(-value, now_ms, self.window_ms, self.count)


class QuotaManager:
    """One per broker. Times are those of the broker's clock, in ms; delays too."""

    __slots__ = (
        "_clock",
        "_fetch",
        "_is_limited",
        "_mutation",
        "_produce",
        "_quotas",
        "_request",
        "connection_rates",
        "is_active",
    )

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._clock = clock
        count, window_ms = config.quota_window_num, config.quota_window_size_seconds * 1000
        self._produce = _Quota(count, window_ms)
        self._fetch = _Quota(count, window_ms)
        self._request = _Quota(count, window_ms)
        self._mutation = _Quota(
            config.integer("controller.quota.window.num"),
            config.integer("controller.quota.window.size.seconds") * 1000,
            is_bucket=True,
        )
        self._quotas = dict(
            zip(
                CLIENT_KEYS,
                (self._produce, self._fetch, self._request, self._mutation),
                strict=True,
            )
        )
        self.connection_rates = ConnectionRates(count, window_ms)
        self._is_limited: dict[Client, bool] = {}
        self.is_active = False
        """Return whether any client has a limit. Without one nothing is charged."""

    def __len__(self) -> int:
        """Return the number of sensors."""
        return sum(map(len, self._quotas.values()))

    # Limits.

    def on_config_changed(
        self, entity_type: str, entity_name: str, config: Mapping[str, str]
    ) -> None:
        """Apply the values of a node of /config/{users,clients,ips} at once."""
        if entity_type == "ips":
            rate = _number(entity_name, CONNECTION_RATE, config)
            self.connection_rates.set(entity_name, rate)
        elif entity_type in ("users", "clients"):
            user, client = split_entity(entity_type, entity_name)
            for key, quota in self._quotas.items():
                quota.set(user, client, _number(entity_name, key, config))
            self._is_limited.clear()
            self.is_active = any(quota.limits for quota in self._quotas.values())

    def charges(self, connection: _Connection) -> bool:
        """Return whether the next requests of a connection are charged: its client has some limit.

        Goes by the client id of its last request. Before the first one the id is unknown: True.
        """
        if connection.api_key < 0:
            return True
        client = connection.quota_client
        is_limited = self._is_limited.get(client)
        if is_limited is None:
            if len(self._is_limited) >= _CLIENTS_MAX:
                self._is_limited.clear()
            user, client_id = sanitize(client[0].partition(":")[2]), sanitize(client[1])
            is_limited = any(
                quota.limits.limit(quota.limits.tags(user, client_id)) is not None
                for quota in self._quotas.values()
            )
            self._is_limited[client] = is_limited
        return is_limited

    # Use.

    def record_produce(self, client: Client, size_bytes: int) -> int:
        """Count the bytes of a Produce request (header and body); return the delay."""
        if not self._produce.limits:
            return 0
        return self._produce.record(client, size_bytes, self._clock.now_ms())

    def record_fetch(self, client: Client, size_bytes: int) -> int:
        """Count the bytes of a Fetch answer. With a delay they are not counted: send it empty."""
        if not self._fetch.limits:
            return 0
        now_ms = self._clock.now_ms()
        delay = self._fetch.record(client, size_bytes, now_ms)
        if delay:
            self._fetch.unrecord(client, size_bytes, now_ms)
        return delay

    def fetch_bytes_max(self, client: Client) -> int | None:
        """Return the most bytes that one fetch of this client may carry, None for no limit.

        A larger fetch would be delayed for ever.
        """
        if not self._fetch.limits:
            return None
        limit = self._fetch.sensor(client, self._clock.now_ms()).limit
        if limit is None:
            return None
        return int(limit * (self._fetch.count - 1) * self._fetch.window_ms / 1000)

    def record_request_time(self, client: Client, elapsed_ns: int) -> int:
        """Count time that the loop spent on a client; return the delay, at most one window."""
        quota = self._request
        if not quota.limits:
            return 0
        delay = quota.record(client, elapsed_ns * _NS_TO_PERCENT, self._clock.now_ms())
        return min(delay, quota.window_ms)

    def mutations(self, client: Client, *, is_strict: bool) -> Mutations:
        """Return the account for one request that changes topics."""
        quota = self._mutation
        if not quota.limits:
            return Mutations(self._clock, None, 0.0, is_strict=is_strict)
        sensor = quota.sensor(client, self._clock.now_ms())
        seconds = quota.count * quota.window_ms / 1000
        return Mutations(self._clock, sensor, seconds, is_strict=is_strict)


class Mutations:
    """Counts the partitions that one request creates or deletes.

    Strict: once the bucket is empty nothing more is done (THROTTLING_QUOTA_EXCEEDED), but the
    client does not wait for the changes that were made. Permissive, for versions that do not know
    the error: all is done, and the client waits.
    """

    __slots__ = ("_clock", "_delay_ms", "_is_strict", "_recorded_ms", "_seconds", "_sensor")

    def __init__(
        self, clock: Clock, sensor: _Sensor | None, seconds: float, *, is_strict: bool
    ) -> None:
        self._clock = clock
        self._sensor = sensor
        self._seconds = seconds
        self._is_strict = is_strict
        self._delay_ms = 0
        self._recorded_ms = 0

    def record(self, partition_count: int) -> None:
        """Count before the change is made. Raises KafkaError: it may not be made now."""
        sensor = self._sensor
        if sensor is None or sensor.limit is None or sensor.bucket is None:
            return
        now_ms = self._clock.now_ms()
        limit, burst = sensor.limit, sensor.limit * self._seconds
        if self._is_strict:
            tokens_left = sensor.bucket.tokens(now_ms, limit, burst)
            if tokens_left >= 0:
                sensor.bucket.take(partition_count, now_ms, limit, burst)
        else:
            tokens_left = sensor.bucket.take(partition_count, now_ms, limit, burst)
        if tokens_left >= 0:
            return
        self._delay_ms, self._recorded_ms = refill_ms(tokens_left, limit), now_ms
        if self._is_strict:
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded."
            )

    @property
    def throttle_time_ms(self) -> int:
        """Return the delay that is still left, 0 if all was within the quota."""
        return max(0, self._delay_ms - (self._clock.now_ms() - self._recorded_ms))


def _number(entity_name: str, key: str, config: Mapping[str, str]) -> float | None:
    text = config.get(key)
    if text is None:
        return None
    try:
        return parse_double(text)
    except ValueError:
        logger.error("quota %s=%s of %s is ignored: expected a number", key, text, entity_name)
        return None


__all__ = ["FETCH", "MUTATION", "PRODUCE", "REQUEST", "Client", "Mutations", "QuotaManager"]

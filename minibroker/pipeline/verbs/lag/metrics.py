"""The lag of readers for Prometheus, served on this machine with prometheus-client.

The names are those that kafka_exporter has made usual, so that dashboards fit. A scrape gets the
last look: it asks the brokers nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily

from minibroker.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.registry import Collector

    from minibroker.pipeline.verbs.lag.text import Look

_LABELS: Final = ("consumergroup", "topic", "partition")


class LagMetrics:
    """The last look, as families of metrics."""

    def __init__(self) -> None:
        self.look: Look | None = None
        """None while the brokers do not answer. Set by the watch, read by scrapes."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the families."""
        look = self.look
        yield GaugeMetricFamily(
            "kafka_consumergroup_up", "1 if the last look was answered", float(look is not None)
        )
        if look is None:
            return
        lag = _family("lag", "Offsets between a reader's position and the end of the partition")
        position = _family("current_offset", "The next offset that a reader reads")
        oldest = _family("oldest_unread_seconds", "Age of the oldest record that it has not read")
        end = GaugeMetricFamily(
            "kafka_topic_partition_current_offset",
            "The offset behind the last record of a partition",
            labels=_LABELS[1:],
        )
        ends: dict[tuple[str, str], int] = {}
        for reader in look.readers:
            for part in reader.partitions:
                labels = (reader.name, part.topic, str(part.partition))
                lag.add_metric(labels, part.lag)
                position.add_metric(labels, part.offset)
                if part in look.oldest_ms:
                    age_ms = max(0, look.at_ms - look.oldest_ms[part])
                    oldest.add_metric(labels, age_ms / 1000)
                ends[labels[1], labels[2]] = part.end
        for place, offset in ends.items():
            end.add_metric(place, offset)
        yield from (lag, position, oldest, end)


def serve(metrics: Collector, address: str) -> str:
    """Serve the metrics in a thread and return their URL. Raises PipelineError."""
    host, _, port = address.rpartition(":")
    registry = CollectorRegistry()
    registry.register(metrics)
    try:
        server, _ = start_http_server(int(port), host.strip("[]"), registry)
    except OSError as error:
        raise PipelineError(
            f"metrics cannot be served at {address}: {error.strerror or error}; choose another port"
        ) from error
    return f"http://{host}:{server.server_port}/metrics"


def _family(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kafka_consumergroup_{name}", text, labels=_LABELS)

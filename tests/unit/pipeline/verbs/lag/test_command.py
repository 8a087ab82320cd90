"""A watch of lag: the line that is shown, and the metrics beside it."""

from __future__ import annotations

import socket
import urllib.request
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.reader_lag import PartitionLag, ReaderLag
from minibroker.pipeline.verbs.lag import command as lag
from minibroker.pipeline.verbs.lag.metrics import LagMetrics, serve
from minibroker.pipeline.verbs.lag.text import Look


class Metrics:
    """The metrics that a scrape gets."""

    look: Look | None = Look(1, (), {})


class Watch:
    """Looks that are answered, or not."""

    def __init__(self, *answers: Look | PipelineError) -> None:
        self._answers = list(answers)

    def look(self) -> Look:
        answer = self._answers.pop(0)
        if isinstance(answer, PipelineError):
            raise answer
        return answer


def test_the_metrics_are_new_before_the_line_is_shown() -> None:
    """A reader of the line that scrapes at once finds the same numbers."""
    metrics, events = Metrics(), list[Any]()

    class View:
        def show(self, look: Look) -> None:
            events.append((look, metrics.look))

        def tell(self, sentence: str) -> None:
            events.append((sentence, metrics.look))

    second = Look(2, (), {})
    watch = Watch(second, PipelineError("no broker answers"))
    for _ in range(2):
        lag._next(cast("Any", watch), cast("Any", View()), cast("LagMetrics", metrics))
    assert events == [(second, second), ("no broker answers", None)]


def test_a_page_that_cannot_be_written_is_told_and_the_watch_goes_on() -> None:
    lines, metrics = list[Any](), Metrics()

    class View:
        def show(self, look: Look) -> None:
            lines.append(look)

        def tell(self, sentence: str) -> None:
            lines.append(sentence)

    class Report:
        def write(self, look: Look) -> None:
            raise PipelineError("lag.html cannot be written")

    second = Look(2, (), {})
    watch, view = cast("Any", Watch(second)), cast("Any", View())
    assert lag._next(watch, view, cast("LagMetrics", metrics), cast("Any", Report())) == second
    assert (lines, metrics.look) == ([second, "lag.html cannot be written"], second)


LABELS = ("consumergroup", "topic", "partition")


def scraped(url: str) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    return {
        (
            sample.name,
            *(sample.labels[name] for name in LABELS if name in sample.labels),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_has_the_last_look() -> None:
    metrics = LagMetrics()
    url = serve(metrics, "127.0.0.1:0")
    assert scraped(url) == {("kafka_consumergroup_up",): 0}
    part = PartitionLag("orders", 2, 40, 100)
    metrics.look = Look(5000, [ReaderLag('a"b', "stable", (part,))], {part: 2000})
    assert scraped(url) == {
        ("kafka_consumergroup_up",): 1,
        ("kafka_consumergroup_lag", 'a"b', "orders", "2"): 60,
        ("kafka_consumergroup_current_offset", 'a"b', "orders", "2"): 40,
        ("kafka_consumergroup_oldest_unread_seconds", 'a"b', "orders", "2"): 3,
        ("kafka_topic_partition_current_offset", "orders", "2"): 100,
    }


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        with pytest.raises(PipelineError, match=f"cannot be served at 127.0.0.1:{port}: .* choose"):
            serve(LagMetrics(), f"127.0.0.1:{port}")

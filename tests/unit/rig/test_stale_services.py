"""Metadata that do not change any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from minibroker.broker.cluster.image import MetadataImage, TopicImage
from minibroker.kafka.ids import TopicId
from minibroker.rig.stale_services import StaleServices


def test_the_image_stays_and_all_else_is_the_brokers() -> None:
    image = MetadataImage()
    image.controller_id = 1
    old = image.topics["t"] = TopicImage("t", TopicId(b"1" * 16), [])
    cluster = SimpleNamespace(image=image, broker_id=5)
    services: Any = SimpleNamespace(cluster=cluster, clock="the clock")
    stale = StaleServices(services)
    image.controller_id = 2
    image.topics["t"] = TopicImage("t", TopicId(b"2" * 16), [])
    image.topics["u"] = TopicImage("u", TopicId(b"3" * 16), [])
    request: Any = SimpleNamespace(services=services, version=3)
    context = stale.context_of(request)
    assert context.version == 3
    assert context.services.clock == "the clock"  # type: ignore[comparison-overlap]
    assert context.services.cluster.broker_id == 5
    assert context.services.cluster.image.controller_id == 1
    assert context.services.cluster.image.topics == {"t": old}
    assert request.services.cluster.image is image

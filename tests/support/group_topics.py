"""Topics as the coordinator of groups sees them, without a cluster."""

from __future__ import annotations

from minibroker.broker.cluster.image import MetadataImage, TopicImage
from minibroker.broker.groups.consumer.topics import ImageTopics
from minibroker.kafka.ids import TopicId
from tests.support.images import partition_image

ID = TopicId(bytes.fromhex("00112233445566778899aabbccddeeff"))


def topic(count: int = 1, name: str = "t") -> TopicImage:
    """Return a topic of `count` partitions, all on broker 0, with the id `ID`."""
    return TopicImage(name, ID, [partition_image()] * count)


def topics_of(image: MetadataImage, now_ms: int = 1000) -> ImageTopics:
    """Return the coordinator's view of `image` at a fixed time."""
    return ImageTopics(lambda: image, lambda: now_ms)


def image_with(only: TopicImage) -> MetadataImage:
    """Return an image with that topic alone."""
    image = MetadataImage()
    image.topics[only.name] = image.topic_by_id[only.topic_id] = only
    return image

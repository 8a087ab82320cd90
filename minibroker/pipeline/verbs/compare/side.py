"""A side of `compare`, named in one word:

| word                | is                                                              |
|---------------------|-----------------------------------------------------------------|
| `orders`            | a topic of the job's cluster                                    |
| `orders@host:9092`  | a topic of the cluster there                                    |
| `./lake/orders`     | an archive, a directory: the word has a `/`, which no topic has |
| `./lake/all#orders` | one topic of an archive that has several                        |
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minibroker.cli.kinds import addresses, check_topic, is_path
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.options.kinds import DirectoryOrTopic


class Side(NamedTuple):
    """A topic of a cluster, or an archive."""

    name: str
    """The word that the user gave."""
    kafka: Kafka
    topic: str | None = None
    """None for an archive of one topic."""
    archive: str | None = None
    """Directory or URL, None for a topic of a cluster."""

    @property
    def label(self) -> str:
        """Return the side for a person, with its cluster."""
        if self.archive or "@" in self.name:
            return self.name
        return f"{self.name}@{self.kafka.bootstrap}"


def side_of(word: str, kafka: Kafka) -> Side:
    """Return the side that a word names.

    Args:
        word: see above.
        kafka: the cluster, unless the word says where it is.

    Raises JobUsageError.
    """
    directory, _, topic = word.partition("#")
    if is_path(directory):
        return Side(word, kafka, check_topic(topic) if topic else None, directory)
    topic, at, address = word.partition("@")
    if at:
        kafka = kafka._replace(bootstrap=addresses(address))
    return Side(word, kafka, check_topic(topic))


def check_word(word: str) -> str:
    """Return `word` if it names a side. Raises JobUsageError."""
    side_of(word, Kafka())
    return word


SIDE: Final = DirectoryOrTopic("TOPIC[@HOST:PORT]|DIR[#TOPIC]", check_word)

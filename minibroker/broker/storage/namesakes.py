"""Logs of two topics with one name, in two log directories.

A directory was offline while a topic was deleted and made again. When it is back, a start finds the
old log in it and the new one elsewhere. Their ids differ, and the metadata, which come later, say
which of them is the topic's. Until then one is open and the other one waits here. What turns out to
be of another topic is marked as stray and kept.

Source: Kafka 4 LogManager.loadLog, isStrayReplica; Kafka 3.9 refuses to start.
"""

import logging
from typing import NamedTuple

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.partition_metadata import read_metadata
from minibroker.broker.storage.recovery import Checkpointed
from minibroker.kafka.errors import CorruptionError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition

logger = logging.getLogger(__name__)


class Namesake(NamedTuple):
    """A log that is not open."""

    directory: str
    topic_id: TopicId
    checkpointed: Checkpointed


class Namesakes:
    """Those of a log manager; for the loop's thread."""

    __slots__ = ("_files", "_waiting")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._waiting: dict[TopicPartition, list[Namesake]] = {}

    def add(
        self,
        name: TopicPartition,
        directory: str,
        known_id: TopicId,
        checkpointed: Checkpointed,
    ) -> bool:
        """Keep a second log of this name; False where it does not tell that its topic is another
        one than `known_id`. Raises StorageError.
        """
        try:
            topic_id = read_metadata(self._files, directory)
        except (OSError, CorruptionError) as error:
            log_directory = directory.rpartition("/")[0]
            raise StorageError(
                f"cannot read the topic id of {directory}: {error}", log_directory=log_directory
            ) from error
        if topic_id is None or known_id in (topic_id, ZERO_TOPIC_ID):
            return False
        logger.warning("%s is one of two logs of %s: the metadata decide", directory, name)
        found = Namesake(directory, topic_id, checkpointed)
        self._waiting.setdefault(name, []).append(found)
        return True

    def take(self, name: TopicPartition, topic_id: TopicId) -> Namesake | None:
        """Return the log of this name that belongs to the topic, if it waits here. Others become
        stray.

        Nothing is decided while the topic has no id. Raises StorageError.
        """
        if topic_id == ZERO_TOPIC_ID:
            return None
        taken = None
        for found in self._waiting.pop(name, ()):
            if found.topic_id == topic_id:
                taken = found
            else:
                self._mark_stray(name, found.directory)
        return taken

    def _mark_stray(self, name: TopicPartition, directory: str) -> None:
        parent = directory.rpartition("/")[0]
        marked = names.marked_directory(name.topic, name.partition, names.STRAY_DIRECTORY)
        try:
            self._files.replace(directory, f"{parent}/{marked}")
        except OSError as error:
            raise StorageError(
                f"cannot rename {directory}: {error}", log_directory=parent
            ) from error
        warn_of_stray(directory, f"{parent}/{marked}")


def warn_of_stray(directory: str, marked: str) -> None:
    """Say that a log makes room and where it is kept."""
    logger.warning(
        "%s is of another topic with this name, which was deleted; it is kept as %s: remove it if "
        "nobody needs it",
        directory,
        marked,
    )

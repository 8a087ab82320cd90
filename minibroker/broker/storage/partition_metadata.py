"""`partition.metadata`: which topic id a partition's directory belongs to.

    version: 0
    topic_id: 6zbmYr0rQ7yuDqOFXLTN3A

Written once, when the directory is made. A topic deleted and created again under its old name has a
new id: the directory of the old one is then told apart by this file.

All partitions of a topic have the same one, so it is written and synced once per log directory, and
the others link it: an fsync takes milliseconds, and a topic may have thousands of partitions. Such
a file is replaced, by Kafka too; nobody writes into it.

Source: Kafka PartitionMetadataFile, PartitionMetadata; FORMAT.md section 5.
"""

from __future__ import annotations

from minibroker.broker.storage import names
from minibroker.broker.storage.files import Files
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, topic_id_from_text, topic_id_to_text


def encode_metadata(topic_id: bytes) -> bytes:
    """Return the file's bytes, ASCII; no newline ends the second line."""
    return f"version: 0\ntopic_id: {topic_id_to_text(topic_id)}".encode("ascii")


def read_metadata(files: Files, directory: str) -> TopicId | None:
    """Return the topic id in the directory's file, None where there is no file (Kafka before 2.8).

    Raises CorruptionError where the file says something else, OSError.
    """
    path = f"{directory}/{names.PARTITION_METADATA}"
    try:
        text = files.read_all(path).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    if fields.get("version") != "0":
        raise CorruptionError(f"{path}: version {fields.get('version')!r}, expected '0'")
    try:
        topic_id = topic_id_from_text(fields.get("topic_id", ""))
    except ValueError as error:
        raise CorruptionError(f"{path}: {error}") from error
    if topic_id == ZERO_TOPIC_ID:
        raise CorruptionError(f"{path}: the topic id is zero")
    return topic_id


class SharedMetadata:
    """Reads the files that a start finds, each file once, whatever number of partitions links it.

    Only for while the logs are loaded, when nobody writes or removes such a file.
    """

    __slots__ = ("_files", "_id_by_file")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._id_by_file: dict[tuple[int, ...], TopicId] = {}

    def read(self, directory: str) -> TopicId | None:
        """Return the topic id of a partition's directory, None where no other partition has its
        file, or where nothing can be read: `PartitionDirectory.topic_id` reads it and says so.
        """
        try:
            file = self._files.shared_file(f"{directory}/{names.PARTITION_METADATA}")
            if file is None:
                return None
            topic_id = self._id_by_file.get(file)
            if topic_id is None:
                topic_id = read_metadata(self._files, directory)
        except (OSError, CorruptionError):
            return None
        if topic_id is not None:
            self._id_by_file[file] = topic_id
        return topic_id


class MetadataWriter:
    """Writes the files of new partitions. For one thread at a time."""

    __slots__ = ("_files", "_newest")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._newest: dict[str, tuple[TopicId, str]] = {}
        """Log directory → the topic of the file that was written there last, and its path."""

    def write(self, directory: str, topic_id: TopicId) -> None:
        """Make the file in a partition's directory; its content is durable then, and its name when
        the directory is synced the next time. Raises OSError.
        """
        log_directory = directory.rpartition("/")[0]
        path = f"{directory}/{names.PARTITION_METADATA}"
        known_id, known_path = self._newest.get(log_directory, (None, ""))
        if known_id == topic_id and self._is_linked(known_path, path):
            return
        self._files.write_atomically(path, encode_metadata(topic_id))
        self._newest[log_directory] = topic_id, path

    def _is_linked(self, known_path: str, path: str) -> bool:
        """False where that file is gone, or where the file system takes no link, or no more."""
        try:
            self._files.link(known_path, path)
        except OSError:
            return False
        return True

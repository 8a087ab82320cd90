"""`partition.metadata`: which topic id a partition's directory belongs to.

    version: 0
    topic_id: 6zbmYr0rQ7yuDqOFXLTN3A

Written once, when the directory is made. A topic deleted and created again under its old name has a
new id: the directory of the old one is then told apart by this file.

Source: Kafka PartitionMetadataFile, PartitionMetadata; FORMAT.md section 5.
"""

from minibroker.errors import CorruptionError
from minibroker.ids import ZERO_TOPIC_ID, TopicId, topic_id_from_text, topic_id_to_text
from minibroker.storage import names
from minibroker.storage.files import Files


def encode_metadata(topic_id: bytes) -> bytes:
    """The file's bytes, ASCII; no newline ends the second line."""
    return f"version: 0\ntopic_id: {topic_id_to_text(topic_id)}".encode("ascii")


def read_metadata(files: Files, directory: str) -> TopicId | None:
    """The topic id in the directory's file, None where there is no file (Kafka before 2.8).

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


def write_metadata(files: Files, directory: str, topic_id: bytes) -> None:
    """Replace the file atomically and durably. Raises OSError."""
    files.write_atomically(f"{directory}/{names.PARTITION_METADATA}", encode_metadata(topic_id))

"""The directory of one partition: where it is, whose it is, whether its log is in service, and
whether the names in it are durable.

A log (`partition_log`) has one. Work beside the loop (`tasks`) gets it, not the log: it sees here
whether the log is still the one that it was begun for.

Source: Kafka LocalLog (dir, parentDir, renameDir), UnifiedLog (partitionMetadataFile).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from minibroker.broker.storage import names
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.partition_metadata import read_metadata
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, HalfChangedError, KafkaError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition, may_be_same_topic


class PartitionDirectory:
    """One partition's directory. The loop sets its fields, except where they say otherwise."""

    __slots__ = (
        "_disk",
        "_has_new_id",
        "_topic_id",
        "epochs_content",
        "generation",
        "has_new_directory",
        "is_deleted",
        "name",
        "names_changed",
        "names_synced",
        "path",
    )

    def __init__(
        self,
        disk: Disk,
        name: TopicPartition,
        path: str,
        topic_id: TopicId | None,
        *,
        has_new_names: bool,
    ) -> None:
        """`topic_id`: as the property; None: not read yet. `has_new_names`: names in the directory
        may not be durable yet.
        """
        self._disk = disk  # constant after construction, as `name`
        self.name = name
        self.path = path
        """Set by the loop before it renames the directory, read by workers."""
        self.is_deleted = False
        """Is it out of service? Set by the loop, under `names_lock` where its directory is about to
        be renamed; read by workers."""
        self.generation = 0
        """Number of truncations of the log. Work beside the loop remembers it; a result of an older
        one is dropped. Read by workers."""
        self.epochs_content: bytes | None = None
        """Content that `leader-epoch-checkpoint` has to get, None if the file has it already. A
        worker takes it (`tasks.EpochsTask`)."""
        self.names_changed = int(has_new_names)
        """How often names in the directory changed."""
        self.names_synced = 0
        """Up to which of those changes they are durable. Read by workers."""
        self.has_new_directory = has_new_names
        """May the directory's own name not be durable yet? Read by workers."""
        self._topic_id = topic_id
        self._has_new_id = False
        """May the task that writes the topic id not be handed to the worker yet?"""

    @property
    def log_directory(self) -> str:
        """Return the one of `log.dirs` that it is in."""
        return self.path.rpartition("/")[0] or "/"

    @property
    def files(self) -> Files:
        return self._disk.files

    @property
    def names_lock(self) -> Lock:
        """Held while names in the directory are made or taken away (`Disk.names_lock`)."""
        return self._disk.names_lock

    @property
    def epochs_lock(self) -> Lock:
        """Held by a worker while it writes the epochs."""
        return self._disk.epochs_lock

    @property
    def epochs_path(self) -> str:
        return f"{self.path}/{names.LEADER_EPOCHS}"

    def failed(
        self, action: str, error: Exception, kind: type[StorageError] = StorageError
    ) -> StorageError:
        """Return the error for people: `action` cannot be done to the partition.

        Whether the directory goes offline hangs on its cause (`StorageError.is_lasting`).
        """
        return kind(
            f"cannot {action} {self.name} in {self.path}: {error}",
            log_directory=self.log_directory,
            cause=error,
        )

    @contextmanager
    def whole_change(self, action: str) -> Iterator[None]:
        """Do a change of many steps in this block, all of it. `action` names it for people.

        Raises HalfChangedError where anything went wrong in between, whatever it was: some steps
        are done and others are not. The directory goes offline, and the next start recovers it.
        """
        try:
            yield
        except HalfChangedError:
            raise
        except Exception as error:
            raise self.failed(action, error, HalfChangedError) from error

    @property
    def topic_id(self) -> TopicId:
        """Return the id in `partition.metadata`, sixteen zero bytes where there is none. Raises
        StorageError.
        """
        if self._topic_id is None:
            try:
                self._topic_id = read_metadata(self._disk.files, self.path) or ZERO_TOPIC_ID
            except (OSError, CorruptionError) as error:
                raise self.failed("read partition.metadata of", error) from error
        return self._topic_id

    def is_of_topic(self, topic_id: TopicId) -> bool:
        """Return whether the directory has this id, as far as that is known without reading."""
        return self._topic_id == topic_id

    def is_of_other_topic(self, topic_id: TopicId) -> bool:
        """Return whether the directory belongs to another topic of the same name. Raises
        StorageError.

        A directory without an id (Kafka before 2.8) may be any topic's.
        """
        return not may_be_same_topic(topic_id, self.topic_id)

    def assign_topic_id(self, topic_id: TopicId) -> None:
        """Give the directory its topic's id. Raises KafkaError(INCONSISTENT_TOPIC_ID),
        StorageError.

        The worker writes the file a moment later, before the log has files: an id that a crash
        takes is assigned again at the next start.
        """
        if topic_id == ZERO_TOPIC_ID:
            return
        present_id = self.topic_id
        if present_id == topic_id:
            return
        if present_id != ZERO_TOPIC_ID:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self.path} belongs to topic id {present_id.hex()}, not to {topic_id.hex()}",
            )
        self._topic_id = topic_id
        self._has_new_id = True
        self._disk.gathered.add(self._write_topic_id)

    def _write_topic_id(self) -> None:
        """Write the topic id, on the worker. Raises StorageError."""
        if self._topic_id is None or self.is_deleted:
            return
        try:
            self._disk.metadata.write(self.path, self._topic_id)
        except OSError as error:
            if not self.is_deleted:
                raise self.failed("write partition.metadata of", error) from error

    def note_names_changed(self) -> None:
        """Note that the directory has to be synced: a file is new or renamed, or is about to be."""
        self.names_changed += 1
        if self._has_new_id:
            self._has_new_id = False
            self._disk.gathered.hand_over()

    def note_names_synced(self, names_changed: int | None) -> None:
        """Note that the directory's own name is durable, and those in it up to this change of
        `names_changed` (None: not looked at).
        """
        self.has_new_directory = False
        if names_changed is not None:
            self.names_synced = max(self.names_synced, names_changed)

    def rename(self, path: str, abandon: Callable[[], None]) -> None:
        """Take the log out of service by `abandon`, then rename the directory. Raises StorageError:
        it has its name then, and the log is out of service. Raises HalfChangedError.
        """
        with self.whole_change("delete"), self.names_lock:
            abandon()
        # Before the rename: a worker that finds no directory any more sees why.
        old, self.path = self.path, path
        try:
            self._disk.files.replace(old, path)
        except OSError as error:
            self.path = old
            raise self.failed("delete", error) from error

    def take_back(self, path: str) -> None:
        """Put the log back in service at `path`, where it was before `rename`, whether that could
        rename or not. Raises StorageError.
        """
        try:
            if self.path != path:
                self._disk.files.replace(self.path, path)
        except OSError as error:
            raise self.failed("take back", error) from error
        self.path = path
        self.is_deleted = False

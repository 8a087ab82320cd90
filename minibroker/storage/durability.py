"""The durable part of a log: the recovery point, names in the directory, when to sync next.

An append is in the page cache when it is answered; an fsync on a worker makes it durable later.
The log gives out a task for that (`PartitionLog.flush_task`). The task changes nothing here: the
worker runs it, then the loop calls its `apply`, which moves the recovery point.

Everything below `recovery_point` is durable. After a crash `recovery` trusts it.

Source: Kafka LocalLog.markFlushed.
"""

from typing import Final

SYNC_BYTES: Final = 64 << 20
"""A log with so many new bytes is synced at once. An fsync of as many takes some 25 ms, the CRCs of
a start 10 ms."""


class Durability:
    """The durable part of one log.

    All fields belong to the loop; a `FlushTask` on a worker reads names' counts.
    """

    __slots__ = (
        "_sync_above",
        "has_new_directory",
        "last_flush_ms",
        "names_changed",
        "names_synced",
        "recovery_point",
    )

    def __init__(self, recovery_point: int, now_ms: int, *, has_new_names: bool) -> None:
        """`has_new_names`: names in the directory may not be durable yet."""
        self.recovery_point = recovery_point
        self.last_flush_ms = now_ms
        """When the recovery point moved last, at first when the log was opened."""
        self.names_changed = int(has_new_names)
        """How often names in the directory changed."""
        self.names_synced = 0
        """Up to which of those changes they are durable."""
        self.has_new_directory = has_new_names
        """May the directory's own name not be durable yet?"""
        self._sync_above = 0
        # Appends that reach beyond this position of the active `.log` ask for a sync: the first
        # one after a sync, then every `SYNC_BYTES`.

    def note_names_changed(self) -> None:
        """Note that the directory has to be synced: a file is new or renamed, or is about to be."""
        self.names_changed += 1

    def note_names_synced(self, names_changed: int | None) -> None:
        """Note that the directory's own name is durable, and those in it up to this change of
        `names_changed` (None: not looked at).
        """
        self.has_new_directory = False
        if names_changed is not None:
            self.names_synced = max(self.names_synced, names_changed)

    def note_flushed(self, offset: int, now_ms: int) -> None:
        """Move the recovery point: everything below `offset` is durable."""
        if offset > self.recovery_point:
            self.recovery_point = offset
            self.last_flush_ms = now_ms

    def note_truncated(self, end_offset: int) -> None:
        """Note that the log ends at `end_offset` now, where nothing is behind."""
        self.recovery_point = min(self.recovery_point, end_offset)

    def note_log_start(self, offset: int) -> None:
        """Note that nobody reads below `offset` any more: that part need not be durable."""
        self.recovery_point = max(self.recovery_point, offset)

    # --- when to sync -----------------------------------------------------------------------------

    def note_sync(self) -> None:
        """Note that a sync of the whole log begins: the next append asks for another one."""
        self._sync_above = 0

    def note_roll(self) -> None:
        """Positions count from the start of a new `.log` now."""
        self._sync_above = min(self._sync_above, SYNC_BYTES)

    def wants_sync(self, position: int) -> bool:
        """Return whether a sync is to be asked for, as the active `.log` has grown to `position`
        (bytes).
        """
        return position > self._sync_above

    def ask_for_sync(self, position: int) -> bool:
        """Note that a sync is asked for at `position`. Return whether `SYNC_BYTES` came since the
        last one was.
        """
        has_grown_much = self._sync_above > 0
        self._sync_above = position + SYNC_BYTES
        return has_grown_much

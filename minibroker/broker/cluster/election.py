"""The election of the controller: the broker that holds the ephemeral node /controller.

As in Kafka the first broker that makes the node is the controller, until its session ends, whatever
brokers are registered. Kafka's brokers and minibrokers elect each other.

Winning is one transaction: create /controller and raise /controller_epoch, provided no other broker
did. Every later write in the controller's name carries a check of the epoch's version (`guard`), so
that a deposed controller cannot write any more.

Source: Kafka's KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import (
    FEATURE_NODE,
    decode_controller,
    decode_controller_epoch,
    encode_controller,
)
from minibroker.broker.cluster.image import NO_CONTROLLER
from minibroker.broker.cluster.tree import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Set,
    ensure_node,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.tree import Operation


class Election:
    """This broker's part in the election."""

    def __init__(self, context: ClusterContext) -> None:
        self._context = context  # constant after construction
        # Changed under the cluster's lock; by `lose` at any time, when the session is over.
        self.is_controller = False
        self.epoch = 0
        self._epoch_version = -1
        self.listeners: list[Callable[[bool], None]] = []
        """Told whether this broker is the controller, when that changes. Constant after the
        start."""

    async def run(self) -> bool:
        """Become the controller if there is none; return whether this broker became it now.

        Afterwards the image names the controller, whichever broker it is.
        """
        tree = self._context.tree
        while True:
            current = await self._read_controller()
            if current is not None:
                broker_id, owner = current
                mine = broker_id == self._context.broker_id and owner == tree.session_id
                if mine and not self.is_controller:
                    await tree.delete(paths.CONTROLLER)  # won, but the answer was lost
                    continue
                if self.is_controller and not mine:
                    self.lose()
                self._context.updater.apply_controller(broker_id, await self._read_epoch())
                return False
            if await self._try_to_win():
                self._note_victory()
                return True

    def _note_victory(self) -> None:
        self._context.updater.apply_controller(self._context.broker_id, self.epoch)
        for tell in self.listeners:
            tell(True)

    async def take_over(self) -> bool:
        """Become the controller in place of the broker that is; return whether this broker became
        it now.

        Raises KafkaError(NOT_CONTROLLER) if another broker was faster.
        """
        if self.is_controller:
            return False
        is_there = await self._context.tree.exists(paths.CONTROLLER) is not None
        operations_before: list[Operation] = [Delete(paths.CONTROLLER)] if is_there else []
        if not await self._try_to_win(operations_before):
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER,
                f"broker {self._context.broker_id} cannot become the controller now",
            )
        self._note_victory()
        return True

    async def resign(self) -> None:
        """Give up the node, as a clean stop does, unless it is another broker's by now.

        Source: Kafka KafkaZkClient.deleteController.
        """
        if not self.is_controller:
            return
        guard = self.guard()
        self.lose()
        with suppress(NoNode, BadVersion):
            await self._context.tree.multi([*guard, Delete(paths.CONTROLLER)])

    def lose(self) -> None:
        """Stop writing as the controller: the session ended, or another broker won."""
        was_controller, self.is_controller = self.is_controller, False
        self._epoch_version = -1
        if was_controller:
            for tell in self.listeners:
                tell(False)
        image = self._context.updater.image
        if image.controller_id == self._context.broker_id:
            self._context.updater.apply_controller(NO_CONTROLLER, image.controller_epoch)

    def guard(self) -> list[Operation]:
        """Return the first operations of every `multi` that the controller sends.

        Raises KafkaError NOT_CONTROLLER if this broker is not the controller any more: it may have
        lost its session while a request waited for the cluster's lock, or for the tree.
        """
        if not self._context.tree.is_shared:
            return []
        if not self.is_controller:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        return [Check(paths.CONTROLLER_EPOCH, self._epoch_version)]

    async def _try_to_win(self, operations_before: Sequence[Operation] = ()) -> bool:
        """Try to create the node behind `operations_before`, in a transaction; return whether it is
        ours.
        """
        tree = self._context.tree
        await ensure_node(tree, paths.CONTROLLER_EPOCH, b"0")
        data, stat = await tree.get(paths.CONTROLLER_EPOCH)
        epoch = decode_controller_epoch(paths.CONTROLLER_EPOCH, data) + 1
        value = encode_controller(self._context.broker_id, self._context.clock.now_ms())
        try:
            results = await tree.multi(
                [
                    *operations_before,
                    Create(paths.CONTROLLER, value, ephemeral=True),
                    Set(paths.CONTROLLER_EPOCH, str(epoch).encode("ascii"), stat.version),
                ]
            )
        except (NodeExists, BadVersion, NoNode):
            return False
        # If this fails the election is won again: only the winner does the work of a new
        # controller.
        await ensure_node(tree, paths.FEATURE, FEATURE_NODE)
        self.is_controller = True
        self.epoch = epoch
        self._epoch_version = int(results[-1])
        self._context.log.info(
            "broker %d became controller, epoch %d", self._context.broker_id, epoch
        )
        return True

    async def _read_controller(self) -> tuple[int, int] | None:
        try:
            data, stat = await self._context.tree.get(paths.CONTROLLER)
        except NoNode:
            return None
        return decode_controller(paths.CONTROLLER, data), stat.ephemeral_owner

    async def _read_epoch(self) -> int:
        try:
            data, _ = await self._context.tree.get(paths.CONTROLLER_EPOCH)
        except NoNode:
            return 0
        return decode_controller_epoch(paths.CONTROLLER_EPOCH, data)

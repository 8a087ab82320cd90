"""Row `start`: from spawning the process to its first Metadata answer over a raw socket."""

import tempfile
from pathlib import Path

from benchmarks import wire
from benchmarks.peers import START_PATIENCE_S, Peer
from benchmarks.results import Results
from tests.support.processes import free_port


def measure(peer: Peer, scratch: Path, results: Results) -> None:
    """Start `peer` once, on an empty directory, and kill it.

    Formatting (KRaft) and ZooKeeper come before the clock starts.
    """
    directory = Path(tempfile.mkdtemp(dir=scratch, prefix=f"{peer.name}-start-"))
    port = free_port()
    peer.prepare(directory, port)
    child = peer.launch(directory, port)
    try:
        answered_at = wire.wait_for_metadata(port, timeout_s=START_PATIENCE_S, check=child.check)
    finally:
        child.kill()
    results.add(peer.name, "start", answered_at - child.started_at)

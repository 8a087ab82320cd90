"""A task's process: objects that collections leave out, and memory that it keeps."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from pyspark import TaskContext

from minibroker.pipeline.kafka.task_process import _prepare, prepare_for_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def _thawed() -> Iterator[None]:
    """Leave no object frozen."""
    gc.unfreeze()
    _prepare.cache_clear()
    yield
    gc.unfreeze()
    _prepare.cache_clear()


@pytest.mark.usefixtures("_thawed")
def test_the_first_task_of_a_process_leaves_its_objects_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepare_for_tasks()
    assert gc.get_freeze_count() == 0  # this is the user's process, and no task

    monkeypatch.setattr(TaskContext, "get", lambda: "a task")
    prepare_for_tasks()
    first = gc.get_freeze_count()
    assert first > 0
    lists = [[] for _ in range(100)]
    prepare_for_tasks()
    assert gc.get_freeze_count() <= first, lists


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_freed_buffers_stay_with_the_process() -> None:
    """A buffer of 8 MiB that is made and freed again and again is mapped and cleared once."""
    program = (
        "import resource\n"
        "from minibroker.pipeline.kafka.task_process import _keep_freed_memory\n"
        "_keep_freed_memory()\n"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "source = bytes(8 << 20)\n"
        "first = bytearray(source), b'x' * 4096\n"
        "del first\n"
        "before = faults()\n"
        "for _ in range(20):\n"
        "    bytearray(source)\n"
        "print(faults() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 200, "some 2,000 without"

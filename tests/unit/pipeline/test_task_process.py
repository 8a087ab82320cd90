"""The objects of a task's process that collections leave out."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from pyspark import TaskContext

from minibroker.pipeline.task_process import _freeze, leave_imports_out

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def _thawed() -> Iterator[None]:
    """Leave no object frozen."""
    gc.unfreeze()
    _freeze.cache_clear()
    yield
    gc.unfreeze()
    _freeze.cache_clear()


@pytest.mark.usefixtures("_thawed")
def test_the_first_task_of_a_process_leaves_its_objects_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_imports_out()
    assert gc.get_freeze_count() == 0  # this is the user's process, and no task

    monkeypatch.setattr(TaskContext, "get", lambda: "a task")
    leave_imports_out()
    first = gc.get_freeze_count()
    assert first > 0
    kept = [[] for _ in range(100)]
    leave_imports_out()
    assert gc.get_freeze_count() <= first, kept

"""The worker: in order, errors told, work of the last minute done."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
import threading

import pytest

from minibroker.broker.worker import Worker
from minibroker.client.daemons import in_daemon
from minibroker.kafka.errors import MinibrokerError, StorageError


def fail(error: Exception) -> None:
    raise error


async def test_tasks_run_in_order_on_a_thread_of_their_own() -> None:
    worker = Worker(lambda _: None)
    runs: list[tuple[int, bool]] = []
    loop_thread = threading.get_ident()
    for number in range(3):
        worker.run_later(lambda n=number: runs.append((n, threading.get_ident() == loop_thread)))
    worker.close()
    assert runs == [(0, False), (1, False), (2, False)]


async def test_a_task_after_the_end_runs_at_once() -> None:
    worker = Worker(lambda _: None)
    worker.close()
    runs: list[int] = []
    worker.run_later(lambda: runs.append(threading.get_ident()))
    assert runs == [threading.get_ident()]


async def test_a_result_is_applied_on_the_loop() -> None:
    worker = Worker(lambda _: None)
    worker.begin(asyncio.get_running_loop())
    threads: list[int] = []
    applied = asyncio.get_running_loop().create_future()

    def apply(_error: object) -> None:
        threads.append(threading.get_ident())
        applied.set_result(None)

    worker.run_reported(lambda: threads.append(threading.get_ident()), apply)
    await asyncio.wait_for(applied, 60)
    worker.close()
    loop_thread = threading.get_ident()
    assert [thread == loop_thread for thread in threads] == [False, True]
    worker.run_reported(lambda: threads.append(-1), lambda _: threads.append(-2))
    assert threads[2:] == [-1, -2]  # after the end: at once


async def test_the_result_of_a_task_that_failed_is_not_applied() -> None:
    report = asyncio.get_running_loop().create_future()
    worker = Worker(report.set_result)
    worker.begin(asyncio.get_running_loop())
    done: list[object] = []
    error = StorageError("cannot write x", log_directory="/x")
    worker.run_reported(lambda: fail(error), done.append)
    assert await asyncio.wait_for(report, 60) is error
    worker.close()
    assert done == [error]


async def test_a_bug_in_reported_work_is_told_to_the_waiting_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    worker = Worker(lambda error: fail(AssertionError(error)))
    worker.begin(asyncio.get_running_loop())
    worker.run_reported(lambda: fail(ValueError("a bug")), report.set_result)
    error = await asyncio.wait_for(report, 60)
    assert isinstance(error, MinibrokerError)
    assert "a bug" in str(error)
    worker.close()
    assert "a bug" in caplog.text


async def test_a_disk_that_refuses_is_told_on_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    report = asyncio.get_running_loop().create_future()
    worker = Worker(report.set_result)
    worker.begin(asyncio.get_running_loop())
    error = StorageError("cannot write x", log_directory="/x")
    worker.run_later(lambda: fail(error))
    assert await asyncio.wait_for(report, 60) is error
    worker.close()
    assert "background work failed: cannot write x" in caplog.text


async def test_other_errors_are_said_and_the_next_task_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = Worker(lambda error: fail(AssertionError(error)))
    worker.begin(asyncio.get_running_loop())
    runs: list[int] = []
    worker.run_later(lambda: fail(OSError(errno.EIO, "no")))
    worker.run_later(lambda: runs.append(1))
    worker.close()
    assert runs == [1]
    assert "background work failed: [Errno 5] no" in caplog.text


async def test_a_bug_in_a_task_is_said_and_the_next_one_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = Worker(lambda _: None)
    runs: list[int] = []
    worker.run_later(lambda: fail(ValueError("a bug")))
    worker.run_later(lambda: runs.append(1))
    worker.close()
    assert runs == [1]
    assert "a bug" in caplog.text


async def test_without_a_task_there_is_no_thread() -> None:
    old_threads = set(threading.enumerate())
    worker = Worker(lambda _: None)
    assert set(threading.enumerate()) <= old_threads  # another test's may just have ended
    worker.close()


async def test_how_a_task_ended_is_told_on_the_loop() -> None:
    reports: asyncio.Queue[Exception | None] = asyncio.Queue()
    worker = Worker(lambda _: None)
    worker.begin(asyncio.get_running_loop())
    error = OSError(errno.EIO, "no")
    worker.run_then(lambda: None, reports.put_nowait)
    worker.run_then(lambda: fail(error), reports.put_nowait)
    assert await asyncio.wait_for(reports.get(), 60) is None
    assert await asyncio.wait_for(reports.get(), 60) is error
    worker.close()
    worker.run_then(lambda: fail(error), reports.put_nowait)
    assert reports.empty()


async def test_a_bug_in_a_task_is_told_to_the_one_who_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reports: asyncio.Queue[Exception | None] = asyncio.Queue()
    worker = Worker(lambda _: None)
    worker.begin(asyncio.get_running_loop())
    worker.run_then(lambda: fail(ValueError("a bug")), reports.put_nowait)
    error = await asyncio.wait_for(reports.get(), 60)
    assert isinstance(error, MinibrokerError)
    assert "a bug" in str(error)
    assert "a bug" in caplog.text
    worker.close()


async def test_after_the_end_nobody_is_told() -> None:
    """The caller of close goes on with the tasks' data: the loop had no turn in between."""
    reports: list[object] = []
    worker = Worker(reports.append)
    worker.begin(asyncio.get_running_loop())
    has_run = threading.Event()
    worker.run_then(lambda: None, reports.append)
    worker.run_later(lambda: fail(StorageError("no", log_directory="/x")))
    worker.run_later(has_run.set)
    assert has_run.wait(60)
    worker.close()
    for _ in range(3):
        await asyncio.sleep(0)
    assert reports == []


# Work on a thread that nobody has to wait for.


TIMEOUT_S = 60
NEVER_ENDS = """
import asyncio, threading
from minibroker.client.daemons import in_daemon

async def main():
    begun = threading.Event()
    def wait_for_ever():
        begun.set()
        threading.Event().wait()
    in_daemon(wait_for_ever, "waits")
    begun.wait()

asyncio.run(main())
"""


async def test_the_result_or_the_error_comes_back_to_the_loop() -> None:
    assert await in_daemon(lambda: threading.current_thread().name, "named") == "named"

    def fail() -> None:
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        await in_daemon(fail, "fails")


async def test_a_caller_that_is_gone_gets_nothing() -> None:
    may_end, ended = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        assert may_end.wait(TIMEOUT_S)
        loop.call_soon_threadsafe(ended.set)
        raise ValueError("nobody hears this")

    future = in_daemon(work, "late")
    future.cancel()
    may_end.set()
    async with asyncio.timeout(TIMEOUT_S):
        await ended.wait()
    await asyncio.sleep(0)
    assert future.cancelled()


def test_a_process_ends_without_it() -> None:
    command = [sys.executable, "-c", NEVER_ENDS]
    assert subprocess.run(command, timeout=TIMEOUT_S, check=False).returncode == 0

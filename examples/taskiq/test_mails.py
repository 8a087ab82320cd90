"""The tasks' tests: a program that asks for mails, and a worker, each with its own connection."""

import asyncio
import contextlib

import pytest
from mails import ATTEMPTS, GROUP, TOPIC, make_broker
from taskiq.api import run_receiver_task


class Mailer:
    """A mail server that refuses the first `failures` mails; `sent` has the others."""

    def __init__(self, failures=0):
        self.failures = failures
        self.mails = asyncio.Queue()

    async def send(self, address, text):
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the mail server is away")
        await self.mails.put((address, text))


async def ask_for_mails(kafka, *addresses):
    """Ask for a mail to each address, as a web application does."""
    program = make_broker(kafka.bootstrap, send=None)
    await program.startup()
    send_mail = program.find_task("send_mail")
    for address in addresses:
        await send_mail.kiq(address, "welcome")
    await program.shutdown()


@contextlib.asynccontextmanager
async def working(kafka, mailer):
    """Run a worker."""
    broker = make_broker(kafka.bootstrap, mailer.send, worker=True)
    await broker.startup()
    worker = asyncio.create_task(run_receiver_task(broker))
    try:
        yield
    finally:
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker
        await broker.shutdown()


async def test_a_worker_sends_a_mail(kafka):
    mailer = Mailer()
    async with working(kafka, mailer):
        await ask_for_mails(kafka, "a@example.org")
        assert await mailer.mails.get() == ("a@example.org", "welcome")


async def test_mails_wait_until_a_worker_starts(kafka):
    await ask_for_mails(kafka, "a@example.org", "b@example.org")
    assert [record.json()["task_name"] for record in kafka.records(TOPIC)] == ["send_mail"] * 2
    mailer = Mailer()
    async with working(kafka, mailer):
        addresses = {(await mailer.mails.get())[0] for _ in range(2)}
    assert addresses == {"a@example.org", "b@example.org"}
    assert kafka.lag(GROUP) == {(TOPIC, 0): 0}


async def test_a_mail_that_fails_is_tried_again(kafka):
    mailer = Mailer(failures=ATTEMPTS - 1)
    async with working(kafka, mailer):
        await ask_for_mails(kafka, "a@example.org")
        await mailer.mails.get()
    assert len(kafka.records(TOPIC)) == ATTEMPTS  # a retry is a record of its own


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT"])
async def test_a_mail_is_written_once_whatever_fails(kafka, error):
    with kafka.faults.add("Produce", error=error, topic=TOPIC, times=3):
        await ask_for_mails(kafka, "a@example.org")
    assert len(kafka.records(TOPIC)) == 1

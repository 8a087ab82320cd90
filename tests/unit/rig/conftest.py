"""The broker and the client of the handlers' tests."""

from tests.unit.broker.handlers.conftest import client, clock, running, settings

__all__ = ["client", "clock", "running", "settings"]

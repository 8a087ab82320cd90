"""Requests that another broker's registry answers: one that cannot be asked."""

from __future__ import annotations

import ssl
from typing import Any, cast

import pytest

from minibroker.control.messages import HttpRequest
from minibroker.registry.errors import RegistryError
from minibroker.registry.forwarding import Forwarding


class Tree:
    """A metadata tree with the URL of each registry."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def get(self, _path: str) -> tuple[bytes, None]:
        """Return the URL."""
        return self._url.encode(), None


@pytest.mark.parametrize("url", ["http://a..b:1", "http://localhost:99999", "http://127.0.0.1:1"])
async def test_a_registry_that_cannot_be_reached_is_named(url: str) -> None:
    forwarding = Forwarding(ssl.create_default_context)
    request = HttpRequest("GET", "/subjects", {}, {})
    tree = cast("Any", Tree(url))
    with pytest.raises(RegistryError, match=f"of broker 2 at {url} does not answer"):
        await forwarding.send(tree, 2, request, b"")

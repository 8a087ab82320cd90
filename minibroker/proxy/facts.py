"""The facts of a request that rules ask about, and what its login says of the user."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from minibroker.rig.faults import Facts
from minibroker.rig.message_places import group_in, places_in

if TYPE_CHECKING:
    from minibroker.proxy.heads import RequestHead
    from minibroker.rig.message_places import TopicName

_SCRAM_USER: Final = re.compile(rb"^[nyp][^,]*,[^,]*,(?:m=[^,]*,)?n=([^,]*),")


def facts_of(head: RequestHead, request: Any, name_of: TopicName) -> Facts:
    """Return the facts of a request; of one that cannot be read (None), those of its head."""
    client_id = None if head.client_id is None else head.client_id.decode("utf-8", "replace")
    if request is None:
        return Facts(head.api_key, head.version, client_id, None, frozenset())
    places = frozenset(places_in(request, name_of))
    return Facts(head.api_key, head.version, client_id, group_in(request), places)


def login_user(mechanism: str, token: bytes) -> str | None:
    """Return the user that the first token of a login names, None where it names none."""
    if mechanism == "PLAIN":
        parts = token.split(b"\0")
        return parts[1].decode("utf-8", "replace") if len(parts) == 3 else None
    match = _SCRAM_USER.match(token)
    if mechanism.startswith("SCRAM-") and match is not None:
        name = match[1].replace(b"=2C", b",").replace(b"=3D", b"=")
        return name.decode("utf-8", "replace")
    return None

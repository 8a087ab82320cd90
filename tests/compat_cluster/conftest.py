"""Leaves out the mixed clusters, except where `make situations` compares, and the moves and older
protocols, except in `make move`, and what is secured, except in `make secure-move`.
"""

from __future__ import annotations

import os

from tests.compat_cluster import recorded

IS_COMPARED = recorded.PLAYS_ALL_ON_KAFKA and not recorded.IS_RECORDING
IS_MOVED = os.environ.get("MINIBROKER_MOVES") == "1"
IS_SECURED = os.environ.get("MINIBROKER_SECURE_MOVE") == "1"

collect_ignore = [] if IS_COMPARED else ["test_mixed.py"]
collect_ignore += [] if IS_MOVED else ["test_move.py", "test_older_protocols.py"]
collect_ignore += (
    [] if IS_SECURED else ["test_secure_move.py", "test_secured_mixed.py", "test_secured_proxy.py"]
)

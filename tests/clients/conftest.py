"""Leaves out the suites of clients, except in `make client-suites`."""

from __future__ import annotations

import os

if os.environ.get("MINIBROKER_CLIENT_SUITES") != "1":
    collect_ignore_glob = ["test_*.py"]

"""Leaves out the mixed clusters, except where `make situations` compares."""

from __future__ import annotations

from tests.compat_cluster import recorded

IS_COMPARED = recorded.PLAYS_ALL_ON_KAFKA and not recorded.IS_RECORDING

collect_ignore = [] if IS_COMPARED else ["test_mixed.py"]

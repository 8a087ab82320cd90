"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup; the leader assigns.

`group.py` is the state, `joins.py`, `syncing.py`, `sessions.py` and `rebalance.py` are its steps,
`membership.py` carries out what the steps ask for.
"""

"""Consumer groups (KIP-848): the coordinator assigns, and a member learns it from its heartbeats.

`group.py` and `member.py` are the state, `replay.py` is the only thing that changes it;
`heartbeat.py` and `classic_members.py` are the steps that say what to record, `membership.py`
carries it out.
"""

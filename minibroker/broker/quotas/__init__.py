"""Quotas: how much clients may produce, fetch, ask and create, and how long they wait beyond it.

`rate.py` and `token_bucket.py` are arithmetic with the time passed in; `limits.py` knows which
limit holds for whom; `manager.py` brings both together; `entities.py` is shared by the two APIs.
`replication_quota.py` throttles replicas, which the limits of clients do not concern.
"""

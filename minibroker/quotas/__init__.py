"""Quotas: who may produce, fetch, ask and create how much, and for how long one over it waits.

`rate.py` and `token_bucket.py` are arithmetic with the time passed in; `limits.py` knows which
limit holds for whom; `manager.py` brings both together; `entities.py` is what the two APIs share.
"""

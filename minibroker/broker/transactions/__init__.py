"""Transactions: who owns a transactional id, what its transaction touched, and how it ends.

Stands between `handlers/` and `partitions/`: what a coordinator must not forget is a record of
`__transaction_state`.
"""

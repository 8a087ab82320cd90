"""Replication: this broker fetches what other brokers lead, and keeps the ISR of what it leads.

Stands beside `partitions/`, which knows roles, progress and watermarks. `truncation` has the pure
rules, `fetcher` fetches from one leader, `isr` changes who is in sync, `replication` has them all.
"""

"""Kafka's broker keys by subject, one table each; `broker_keys` puts them together."""

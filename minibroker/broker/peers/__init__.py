"""One client between brokers: minibroker's, or Apache Kafka's.

A coordinator brings markers to the leaders of other brokers; a leader asks the coordinator of a
batch. All requests of one broker to another go over one connection. Its versions are agreed on when
it is opened.
"""

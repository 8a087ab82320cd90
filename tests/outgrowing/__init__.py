"""Apache Kafka with KRaft goes on where minibroker stopped, and gives back: `hand-over` and
`take-back` with clients that work between.
"""

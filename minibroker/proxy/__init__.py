"""A proxy between clients and any Kafka: it shows, disturbs and records what they say.

    client ─► Gate (a listener for each broker) ─► Link: RequestSide, AnswerSide ─► Kafka
                                                    │
               frames · heads · addresses, which are pure

`proxy.KafkaProxy` is the whole of it. It stands on `kafka/`, `client/` and the pure rules of
`rig/`, and imports nothing of the broker.
"""

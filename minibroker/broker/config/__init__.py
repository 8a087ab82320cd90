"""Configuration under Kafka's own names: the keys, the values, and their meaning to the broker.

`definition` says what a key is, `tables/` lists Kafka's keys, `topic_keys` the topics' ones;
`sources` gathers the user's settings, `broker` and `topic` turn it into typed values, `dynamic`
lays the settings that are altered at run time over it. Nothing here does I/O.
"""

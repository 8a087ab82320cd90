"""Configuration under Kafka's own names: what may be set, what is set, what it means to the broker.

`definition` says what a key is, `tables/` lists Kafka's keys, `topic_keys` the topics' ones;
`sources` gathers what the user gave, `broker` and `topic` turn it into typed values, `dynamic`
lays what is altered at run time over it. Nothing here does I/O but `sources`, which reads a file.
"""

"""Configuration under Kafka's own names: the keys, the values, and their meaning to the broker.

`key_rows` lists all keys, and `keys` makes their tables. `sources` gathers the user's settings,
`broker` and `topic` make typed values of them, `dynamic` lays the settings that are altered at run
time over them.
"""

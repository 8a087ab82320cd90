"""Configuration under Kafka's own names: the keys, the values, and their meaning to the broker.

`keys.json` lists all keys; `keys` reads it and turns texts into values. `sources` gathers the
user's settings, `broker` and `topic` make typed values of them, `dynamic` lays the settings that
are altered at run time over them.
"""

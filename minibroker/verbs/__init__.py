"""The small verbs of the program: a module or a room each, with its declaration and its `run`.

    topics  produce  consume  groups  wait ─► plain functions of this room ─► client

Kafka's scripts and the HTTP API call the same functions, so a verb's module only prints.
"""

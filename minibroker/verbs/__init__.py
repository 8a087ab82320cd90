"""The small verbs of the program: one module or room each, with its declaration and its `run`."""

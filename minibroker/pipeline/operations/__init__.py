"""Operations on records between a source and a sink: which records, fields and masks.

`rows` describes them, `transforms.operated` applies them in the tasks.
"""

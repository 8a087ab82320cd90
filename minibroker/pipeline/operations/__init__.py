"""Operations on records between a source and a sink: which records, fields and masks.

`rows` describes them. In the tasks `operations.frames` applies them to rows with bytes, and
`masked_columns` to decoded columns.
"""

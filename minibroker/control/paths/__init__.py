"""The operations of the control API, a module for each noun of the paths.

A module has functions `(scope, call) → Response` and their table, `OPERATIONS`; `api` puts the
tables together.
"""

"""`pipeline rollup`: aggregates of JSON values over windows of time."""

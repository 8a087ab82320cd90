"""Side by side with Apache Kafka and kfake: the same clients, one machine, one run.

`python -m benchmarks` (or `make bench`) starts each broker in turn, measures it and prints one
table. The way of a number: `peers` starts a broker, a module of `rows/` measures it, `results`
collects the samples, `goals` judges minibroker's, `table` prints them.
"""

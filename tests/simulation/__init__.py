"""Runs whole brokers, and random faults, on a simulated clock, network, tree and disks.

loop      an event loop whose time jumps to the next call; machines, which stop at once
network   connections in memory: delay, cut, loss
tree      the metadata tree with sessions that are cut off and expire
plan      what happens in the run of a seed
world     brokers and clients on these
faults    kills, power cuts, cut links, administrators, late requests of a deposed controller
rules     the invariants, checked after each turn of the loop
"""

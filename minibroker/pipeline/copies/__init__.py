"""Copies of topics into another cluster: tasks read and write, and consumer groups follow."""

"""What can be seen of flows from outside, without a driver: how they are, and why something does not flow.

Functions here return reports; `cli/` prints them. Nothing is changed.
"""

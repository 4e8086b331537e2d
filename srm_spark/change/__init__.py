"""Plan, apply and drift of one flow: read both sides → a frozen world → the steps that are left → one stage at a time.

The rules are those of the running flow (`flow/topics`), so that a plan says what a driver would do. Nothing is ever
deleted but, by choice, ACLs that were made here. Nothing here prints.
"""

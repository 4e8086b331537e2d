"""Random faults under load, and independent readers that count what they cost."""

"""Before a query starts: what a dead writer left, whether both logs are still the same, who may write."""

"""The commands: they parse and print, and decide nothing."""

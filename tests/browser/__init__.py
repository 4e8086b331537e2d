"""The pages in a real browser: Debian's chromium, steered by Playwright."""

"""The API, over a board that is filled by hand."""

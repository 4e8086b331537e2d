"""What the loops and their callers say to each other: codes, and the places of numbers in arrays.

Apart from the loops, so that who moves whole batches does not load numba: it takes a process 120 MB and half a second.
"""

from __future__ import annotations

DONE, FULL, NO_KEY, EARLY, LATE = 0, 1, 2, 3, 4
"""What a loop says: all of it; no room for the next record; the next record is outside of the limits."""
BAD_NUMBER, BAD_LENGTH, BAD_HEADERS, BAD_OFFSET, BAD_TIME, BAD_COUNT, BAD_NAME = 10, 11, 12, 13, 14, 15, 16
"""What is wrong with the bytes."""
MEANINGS = {
    BAD_NUMBER: "a number does not end where it should, or the bytes do",
    BAD_LENGTH: "a length does not fit into the bytes around it",
    BAD_HEADERS: "the headers do not fit into the record",
    BAD_OFFSET: "its offset is not behind the one before it, or beyond the batch",
    BAD_TIME: "there is no such time",
    BAD_COUNT: "there are more bytes than records",
    BAD_NAME: "a header has no name",
}

STOP, ATTRIBUTES, TIME, DELTA, REST, KEY, KEY_SIZE, VALUE, VALUE_SIZE, HEADERS, HEADERS_AT = range(11)
"""Fields of a record: places in memory, sizes (below 0 for null), and numbers relative to the batch. `REST` is where
its key's length begins, `STOP` where the record has ended."""
FIELDS = 11

LARGEST = 2**61
"""No timestamp is beyond it."""
SMALLEST_BODY = 6
SHORT, LONG = 5, 9
"""Bytes of a number of 32 bits, and of the largest one that is taken here."""

# Packing

PLACE, END, OFFSET, BASE_TIME, STAMP, COUNT, LAST = range(7)
"""A row of `table`, which is a source batch: where its records lie, its base offset and time, the time that its records
have instead of their own (`NO_STAMP` for none), how many they are, and the last offset relative to the first."""
NO_STAMP = -(2**62)
BEGIN, CHECKSUM = 7, 8
"""Where such batches are known by nothing else: where the whole batch lies, and the checksum that it says."""

ROW, AT, LEFT, NEXT, UPTO, RECORDS, FIRST_TIME, MAX_TIME, LAST_TIME, STRETCHES, WANTED, ASKED, CONTENT = range(13)
"""`state`. Of the source: the row that is read, the place in it (-1 before it is begun), records left in it, and the
lowest offset that may follow. Of the new batch: bytes, records, times, rows of `stretches`, and bytes of keys and
values. Of the record that a loop stopped at: bytes and offset."""
STATE = 13

START, BEFORE, CLOSE, LOW, HIGH, NEEDS_KEY = range(6)
"""`limits`: offsets that are wanted, bytes of a new batch's records, bounds of timestamps, whether null keys are none
of them."""
LIMITS = 6

# Unpacking

ROWS, KEY_BYTES, VALUE_BYTES, HEADER_COUNT, NAME_BYTES, CONTENT_BYTES, BEHIND, BATCH = range(8)
"""What is measured: records, bytes of their keys and values, headers, bytes of their names and values; and of the
batch that is read the lowest offset that the next record may have, relative to it, and its row."""
TOTALS = 8

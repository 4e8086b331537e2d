"""The codecs of record batches: what brokers and all clients read, and what every client writes.

cramjam has all of them in one small library without dependencies, decompresses into memory that is given, and lets go
of the interpreter's lock; gzip is the standard library's, which packs twice as fast. Beside them there is framing:

- lz4: Java's `Lz4BlockInputStream` takes only frames of independent blocks; written as Java does, in blocks of 64 KiB.
- snappy: Java writes the blocks of snappy-java, librdkafka one raw block. Both are read, the first is written.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import cramjam

from srm_spark.errors import CodecError

Data = bytes | bytearray | memoryview
NONE = "none"
CODECS = (NONE, "gzip", "snappy", "lz4", "zstd")
"""As in `compression.type`, in the order of their numbers in a batch's attributes."""

_zstd: Any = cramjam.zstd  # its types know of no level
_BLOCK = 65_536
_LZ4_HEADER = bytes.fromhex("04224d18604082")
"""Magic, independent blocks without checksums, blocks of 64 KiB, and the checksum of the two bytes before it."""
_LZ4_STORED, _LZ4_END = 2**31, bytes(4)
_LZ4_COUNT, _SNAPPY_COUNT = struct.Struct("<I"), struct.Struct(">i")
_SNAPPY_MAGIC = b"\x82SNAPPY\0"
_SNAPPY_HEADER = _SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
_GZIP_WINDOW = 31
"""zlib's way to say: with gzip's header and the largest window."""
_GZIP_LEVEL = -1


def compress(codec: str, data: Data, level: int | None = None) -> bytes:
    """`data` in a codec, at its usual level or at that of `compression.<codec>.level`.

    Raises CodecError for a codec or a level that there is not.
    """
    try:
        return _compress(codec, memoryview(data), level)
    except (cramjam.CompressionError, zlib.error, ValueError, OverflowError) as error:
        raise CodecError(f"cannot compress as {codec} at level {level}: {error}") from error


def decompress(codec: str, data: Data, most: int) -> memoryview:
    """What `data` is in a codec.

    Raises CodecError for data that are damaged, and for more than `most` bytes.
    """
    if codec == NONE:
        out = memoryview(data)
        if len(out) > most:
            raise CodecError(_too_many(codec, data, most))
        return out
    guess = min(most, max(_BLOCK, 4 * len(data)))
    while True:
        out = memoryview(bytearray(guess))
        try:
            return out[: decompress_into(codec, data, out)]
        except CodecError:
            if guess == most:
                raise
            guess = min(most, 4 * guess)


def decompress_into(codec: str, data: Data, out: Any) -> int:
    """The same into a buffer: how many bytes. Raises CodecError where they are more than it takes, too."""
    view = memoryview(data)
    try:
        if codec == "lz4":
            return int(cramjam.lz4.decompress_into(view, out))
        if codec == "zstd":
            return int(cramjam.zstd.decompress_into(view, out))
        if codec == "gzip":
            return int(cramjam.gzip.decompress_into(view, out))
        if codec == "snappy":
            return _snappy_into(view, out)
    except cramjam.DecompressionError as error:
        raise CodecError(f"{_too_many(codec, data, len(out))}, or are damaged: {error}") from error
    raise CodecError(f"a batch is compressed in a codec that is not known: {codec!r}")


def _too_many(codec: str, data: Data, most: int) -> str:
    return f"{len(data)} bytes of {codec} are more than {most} bytes"


def _compress(codec: str, data: memoryview, level: int | None) -> bytes:
    if codec == NONE:
        return bytes(data)
    if codec == "lz4":
        return b"".join(_lz4_parts(data, level))
    if codec == "zstd":
        return bytes(_zstd.compress(data, level=level))
    if codec == "gzip":
        gzip = zlib.compressobj(_GZIP_LEVEL if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
        return gzip.compress(data) + gzip.flush()
    if codec == "snappy":
        return b"".join(_snappy_parts(data))
    raise CodecError(f"there is no codec {codec!r}")


def _lz4_parts(data: memoryview, level: int | None) -> Iterator[bytes]:
    yield _LZ4_HEADER
    for at in range(0, len(data), _BLOCK):
        plain = data[at : at + _BLOCK]
        packed = _lz4_block(plain, level)
        if len(packed) < len(plain):
            yield _LZ4_COUNT.pack(len(packed)) + packed
        else:
            yield _LZ4_COUNT.pack(len(plain) | _LZ4_STORED) + plain
    yield _LZ4_END


def _lz4_block(plain: memoryview, level: int | None) -> bytes:
    if level is None:
        return bytes(cramjam.lz4.compress_block(plain, store_size=False))
    return bytes(cramjam.lz4.compress_block(plain, mode="high_compression", compression=level, store_size=False))


def _snappy_parts(data: memoryview) -> Iterator[bytes]:
    yield _SNAPPY_HEADER
    for at in range(0, len(data), _BLOCK):
        packed = bytes(cramjam.snappy.compress_raw(data[at : at + _BLOCK]))
        yield _SNAPPY_COUNT.pack(len(packed)) + packed


def _snappy_into(data: memoryview, out: Any) -> int:
    if bytes(data[: len(_SNAPPY_MAGIC)]) != _SNAPPY_MAGIC:
        return int(cramjam.snappy.decompress_raw_into(data, out))
    at, upto = len(_SNAPPY_HEADER), 0
    while at < len(data):
        if len(data) - at < _SNAPPY_COUNT.size:
            raise CodecError(f"a batch in snappy ends within the length of a block, at {at}")
        (size,) = _SNAPPY_COUNT.unpack_from(data, at)
        at += _SNAPPY_COUNT.size
        if not 0 <= size <= len(data) - at:
            raise CodecError(f"a block of snappy has {size} bytes at {at} of {len(data)}")
        if size:
            upto += int(cramjam.snappy.decompress_raw_into(data[at : at + size], out[upto:]))
        at += size
    return upto

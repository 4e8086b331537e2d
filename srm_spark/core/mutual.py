"""Positions on a topic that flows both ways under one name, where each side holds its own records and copies. No I/O.

```
A   a0 a1 b0 a2       a group on A at offset 3 has read all but a2: at B it goes on at offset 3, b1 is the first record
B   b0 a0 a1 b1 a2    there that it has not read. One at offset 2 has not read b0 and goes on at offset 0
```

The order of the two logs differs, so there is in general no position that skips nothing and repeats nothing. The right
one is the last that skips nothing: the first record of the target that the group has not read. Such a record is

- a copy that the forward map knows: read if its original lies in front of the group's position;
- known to the reverse flow, which read that far: read if its copy on the source lies in front of the position;
- not looked at by the reverse flow yet: the group cannot have read it.
"""

from __future__ import annotations

from srm_spark.core.checkpoints import Translation, TranslationStatus
from srm_spark.core.offset_map import PartitionMap


def translate_mutual(
    forward: PartitionMap | None, reverse: PartitionMap, upstream: int, target_end: int
) -> Translation:
    """Translate a position on the source; `forward` is the flow's own map, `reverse` that of the other direction.

    A position from before the forward map begins, or in a hole of it, is unknown: nobody can tell which copies it has
    read.
    """
    known, seen = None if forward is None else forward.source, reverse.source
    if forward is None or known is None or seen is None:
        return Translation(TranslationStatus.UNMAPPED, upstream)
    if forward.downstream(min(upstream, known.end)) is None:
        return Translation(TranslationStatus.UNKNOWN, upstream)
    unread = [forward.next_copy(upstream), reverse.next_original(upstream)]
    if unread[1] is None:
        unread[1] = forward.copies_end(seen.end)
    downstream = min(offset for offset in unread if offset is not None)
    if downstream > target_end:
        return Translation(TranslationStatus.BEYOND, upstream)
    is_ahead = upstream > known.end
    return Translation(
        TranslationStatus.AHEAD if is_ahead else TranslationStatus.EXACT, min(upstream, known.end), downstream
    )

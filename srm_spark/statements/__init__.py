"""Signed statements: what was copied, verified or moved, in a file that needs nothing but itself and a public key.

```
Verification, Statement of a move → core/envelope: in-toto payload → keys: Ed25519 → Seal: FILE and its page
FILE + public key → check_statement → what it says, or StatementRefused
```
"""

from srm_spark.statements.keys import SigningKey, check_statement, key_id, make_keys, open_key, read_public_key
from srm_spark.statements.page import page_of
from srm_spark.statements.seal import SUFFIX, Seal, page_path, seal_of

__all__ = [
    "SUFFIX",
    "Seal",
    "SigningKey",
    "check_statement",
    "key_id",
    "make_keys",
    "open_key",
    "page_of",
    "page_path",
    "read_public_key",
    "seal_of",
]

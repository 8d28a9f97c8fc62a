"""The reply cache: replies by the content of their requests, in one SQLite file that several runs share.

A run's own call log is what a run stands on; the cache spares another run the same call. So it may lose its last rows
to a kill, or be removed, and nothing is lost but time.
"""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

from anthrolab.errors import AnthrolabError
from anthrolab.files import unwritable
from anthrolab.models.client import Reply

VERSION = 1
BATCH = 200
"""Replies that are written in one transaction."""

EVERY_S = 1.0
"""Longest time that a reply waits for its transaction, as long as others come in."""

PATIENCE_S = 10.0
"""How long closing waits for another process that writes."""

_FIELDS = ("text", "reasoning", "finish_reason", "prompt_tokens", "cached_tokens", "completion_tokens")


class CacheError(AnthrolabError):
    """A cache file that is none, or is damaged."""


class ReplyCache:
    """Replies by `Request.key`, in a SQLite file in WAL mode; several processes may have it open. Use it with `with`.

    Writes are gathered and never waited for: where another process holds the file they come with the next batch.
    The first reply to a request stays; a later one is not taken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._new: dict[str, str] = {}
        self._written = time.monotonic()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise unwritable(path, e) from e
        try:
            self._db = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise CacheError(f"{path}: a reply cache of another version ({version}); remove it, or give another --cache")
            self._db.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID")
            self._db.execute(f"PRAGMA user_version={VERSION}")
            self._db.execute("PRAGMA busy_timeout=0")
        except sqlite3.Error as e:
            raise self._broken(e) from e

    def get(self, key: str) -> Reply | None:
        """The reply to a request, with its key in `call`; None if there is none."""
        text = self._new.get(key)
        if text is None:
            try:
                row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            except sqlite3.Error as e:
                raise self._broken(e) from e
            if row is None:
                return None
            text = row[0]
        try:
            fields = dict(zip(_FIELDS, json.loads(text), strict=True))
        except ValueError as e:
            raise CacheError(f"{self.path}: key {key}: holds no reply ({e}); remove the file, or give another --cache") from e
        return Reply(**fields, call=key)

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply, soon."""
        self._new[key] = json.dumps([getattr(reply, name) for name in _FIELDS], ensure_ascii=False)
        if len(self._new) >= BATCH or time.monotonic() - self._written > EVERY_S:
            self._write()

    def close(self) -> None:
        """Write what is left, and close."""
        with closing(self._db):
            self._db.execute(f"PRAGMA busy_timeout={int(1000 * PATIENCE_S)}")
            self._write()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self) -> None:
        self._written = time.monotonic()
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?)", self._new.items())
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as e:
            if "locked" in str(e) or "busy" in str(e):
                return  # another process writes; the rows wait for the next batch
            raise self._broken(e) from e
        except sqlite3.Error as e:
            raise self._broken(e) from e
        self._new.clear()

    def _broken(self, error: sqlite3.Error) -> CacheError:
        return CacheError(
            f"{self.path}: cannot be used as the reply cache ({error}); remove it with the -wal and -shm files beside it, "
            "free some space, or give another --cache (none for no cache)"
        )

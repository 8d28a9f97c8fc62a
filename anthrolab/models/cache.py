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
from anthrolab.models.client import REPLY_FIELDS, Reply

VERSION = 1
BATCH = 200
"""Replies that are written in one transaction."""

EVERY_S = 1.0
"""Longest time that a reply waits for its transaction, as long as others come in."""

PATIENCE_S = 10.0
"""How long closing waits for another process that writes."""


class CacheError(AnthrolabError):
    """A cache file that is none, or is damaged."""


class ReplyCache:
    """Replies by `Request.key`, in a SQLite file in WAL mode; several processes may have it open. Use it with `with`.

    Writes are gathered and never waited for: where another process holds the file they come with the next batch.
    The first reply to a request stays; a later one is not taken. `trouble`: why the file is not used any more, if so (a full
    disk, damage): the run goes on without it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble: str | None = None
        self._new: dict[str, str] = {}
        self._written = time.monotonic()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise unwritable(path, e) from e
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._db = self._opened()
                return
            except sqlite3.Error as e:
                if not _is_locked(e) or time.monotonic() > end:
                    raise self._broken(e) from e
                time.sleep(0.05)  # another command makes the same file at this moment

    def _opened(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise CacheError(f"{self.path}: a reply cache of another version ({version}); remove it, or give another --cache")
            db.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID")
            db.execute(f"PRAGMA user_version={VERSION}")
            db.execute("PRAGMA busy_timeout=0")
        except BaseException:
            db.close()
            raise
        return db

    def get(self, key: str) -> Reply | None:
        """The reply to a request, with its key in `call`; None if there is none."""
        text = self._new.get(key)
        if text is None and self.trouble is None:
            try:
                row = self._db.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
                text = row[0] if row else None
            except sqlite3.Error as e:
                if not _is_locked(e):
                    self._give_up(e)
        if text is None:
            return None
        try:
            fields = dict(zip(REPLY_FIELDS, json.loads(text), strict=True))
        except (ValueError, TypeError) as e:
            raise CacheError(f"{self.path}: key {key}: holds no reply ({e}); remove the file, or give another --cache") from e
        return Reply(**fields, call=key)

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply, soon."""
        if self.trouble is not None:
            return
        self._new[key] = json.dumps([getattr(reply, name) for name in REPLY_FIELDS], ensure_ascii=False)
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
            self._db.executemany("INSERT OR IGNORE INTO replies VALUES (?, ?)", self._new.items())
            self._db.execute("COMMIT")
        except sqlite3.Error as e:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if _is_locked(e):
                return  # another process writes; the rows wait for the next batch
            self._give_up(e)
        self._new.clear()

    def _give_up(self, error: sqlite3.Error) -> None:
        self.trouble = f"{self.path}: not used any more as the reply cache ({error}); other runs will ask again for what this one got"

    def _broken(self, error: sqlite3.Error) -> CacheError:
        damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        fix = "if it is a reply cache remove it with its -wal and -shm files, else" if damaged else "make it writable, or"
        return CacheError(f"{self.path}: cannot be used as the reply cache ({error}); {fix} give another --cache (none for no cache)")


def _is_locked(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))

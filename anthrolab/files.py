"""Files, written so that a reader never sees half of one."""

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anthrolab.errors import AnthrolabError

if TYPE_CHECKING:
    import polars as pl


class FileError(AnthrolabError):
    """A file that could not be read or written."""


def data_dir() -> Path:
    """What comes with anthrolab (cards, rubric, systems): `data/` of the checkout, or the copy in an installed package."""
    packaged = Path(__file__).parent / "data"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "data"


def canonical_json(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, UTF-8 characters kept."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def content_hash(value: Any) -> str:
    """SHA-256 (first 16 hex digits) of bytes, of a text, or of the canonical JSON of anything else."""
    if isinstance(value, bytes):
        data = value
    elif isinstance(value, str):
        data = value.encode("utf-8")
    else:
        data = canonical_json(value).encode("utf-8")
    return hashlib.sha256(data).hexdigest()[:16]


def read_text(path: Path) -> str:
    """The text of a UTF-8 file; FileError if it is missing, unreadable or in another encoding."""
    return _decoded(path, _bytes(path))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise FileError(f"{path}: cannot be read ({e.strerror}); check the path and its permissions") from e


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")  # as every text file is read
    except UnicodeDecodeError as e:
        raise FileError(f"{path}: not UTF-8 (byte {e.start}); save the file as UTF-8") from e


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a whole file or nothing: the content goes to a neighbour that then takes the name."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    neighbour = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(neighbour, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.replace(neighbour, path)
    except OSError as e:
        with contextlib.suppress(OSError):
            neighbour.unlink()
        raise unwritable(path, e) from e


def write_parquet(path: Path, frame: "pl.DataFrame") -> None:
    """Write a whole table or nothing."""
    buffer = BytesIO()
    frame.write_parquet(buffer)
    write_atomic(path, buffer.getvalue())


def append_line(path: Path, line: str) -> None:
    """Append one line in a single write, so that a kill leaves at most a last line without its end; a full disk leaves
    nothing of it, so that the next line does not begin in the middle. One process at a time appends to a file."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    try:
        try:
            fd = os.open(path, flags, 0o644)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, flags, 0o644)
        try:
            data = (line + "\n").encode("utf-8")
            written = os.write(fd, data)
            if written != len(data):
                os.ftruncate(fd, os.fstat(fd).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(fd)
    except OSError as e:
        raise unwritable(path, e) from e


def whole_lines(path: Path) -> Iterator[str]:
    """The lines of a file that end in a newline: what a killed writer left half-written is passed over."""
    data = _bytes(path)
    for line in _decoded(path, data[: data.rfind(b"\n") + 1]).split("\n"):  # a kill may leave half a character
        if line.strip():
            yield line


def cut_torn_line(path: Path) -> None:
    """Remove a last line without its newline (a writer was killed in it), so that appending is safe."""
    if not path.exists():
        return
    data = _bytes(path)
    if data and not data.endswith(b"\n"):
        write_atomic(path, data[: data.rfind(b"\n") + 1])


@contextlib.contextmanager
def only_one(folder: Path, busy: AnthrolabError) -> Iterator[None]:
    """Only one command at a time works in a folder, which is made if need be; `busy` is raised if another is at it."""
    import fcntl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".lock", "w")  # noqa: SIM115 - held until the command ends
    except OSError as e:
        raise unwritable(folder, e) from e
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise busy from None
    try:
        yield
    finally:
        lock.close()


def unwritable(path: Path, error: OSError) -> FileError:
    """A write error as one line with a fix."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return FileError(f"{path}: cannot be written ({error.strerror}); allow more with `ulimit -n 8192`, or lower concurrency")
    return FileError(
        f"{path}: cannot be written ({error.strerror}); free some space or choose a folder that you may write to"
    )

"""PNG files as chunks: text chunks out of hostile files, and into images whose other bytes stay as they are.

A chunk is length, type, data and CRC (PNG specification, section 5.3). No declared length is believed: what is read is
what is there. Time and memory are bounded by `MAX_FILE_BYTES`, `MAX_CHUNKS`, `MAX_TEXT_BYTES` and, over all card chunks of
a file together, `MAX_CARD_BYTES`.
"""

import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from anthrolab.cards.exchange.foreign import MAX_JSON_BYTES
from anthrolab.cards.exchange.outcome import ExchangeError

SIGNATURE = b"\x89PNG\r\n\x1a\n"

MAX_FILE_BYTES = 32 * 1024 * 1024
"""Bytes of an image with a card in it; usual ones have one to five million."""
MAX_CHUNKS = 20_000
"""Chunks of an image; one of the largest size in pieces of 8 KB has four thousand."""
MAX_TEXT_BYTES = 11 * 1024 * 1024
"""Bytes of one text once it is unpacked: a card of the largest size in base64."""
MAX_CARD_BYTES = 2 * (MAX_TEXT_BYTES + MAX_JSON_BYTES)
"""Bytes that all card chunks of a file may have together, each counted as text and again as JSON (`embedded.VALUE_BYTES`
for each value besides): a V3 and a V2 card of the largest size, if they are not all commas."""

TEXT_KINDS = (b"tEXt", b"zTXt", b"iTXt")


class TextError(ValueError):
    """A text chunk that cannot be unpacked; the message says why, in words that fit after 'its text'."""


class Budget:
    """What is left of `MAX_CARD_BYTES` while one file is read."""

    def __init__(self) -> None:
        self.left = MAX_CARD_BYTES

    def take(self, size: int) -> None:
        """Count `size` bytes; TextError if there were not as many left."""
        self.left -= size
        if self.left < 0:
            self.left = 0
            raise TextError(f"is too much: the card chunks of one file may count {MAX_CARD_BYTES:,} bytes together, unpacked and as JSON")


@dataclass(frozen=True)
class Chunk:
    """One whole chunk: where it lies in the file, and its data."""

    kind: bytes
    start: int
    end: int
    data: memoryview
    crc: int

    @property
    def crc_right(self) -> bool:
        """True if the checksum is that of type and data."""
        return zlib.crc32(self.data, zlib.crc32(self.kind)) == self.crc

    @property
    def keyword(self) -> str:
        """The keyword of a text chunk as it stands, else empty."""
        if self.kind not in TEXT_KINDS:
            return ""
        return bytes(self.data[:80]).partition(b"\0")[0].decode("latin-1")


@dataclass(frozen=True)
class Chunks:
    """The whole chunks of a file in order, and how it ends: the reason why reading stopped early, or nothing."""

    chunks: tuple[Chunk, ...]
    cut: str


def read_chunks(data: bytes, where: str) -> Chunks:
    """Every whole chunk, those after IEND as well; ExchangeError if this is no PNG or has far too many."""
    if not data.startswith(SIGNATURE):
        raise ExchangeError(f"{where}: is no PNG file (its first bytes are others); give a .png or .json card")
    view = memoryview(data)
    chunks: list[Chunk] = []
    at, cut = len(SIGNATURE), ""
    while at < len(data):
        if len(data) - at < 12:
            cut = f"the file ends {len(data) - at} bytes into a chunk"
            break
        length, kind = struct.unpack_from(">I4s", data, at)
        if not kind.isalpha():
            cut = f"there is no chunk at byte {at:,}"
            break
        if length > len(data) - at - 12:
            cut = f"chunk {kind.decode()} says that it has {length:,} bytes and {max(0, len(data) - at - 12):,} are there"
            break
        end = at + 12 + length
        chunks.append(Chunk(kind, at, end, view[at + 8 : end - 4], struct.unpack_from(">I", data, end - 4)[0]))
        if len(chunks) > MAX_CHUNKS:
            raise ExchangeError(f"{where}: has more than {MAX_CHUNKS:,} chunks; save the image anew in an image editor")
        at = end
    return Chunks(tuple(chunks), cut)


def text_of(chunk: Chunk, budget: Budget) -> bytes:
    """The text of a tEXt, zTXt or iTXt chunk, unpacked up to `MAX_TEXT_BYTES` and counted; TextError says what is wrong."""
    _keyword, zero, rest = bytes(chunk.data).partition(b"\0")
    if not zero:
        raise TextError("does not begin (there is no end of the keyword)")
    if len(rest) > MAX_TEXT_BYTES:
        raise TextError(f"has more than {MAX_TEXT_BYTES:,} bytes")
    if chunk.kind == b"tEXt":
        budget.take(len(rest))
        return rest
    if chunk.kind == b"zTXt":
        return _unpacked(rest[:1], rest[1:], budget)
    packed, method, tail = rest[:1], rest[1:2], rest[2:]
    parts = tail.split(b"\0", 2)  # language, translated keyword, text
    if len(parts) < 3:
        raise TextError("does not begin (language or translated keyword has no end)")
    if packed == b"\1":
        return _unpacked(method, parts[2], budget)
    budget.take(len(parts[2]))
    return parts[2]


def _unpacked(method: bytes, data: bytes, budget: Budget) -> bytes:
    if method != b"\0":
        raise TextError("is packed in an unknown way")
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(data, min(MAX_TEXT_BYTES, budget.left) + 1)
    except zlib.error as e:
        budget.take(min(MAX_TEXT_BYTES, budget.left))  # how much came out before is not known; the most it can be
        raise TextError(f"cannot be unpacked ({e})") from e
    budget.take(len(text))
    if len(text) > MAX_TEXT_BYTES:
        raise TextError(f"unpacks to more than {MAX_TEXT_BYTES:,} bytes")
    if not unpacker.eof:
        raise TextError("is cut off")
    return text


def with_texts(image: bytes, texts: Mapping[str, bytes], without: Collection[str], where: str) -> bytes:
    """The image with these texts as tEXt chunks before IEND, and without the text chunks of these keywords.

    Every other byte stays, wrong checksums and what follows IEND as well. ExchangeError if the image is no whole PNG.
    """
    found = read_chunks(image, where)
    end = next((c for c in found.chunks if c.kind == b"IEND"), None)
    if end is None:
        raise ExchangeError(f"{where}: the image is cut off ({found.cut or 'it has no end'}); give a whole one")
    return b"".join([SIGNATURE, *_pieces(image, found.chunks, end, texts, without), image[found.chunks[-1].end :]])


def _pieces(
    image: bytes, chunks: tuple[Chunk, ...], end: Chunk, texts: Mapping[str, bytes], without: Collection[str]
) -> Iterator[bytes]:
    for chunk in chunks:
        if chunk is end:
            for keyword, text in texts.items():
                yield chunk_bytes(b"tEXt", keyword.encode("latin-1") + b"\0" + text)
        if chunk.keyword.lower() not in without:
            yield image[chunk.start : chunk.end]


def chunk_bytes(kind: bytes, data: bytes) -> bytes:
    """A chunk as it stands in a file."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def placeholder() -> bytes:
    """A plain grey image of 96 x 144 pixels, for a card that has none."""
    width, height = 96, 144
    rows = (b"\0" + b"\xb4" * width) * height  # every row: filter 0, then 8-bit grey
    return SIGNATURE + b"".join(
        [
            chunk_bytes(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
            chunk_bytes(b"IDAT", zlib.compress(rows, 9)),
            chunk_bytes(b"IEND", b""),
        ]
    )

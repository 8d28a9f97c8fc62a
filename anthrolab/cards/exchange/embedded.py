"""Finding the card in a file: plain JSON, or base64 in the text chunks `ccv3` and `chara` of a PNG image."""

import base64
import binascii
from pathlib import Path

from anthrolab.cards.exchange.foreign import MAX_MARKS, Json, beyond, marks, parse_json, read_bounded
from anthrolab.cards.exchange.outcome import ExchangeError, Notes
from anthrolab.cards.exchange.png import MAX_FILE_BYTES, SIGNATURE, Budget, Chunk, TextError, read_chunks, text_of

KEYWORDS = ("ccv3", "chara")
"""Of V3 and of V1 or V2; where both stand, V3 counts (V3 specification, "PNG/APNG")."""

MAX_CARD_CHUNKS = 2
"""Chunks of one keyword that are looked into; a file has one."""
VALUE_BYTES = 40
"""Bytes that one JSON value counts for: a short one takes longer to parse than its own bytes."""
BLANKS = b" \t\n\r\f\v"

BACKFILL_NOTE = (
    "This character card is Character Card V3, but it is loaded as a Character Card V2. "
    "Please use a Character Card V3 compatible application to use this character card properly."
)
"""What a `chara` chunk beside a `ccv3` chunk says in its creator_notes, in the words of the V3 specification."""


def read_card(path: Path, notes: Notes) -> Json:
    """The card object of a .json or .png file; ExchangeError names what is wrong and the fix.

    If several cards are in an image, the first `ccv3` that can be read counts, else the first `chara`; of each keyword
    `MAX_CARD_CHUNKS` are looked into.
    """
    data = read_bounded(path, MAX_FILE_BYTES)
    if data.startswith(SIGNATURE):
        return _card_in_png(data, str(path), notes)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        return parse_json(data, str(path), notes)
    if data.startswith(b"PK\x03\x04"):
        raise ExchangeError(f"{path}: is a zip file (.charx?); take its card.json out and import that")
    raise ExchangeError(f"{path}: is neither a PNG image nor JSON; give a .png or .json card")


def _card_in_png(data: bytes, where: str, notes: Notes) -> Json:
    read = read_chunks(data, where)
    found = {k: [(i, c) for i, c in enumerate(read.chunks) if c.keyword.lower() == k] for k in KEYWORDS}
    cards: dict[str, Json] = {}
    why = ""
    budget = Budget()
    for keyword in KEYWORDS:
        if len(found[keyword]) > 1:
            notes.add("several_cards", keyword, f"{len(found[keyword])} chunks have this keyword; of the first {MAX_CARD_CHUNKS} the first that can be read counts")
        for number, chunk in found[keyword][:MAX_CARD_CHUNKS]:
            tried = Notes()
            try:
                cards[keyword] = _decode(chunk, where, budget, tried)
            except ExchangeError as e:
                why = why or str(e)
                notes.add("card_chunk_unreadable", keyword, str(e).removeprefix(f"{where}: "))
                continue
            _say_place(read.chunks, number, keyword, notes)
            for warning in tried.all:
                notes.add(warning.code, warning.field, warning.done)
            break
    if not cards:
        reason = why.removeprefix(f"{where}: ") or "has no card in it (no text chunk chara or ccv3)"
        cut = f"; {read.cut}" if read.cut else ""
        fix = "download or export the card anew, as the original file" if not why or cut else "export the card anew"
        raise ExchangeError(f"{where}: {reason}{cut}; {fix}")
    if read.cut:
        notes.add("png_cut", "file", f"{read.cut}; the rest was not read")
    if len(cards) == 2:
        _compare(cards["ccv3"], cards["chara"], notes)
    return cards.get("ccv3") or cards["chara"]


def _say_place(chunks: tuple[Chunk, ...], number: int, keyword: str, notes: Notes) -> None:
    before = {c.kind for c in chunks[:number]}
    if b"IEND" in before:
        notes.add("card_after_iend", keyword, "stands after the end of the image; many tools will not find it there")
    if not chunks[number].crc_right:
        notes.add("wrong_crc", keyword, "its checksum is wrong; the card was read all the same")


def _decode(chunk: Chunk, where: str, budget: Budget, notes: Notes) -> Json:
    keyword = chunk.keyword
    try:
        data = text_of(chunk, budget)
        if data.lstrip()[:1] == b"{":
            notes.add("not_base64", keyword, "holds plain JSON instead of base64; read as that")
        else:
            data = _from_base64(data, keyword, notes)
        budget.take(len(data) + VALUE_BYTES * min(marks(data), MAX_MARKS))
    except TextError as e:
        raise ExchangeError(f"{where}: chunk {keyword}: its text {e}") from e
    return parse_json(data, f"{where}: chunk {keyword}", notes)


def _from_base64(text: bytes, keyword: str, notes: Notes) -> bytes:
    plain = text.translate(None, BLANKS).rstrip(b"=")
    padded = plain + b"=" * (-len(plain) % 4)
    if padded != text:
        notes.add("base64_mended", keyword, "base64 with blanks in it or without its padding; read as if whole")
    try:
        return base64.b64decode(padded, validate=True)
    except binascii.Error as e:
        raise TextError(f"is not base64 ({e})") from e


def _compare(v3: Json, v2: Json, notes: Notes) -> None:
    """Say where the V2 card beside a V3 card tells something else (the note that it is a fallback aside)."""
    data, fallback = v3.get("data"), v2.get("data")
    if isinstance(data, dict) and isinstance(fallback, dict):
        differ = sorted(k for k in beyond(fallback, data) if k in data and k not in ("creator_notes", "extensions"))
        if differ:
            notes.add("cards_differ", ", ".join(differ)[:200], "chara says something else than ccv3; ccv3 counts")

"""Character Cards in PNG images, hostile ones first: an error or a named warning, in bounded memory, and never a crash."""

import base64
import json
import struct
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthrolab.cards.exchange import foreign, png
from anthrolab.cards.exchange.character_card import character_card, export_character_card, import_character_card
from anthrolab.cards.exchange.outcome import ExchangeError
from anthrolab.cards.exchange.png import SIGNATURE, chunk_bytes, placeholder, read_chunks
from anthrolab.errors import AnthrolabError
from anthrolab.yaml_files import MAX_CHARS
from tests.cards_for_tests import make_persona

MIB = 1024 * 1024
CARD = character_card(make_persona(), 3)
V2 = character_card(make_persona(), 2)


def packed(card: object) -> bytes:
    return base64.b64encode(json.dumps(card).encode())


def text(keyword: bytes, value: bytes) -> bytes:
    return chunk_bytes(b"tEXt", keyword + b"\0" + value)


def ztxt(keyword: bytes, value: bytes, method: bytes = b"\0") -> bytes:
    return chunk_bytes(b"zTXt", keyword + b"\0" + method + value)


def itxt(keyword: bytes, value: bytes, flags: bytes = b"\0\0") -> bytes:
    return chunk_bytes(b"iTXt", keyword + b"\0" + flags + b"zh\0" + "卡".encode() + b"\0" + value)


def image(*before_idat: bytes, before_end: bytes = b"", after: bytes = b"") -> bytes:
    plain = placeholder()
    idat = plain.index(b"IDAT") - 4
    end = plain.index(b"IEND") - 4
    return plain[:idat] + b"".join(before_idat) + plain[idat:end] + before_end + plain[end:] + after


def bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(1)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(megabytes)) + packer.flush()


def nested(levels: int) -> bytes:
    return b'{"spec": "chara_card_v2", "data": {"x": ' + b"[" * levels + b"]" * levels + b"}}"


GOOD = text(b"ccv3", packed(CARD))
HALF = text(b"chara", packed(CARD))[:-200]

REFUSED = {
    "no png": (b"GIF89a" + bytes(50), "is neither a PNG image nor JSON"),
    "zip": (b"PK\x03\x04" + bytes(50), "take its card.json out"),
    "empty": (b"", "is neither a PNG image nor JSON"),
    "signature alone": (SIGNATURE, "has no card in it"),
    "no card": (placeholder(), "no text chunk chara or ccv3"),
    "truncated": (image()[:-12] + HALF, "says that it has"),
    "length of 4 GB": (SIGNATURE + struct.pack(">I4s", 0xFFFFFFFF, b"tEXt") + b"chara\0" + bytes(99), "says that it has 4,294,967,295 bytes and 101 are there"),
    "length of 4 GB and nothing": (SIGNATURE + struct.pack(">I4s", 0xFFFFFFFF, b"tEXt"), "the file ends 8 bytes into a chunk"),
    "zip bomb zTXt": (image(ztxt(b"chara", bomb(256))), "its text unpacks to more than 11,534,336 bytes"),
    "zip bomb iTXt": (image(itxt(b"ccv3", bomb(256), b"\1\0")), "its text unpacks to more than 11,534,336 bytes"),
    "cut zTXt": (image(ztxt(b"chara", zlib.compress(packed(CARD))[:-9])), "its text is cut off"),
    "broken zTXt": (image(ztxt(b"chara", b"\xff\xff\xff")), "its text cannot be unpacked"),
    "unknown packing": (image(ztxt(b"chara", zlib.compress(b"{}"), b"\7")), "its text is packed in an unknown way"),
    "iTXt without end": (image(chunk_bytes(b"iTXt", b"chara\0\0\0zh")), "language or translated keyword has no end"),
    "no end of the keyword": (image(chunk_bytes(b"tEXt", b"chara")), "there is no end of the keyword"),
    "invalid base64": (image(text(b"chara", b"!!!!" * 9)), "its text is not base64"),
    "invalid base64 length": (image(text(b"chara", b"abcde")), "its text is not base64"),
    "invalid UTF-8": (image(text(b"chara", base64.b64encode(b'{"a": "\xff"}'))), "the card is not UTF-8 (byte 7)"),
    "no JSON": (image(text(b"chara", base64.b64encode(b"{'a': 1}"))), "the card is not valid JSON"),
    "JSON of another kind": (image(text(b"chara", base64.b64encode(b"[1]"))), "holds JSON but no object"),
    "deep JSON": (image(text(b"chara", base64.b64encode(nested(99_000)))), "is nested too deep"),
    "less deep JSON": (image(text(b"chara", base64.b64encode(nested(200)))), "is nested more than 80 levels deep"),
    "just too deep to keep": (image(text(b"chara", base64.b64encode(nested(70)))), "is nested more than 64 levels deep"),
    "many lists": (image(text(b"chara", base64.b64encode(b'{"a": [' + b"[]," * 200_001 + b"[]]}"))), "more than 200,000 values"),
    "many numbers": (image(text(b"chara", base64.b64encode(b'{"a": [' + b"0," * 200_001 + b"0]}"))), "more than 200,000 values"),
    "too many to keep": (image(text(b"chara", packed({"name": "x", "a": [0] * 120_000}))), "holds more than 99,000 values"),
    "huge number": (image(text(b"chara", base64.b64encode(b'{"a": ' + b"9" * 9999 + b"}"))), "not valid JSON"),
    "infinite number": (image(text(b"chara", base64.b64encode(b'{"a": 1e999}'))), "too large for a number"),
    "NaN": (image(text(b"chara", base64.b64encode(b'{"a": NaN}'))), "NaN is no JSON number"),
    "too much JSON": (image(text(b"chara", base64.b64encode(b'{"a": "' + b"x" * 8_400_000 + b'"}'))), "more than 8,388,608 bytes"),
    "too much to keep": (image(text(b"chara", packed({"name": "x" * 4_000_000}))), "more than 900,000 characters"),
    "too many chunks": (SIGNATURE + chunk_bytes(b"abCd", b"") * 30_000, "has more than 20,000 chunks"),
    "no card object": (image(text(b"chara", packed({"spec": "chara_card_v2", "data": []}))), "is no Character Card"),
    "something else": (image(text(b"chara", packed({"prompt": "a cat"}))), "is no Character Card"),
}  # fmt: skip


def write(folder: Path, data: bytes, name: str = "卡片.png") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


@pytest.mark.parametrize("case", REFUSED)
def test_a_hostile_file_is_refused_with_name_and_reason_in_little_memory(case: str, tmp_path: Path) -> None:
    data, reason = REFUSED[case]
    path = write(tmp_path, data)
    tracemalloc.start()
    try:
        with pytest.raises(ExchangeError) as refused:
            import_character_card(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = str(refused.value)
    assert said.startswith(f"{path}: ") and reason in said and "\n" not in said
    assert peak < 64 * MIB, f"{peak / MIB:.0f} MiB"


READ = {
    "tEXt": (image(GOOD), []),
    "zTXt": (image(ztxt(b"ccv3", zlib.compress(packed(CARD)))), []),
    "iTXt": (image(itxt(b"ccv3", packed(CARD))), []),
    "packed iTXt": (image(itxt(b"ccv3", zlib.compress(packed(CARD)), b"\1\0")), []),
    "after IDAT": (image(before_end=GOOD), []),
    "after IEND": (image(after=GOOD), ["card_after_iend"]),
    "capital keyword": (image(text(b"Chara", packed(V2))), []),
    "wrong CRC": (image(GOOD[:-4] + b"\0\0\0\0"), ["wrong_crc"]),
    "blanks in base64": (image(text(b"ccv3", packed(CARD)[:40] + b"\r\n" + packed(CARD)[40:])), ["base64_mended"]),
    "no padding": (image(text(b"ccv3", base64.b64encode(json.dumps(CARD).encode() + b" " * (1 + -len(json.dumps(CARD)) % 3)).rstrip(b"="))), ["base64_mended"]),
    "plain JSON": (image(itxt(b"ccv3", json.dumps(CARD, ensure_ascii=False).encode())), ["not_base64"]),
    "byte order mark": (image(text(b"ccv3", base64.b64encode(b"\xef\xbb\xbf" + json.dumps(CARD).encode()))), ["byte_order_mark"]),
    "cut after the card": (image(GOOD)[:-14], ["png_cut"]),
    "rubbish after the end": (image(GOOD, after=b"\0\0\0\1?!?!" + bytes(99)), ["png_cut"]),
    "both": (image(GOOD, text(b"chara", packed(V2))), []),
    "V2 before V3": (image(text(b"chara", packed(character_card(make_persona(name="别人"), 2))), GOOD), ["cards_differ"]),
    "V3 unreadable": (image(text(b"ccv3", b"????"), text(b"chara", packed(V2))), ["card_chunk_unreadable"]),
    "twice": (image(GOOD, text(b"ccv3", packed({"name": "other"}))), ["several_cards"]),
    "the first broken": (image(text(b"ccv3", b"????"), GOOD), ["several_cards", "card_chunk_unreadable"]),
    "chunk without keyword": (image(chunk_bytes(b"tEXt", b""), GOOD), []),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_a_card_is_found_wherever_it_stands_and_every_repair_is_named(case: str, tmp_path: Path) -> None:
    data, codes = READ[case]
    imported = import_character_card(write(tmp_path, data))
    assert imported.card == make_persona()
    assert [w.code for w in imported.warnings] == codes


def test_warnings_of_one_kind_do_not_pile_up(tmp_path: Path) -> None:
    body = b'{"spec": "chara_card_v2", "data": {"name": "x", "x": [' + b'{"a": 1, "a": 2},' * 9_000 + b"0]}}"
    said = [w for w in import_character_card(write(tmp_path, body, "x.json")).warnings if w.code == "duplicate_key"]
    assert len(said) == 51 and said[-1].done == "8950 more like this"


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    with path.open("wb") as f:
        f.write(SIGNATURE)
        f.truncate(3_000 * MIB)  # takes no space on the disk
    tracemalloc.start()
    try:
        with pytest.raises(ExchangeError, match="has more than 33,554,432 bytes"):
            import_character_card(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * png.MAX_FILE_BYTES


@pytest.mark.parametrize("name", ["", "nicht da.png"])
def test_no_file_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(ExchangeError, match="is no file"):
        import_character_card(tmp_path / name)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_file_is_refused_or_read_but_never_crashes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(image(ztxt(b"chara", zlib.compress(packed(V2))), itxt(b"ccv3", packed(CARD)), GOOD))
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=12)):
        whole[at] = byte
    cut = data.draw(st.integers(0, len(whole)))
    path = write(tmp_path_factory.mktemp("x"), bytes(whole[:cut] if data.draw(st.booleans()) else whole))
    try:
        imported = import_character_card(path)
    except AnthrolabError:
        return
    assert imported.card is not None or imported.problems


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"", SIGNATURE, SIGNATURE + placeholder()[8:33]]))
def test_any_bytes_are_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: bytes, start: bytes) -> None:
    with pytest.raises(AnthrolabError):
        import_character_card(write(tmp_path_factory.mktemp("x"), start + data))


def test_writing_keeps_every_other_byte_of_the_image(tmp_path: Path) -> None:
    wrong_crc = text(b"Comment", "像".encode("gbk"))[:-4] + b"\1\2\3\4"
    asset = text(b"chara-ext-asset_:main", b"aGFsbG8=")
    old = [text(b"chara", packed({"name": "old"})), ztxt(b"ccv3", zlib.compress(b"{}")), itxt(b"Chara", b"{}")]
    base = write(tmp_path, image(old[0], wrong_crc, asset, old[1], before_end=chunk_bytes(b"prVt", b"\0\xff"), after=old[2] + b"tail?!"), "底图.png")
    export_character_card(make_persona(), tmp_path / "出.png", image=base)
    written = (tmp_path / "出.png").read_bytes()
    ours = [c for c in read_chunks(written, "x").chunks if c.keyword in ("ccv3", "chara")]
    assert [c.keyword for c in ours] == ["ccv3", "chara"] and all(c.kind == b"tEXt" and c.crc_right for c in ours)
    for chunk in ours:
        written = written.replace(bytes(chunk_bytes(chunk.kind, bytes(chunk.data))), b"")
    assert written == image(wrong_crc, asset, before_end=chunk_bytes(b"prVt", b"\0\xff"), after=b"tail?!")
    assert import_character_card(tmp_path / "出.png").card == make_persona()


def test_a_version_2_image_has_no_version_3_card_left(tmp_path: Path) -> None:
    base = write(tmp_path, image(GOOD))
    export_character_card(make_persona("p91", "周子航"), tmp_path / "x.png", version=2, image=base)
    assert [c.keyword for c in read_chunks((tmp_path / "x.png").read_bytes(), "x").chunks if c.keyword] == ["chara"]


def test_a_cut_image_is_not_written_into(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="the image is cut off"):
        export_character_card(make_persona(), tmp_path / "x.png", image=write(tmp_path, image()[:-3]))
    assert not (tmp_path / "x.png").exists()


def test_the_placeholder_is_a_png_that_holds_the_pixels_it_says() -> None:
    chunks = {bytes(c.kind): c for c in read_chunks(placeholder(), "x").chunks}
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"].data[:10])
    assert (depth, colour) == (8, 0) and all(c.crc_right for c in chunks.values())
    assert len(zlib.decompress(chunks[b"IDAT"].data)) == height * (width + 1)


def test_the_limits_leave_room_for_what_an_export_holds_twice() -> None:
    assert 2 * 4 * foreign.MAX_KEPT_CHARS < foreign.MAX_JSON_BYTES and foreign.MAX_KEPT_CHARS < MAX_CHARS
    assert foreign.MAX_JSON_BYTES * 4 // 3 < png.MAX_TEXT_BYTES < png.MAX_FILE_BYTES

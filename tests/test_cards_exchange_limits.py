"""What a hostile image may cost, counted in bytes that are unpacked and parsed and in memory, not in seconds."""

import base64
import json
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest

from anthrolab.cards.exchange import png
from anthrolab.cards.exchange.character_card import import_character_card
from anthrolab.cards.exchange.embedded import MAX_CARD_CHUNKS
from anthrolab.cards.exchange.outcome import ExchangeError
from tests.cards_for_tests import make_persona
from tests.test_cards_exchange_png import GOOD, MIB, V2, image, packed, text, write, ztxt

KEYS = b'{"data": {' + b",".join(b'"\\ud800%d":0' % i for i in range(199_000))
HOSTILE = {
    "blanks": b"ab " * (11 * MIB // 3),
    "broken JSON": base64.b64encode(b'{"a": "' + b"x" * (8 * MIB - 20)),
    "halves of characters": base64.b64encode(KEYS + b',"z":' + b"[" * 90 + b"]" * 90 + b"}}"),
    "packed too large": b"x" * (12 * MIB),
}


class Unpacker:
    """zlib's own, which says how much came out."""

    unpack = staticmethod(zlib.decompressobj)

    def __init__(self, sizes: list[int]) -> None:
        self.real, self.sizes = self.unpack(), sizes

    def decompress(self, data: bytes, limit: int) -> bytes:
        made = self.real.decompress(data, limit)
        self.sizes.append(len(made))
        return made

    @property
    def eof(self) -> bool:
        return self.real.eof


class Spent:
    """The bytes that really go through zlib and the JSON parser."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.unpacked: list[int] = []
        self.parsed: list[int] = []
        loads = json.loads

        def counted(data: str, **options: Any) -> Any:
            self.parsed.append(len(data))
            return loads(data, **options)

        patch.setattr(json, "loads", counted)
        patch.setattr(zlib, "decompressobj", lambda: Unpacker(self.unpacked))


@pytest.mark.parametrize("case", HOSTILE)
def test_all_card_chunks_of_a_file_share_one_budget(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = zlib.compress(HOSTILE[case], 1)
    path = write(tmp_path, image(*[ztxt(keyword, body) for keyword in (b"ccv3", b"chara") for _ in range(8)]))
    spent = Spent(monkeypatch)
    tracemalloc.start()
    try:
        with pytest.raises(ExchangeError, match="ccv3"):
            import_character_card(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert spent.unpacked and sum(spent.unpacked) + sum(spent.parsed) <= png.MAX_CARD_BYTES + 4 * MAX_CARD_CHUNKS
    assert len(spent.parsed) <= 2  # values count as well as bytes
    assert peak < 96 * MIB, f"{peak / MIB:.0f} MiB"


def test_of_a_keyword_two_chunks_are_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = text(b"ccv3", base64.b64encode(b"{"))
    spent = Spent(monkeypatch)
    imported = import_character_card(write(tmp_path, image(*[broken] * 5, GOOD, text(b"chara", packed(V2)))))
    assert imported.card == make_persona()
    assert [w.code for w in imported.warnings] == ["several_cards", "card_chunk_unreadable", "card_chunk_unreadable"]
    assert "6 chunks" in imported.warnings[0].done and spent.parsed.count(1) == 2


def test_a_card_read_before_the_budget_was_spent_counts(tmp_path: Path) -> None:
    heavy = zlib.compress(HOSTILE["broken JSON"], 1)
    data = image(ztxt(b"ccv3", heavy), GOOD, ztxt(b"chara", heavy), ztxt(b"chara", heavy))
    imported = import_character_card(write(tmp_path, data))
    assert imported.card == make_persona()
    said = [w.done for w in imported.warnings if w.code == "card_chunk_unreadable"]
    assert ["may count 39,845,888 bytes together" in line for line in said] == [False, False, True]

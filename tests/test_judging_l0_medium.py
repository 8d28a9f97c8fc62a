"""L0-02 on lines written before the rules were measured on them (tests/data/l0/medium_fresh.jsonl), and by frame."""

import re

import pytest

from anthrolab.judging.l0 import medium
from anthrolab.judging.l0.medium import calls, handing, money, pictures
from tests.test_judging_l0_rules import gate_text, of, rows

ROWS = rows("medium_fresh.jsonl")
KNOWN_MISSES = {
    "给你唱了一句 语音点开听",
    "上图 中间那个是我爸",
    "你语音我没听清 打字吧",
    "刚那条语音你别放出来 旁边有人",
    "你视频打过来吧我接——诶接了接了 听得见吗",
    "给闺女发的红包你点了没",
}
"""What no frame reads: the thing is named without a verb of sending, or is asked about."""


def found(text: str, *before: str) -> list[tuple[int, str]]:
    return of(gate_text(text, list(before)), "L0-02")


def test_media_are_found_but_for_the_known_misses() -> None:
    hits = [row for row in ROWS if row["hit"]]
    assert len(hits) >= 310
    assert {row["text"] for row in hits if not found(row["text"], *row.get("before", []))} <= KNOWN_MISSES


def test_no_look_alike_is_a_medium() -> None:
    looks = [row for row in ROWS if not row["hit"]]
    assert len(looks) >= 370
    flagged = {row["text"]: said for row in looks if (said := found(row["text"], *row.get("before", [])))}
    assert flagged == {}


def test_the_evidence_is_the_span() -> None:
    assert found("在吗 定位发你了 跟着走") == [(0, "定位发你了")]
    for row in ROWS:
        for _, evidence in found(row["text"], *row.get("before", [])):
            assert evidence in row["text"] and evidence == evidence.strip()


@pytest.mark.parametrize("thing", ["照片", "文件", "定位", "名片", "收款码", "电子发票", "链接", "录音", "那张表"])
def test_a_thing_in_every_order_of_words(thing: str) -> None:
    for said in ("{}发你了", "{}我发你了", "{}给你发过去了", "你发的{}打不开", "我把{}发给你了", "{}传过来了"):
        assert found(said.format(thing)), said.format(thing)


@pytest.mark.parametrize("frame", ["一会儿{}", "明天{}", "要不{}", "我想{}", "等我回去{}", "能{}吗", "如果{}"])
def test_a_plan_is_none(frame: str) -> None:
    assert found("我把定位发你")
    assert found(frame.format("把定位发你")) == []
    assert found("我转你三百") and found("我转你三百吧") == []


@pytest.mark.parametrize(
    "text", ["文件发你邮箱了", "照片发群里了", "照片寄给你了", "单子发客户了", "钱转到他卡上了", "他给我转了三百", "我妈打视频来了", "你朋友圈那张照片好看", "方案发过去了 客户还没回", "我姐给你转了五百"],
)
def test_another_channel_or_person_is_none(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("before", "text", "sent"),
    [
        ("表格呢 发我", "发你了", True), ("快递发了没", "发了", False), ("表格发我邮箱", "发你了", False), ("把地址发我", "发你了", False),
        ("拍来看看", "拍了 你看", True), ("拍来看看", "拍了 没拍好 删了", False), ("红包领了没", "领了", True), ("在吗", "发你了", False),
        ("我刚发你的表格你看了吗", "看了看了 第二行数不对", True), ("我刚发的消息你看了吗", "看了", False),
        ("我发朋友圈了 看到没", "你那张照片好看", False), ("视频发群里没", "视频发过去了", False), ("快递寄了", "视频先挂了", True),
    ],
)  # fmt: skip
def test_a_bare_verb_means_what_was_asked_for(before: str, text: str, sent: bool) -> None:
    assert bool(found(text, before)) is sent


@pytest.mark.parametrize("face", ["[强][玫瑰]", "[红包]", "[礼物]生日快乐", "[捂脸]", "[转圈]", "[發]"])
def test_the_faces_of_the_messenger_are_text(face: str) -> None:
    assert found(face) == []


@pytest.mark.parametrize("written", ["[图片]", "[转账]500元", "（转账88元）", "[位置]", "[视频通话 03:21]", "[动画表情]", "报价单.xlsx", "[微信红包]"])
def test_a_medium_written_out(written: str) -> None:
    assert found(written)


@pytest.mark.parametrize("call", ["视频", "语音", "视频通话", "语音电话"])
@pytest.mark.parametrize("trouble", ["太卡了", "断了", "没声音"])
def test_a_call_that_broke_off(call: str, trouble: str) -> None:
    assert found(f"刚才那个{call}{trouble} 我先挂了 打字说")
    assert found(f"开会{call}{trouble} 我先挂了") == []


@pytest.mark.parametrize("said", ["收到你的{}了", "收到你的{}啦 谢谢", "{}收到了"])
@pytest.mark.parametrize("thing", ["红包", "转账", "照片", "定位"])
def test_a_thing_received(said: str, thing: str) -> None:
    assert found(said.format(thing))
    if said.startswith("收到"):
        assert found("没" + said.format(thing)) == []


def test_the_shortcuts_shut_no_frame_out() -> None:
    rooms = (
        *zip((pictures._SENT, pictures._RECEIVED), pictures.patterns(), strict=True),
        *zip((handing._SENT, handing._RECEIVED), handing.patterns(), strict=True),
        *zip((money._SENT, money._RECEIVED), money.patterns(), strict=True),
        (calls._FRAMES, calls.pattern()),
    )
    for frames, pattern in rooms:
        slow = re.compile("|".join(frames), re.IGNORECASE)
        read = [row["text"] for row in ROWS if slow.search(row["text"])]
        assert read and all(pattern.search(text) for text in read)
        assert not [text for text in read if medium._ACTS.isdisjoint(text)]
        if frames in (money._SENT, money._RECEIVED):
            assert not [text for text in read if medium._MONEY.isdisjoint(text)]
        if frames is calls._FRAMES:
            assert not [text for text in read if medium._CALLING.isdisjoint(text)]

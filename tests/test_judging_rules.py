"""The rules judge: hits and near misses of every rule, natural chats and their bad twins."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from anthrolab.cards.persona import ExpressionHabits, Persona
from anthrolab.judging.rubric import Rubric, RubricError, load_rubric
from anthrolab.judging.rules import DIALOGUE_RULES, ONE_SIDED, TURN_RULES, RulesJudge, rule_boxes
from anthrolab.judging.rules.habits import chinese_number, usual_length
from anthrolab.judging.rules.scene import Scene
from anthrolab.judging.rules.signals import is_filler, is_question, is_real_question
from anthrolab.judging.scores import case_score, coverage, failed_boxes
from anthrolab.judging.verdict import Verdict
from anthrolab.runtime.dialogue import Ask, Decision, Dialogue, Draft, Message, Participant, Speaker
from tests.cards_for_tests import make_persona, make_scenario

DATA = Path(__file__).parent / "data" / "judging"
RUBRIC = load_rubric()
JUDGE = RulesJudge(RUBRIC)
PEOPLE: dict[Speaker, Persona] = {"a": make_persona(), "b": make_persona("p91", "周子航", 29)}

Row = tuple[Speaker, int, str]
"""Speaker, seconds since the message before, content."""


def chat(rows: Sequence[Row], role: Speaker = "a", start: str = "2026-03-06T20:31:00") -> Dialogue:
    """The first message is the opener."""
    at, messages = datetime.fromisoformat(start), []
    for number, (speaker, seconds, content) in enumerate(rows):
        at += timedelta(seconds=seconds)
        messages.append(Message(speaker=speaker, content=content, at=at, opener=number == 0))
    speakers: dict[Speaker, Participant] = {"a": Participant(name="林晓雯"), "b": Participant(name="周子航")}
    return Dialogue(dialogue_id="d", evaluated_role=role, speakers=speakers, messages=messages)


def on_text(rule: str, text: str) -> bool | None:
    """What a turn rule says of a message after an opener and a minute's pause."""
    return TURN_RULES[rule](Scene(chat([("b", 0, "在干嘛"), ("a", 60, text)])), 1).passed


def on_last(rule: str, rows: Sequence[Row], persona: Persona | None = None) -> bool | None:
    """What a turn rule says of the last message."""
    return TURN_RULES[rule](Scene(chat(rows), persona), len(rows) - 1).passed


def on_chat(rule: str, rows: Sequence[Row], **options: str) -> bool | None:
    return DIALOGUE_RULES[rule](Scene(chat(rows, **options))).passed  # type: ignore[arg-type]


def own(*texts: str, partner: str = "然后怎么样了呀你说说看") -> list[Row]:
    """The texts as messages of the evaluated role, each after one of the partner."""
    rows: list[Row] = []
    for text in texts:
        rows += [("b", 20, partner), ("a", 20, text)]
    return rows


TEXTS: dict[str, dict[bool | None, list[str]]] = {
    "no_essay_connectors": {
        False: ["首先我们要明确目标，其次要制定计划", "综上所述还是去吧", "此外还有一点", "总的来说挺好的", "值得注意的是明天下雨",
                "一方面要省钱，另一方面要吃好", "第一，要早起；第二，要吃饭", "因此我觉得，同时，也要考虑别人", "由此可见他不行", "方法如下："],
        None: ["首先 你得有个对象", "因此我就没去", "鉴于你表现不错", "另外，帮我带瓶水"],
        True: ["然而并没有", "其实也还好", "而且他还迟到", "反正我不去", "先吃饭再说", "第一次去那儿", "再说吧", "不过有点贵", "后来呢", "最后一班车了"],
    },
    "no_service_tone": {
        False: ["很高兴为您服务", "有什么可以帮助你的吗", "希望这些对你有所帮助！", "如果还有其他问题欢迎随时告诉我", "建议您早点休息",
                "感谢您的理解与支持", "作为一个AI我没法吃饭", "以下是几点建议", "我完全理解你的感受", "让我来为你分析一下", "我很乐意帮你解答"],
        None: ["您吃了吗", "你建议我买哪个", "希望你没事", "温馨提示 今天降温", "有什么能帮你的你就说"],
        True: ["这咋弄啊", "我帮你拿吧", "我懂你 换我也气", "没事有我呢", "客服又不理我", "问题不大", "随便你啦", "高兴死了", "别客气啊", "他那服务态度绝了"],
    },
    "chat_form": {
        False: ["**重点**是早睡", "# 计划\n早睡", "1. 早睡\n2. 早起", "建议：1. 早睡 2. 早起", "- 苹果\n- 梨", "```print```", "*微笑着看着你*",
                "（轻声叹了口气）算了", "亲爱的晓雯：见信好", "一、早睡\n二、早起", "<b>好</b>", "此致\n敬礼"],
        None: [],
        True: ["（不是", "3.5折", "2*3*4等于24", "8.1到8.3放假", "行（小声）", "他就是那个*", "1.5升的水", "第一 我没说过", "~~~~", "[捂脸]", "a-b-c"],
    },
    "no_over_explaining": {
        False: ["也就是说你不去 换句话说我白等了", "简单来说就是贵 具体来说是三百", "之所以没去是因为下雨 这意味着白买了",
                "一般来说不会 " + "这种事情我以前也遇到过好几次" * 6],
        None: ["一般来说不会", "之所以没去是因为下雨嘛", "今天跟他说了半天他就是不听我也没办法只能先这样了回头再看"],
        True: ["因为下雨", "所以呢", "说白了就是穷", "比如说你", "我解释过了", "懒得说", "就这样", "也就那样", "你说呢", "挺简单的"],
    },
    "no_back_office_claims": {
        False: ["已经为您取消订单", "已为您提交申请", "系统已为您办理", "后台正在给你处理", "我已经替你修改订单了", "已帮您预约", "已经给您重置密码",
                "系统已经帮你开通", "已为您查询到结果", "已经为你提交退款申请"],
        None: ["我给你订好了", "我订单还没发货", "帮你问了", "系统又崩了", "已经帮你跟老板说了"],
        True: ["我订好了", "查了下明天有雨", "改天吧", "票取消了 烦", "我下单了", "办好了", "已经走了", "退了", "约好周六", "我交了申请"],
    },
    "no_borrowed_authority": {
        False: ["研究表明早睡好", "从医学的角度来说要多喝水", "数据显示房价会跌", "专家指出要少吃盐", "根据相关研究这样不行", "建议咨询专业人士",
                "从心理学角度你是焦虑", "科学证明猫很聪明", "调查显示年轻人都穷", "你可以寻求专业的帮助"],
        None: ["专家建议你闭嘴哈哈", "有研究说喝咖啡好", "他学医学的", "按规定不行", "理论上可以"],
        True: ["我妈说多喝水", "我上次也这样", "听说要降温", "好像是吧我也不懂", "我爸就这毛病", "网上说的", "我试过没用", "医生让我歇着",
               "我觉得行", "老师说要带笔"],
    },
    "readable_text": {
        False: ["锟斤拷锟斤拷", "好的\ufffd\ufffd", "<|im_end|>user", "[20:31:05] 周子航: 好", '{"role": "周子航"}', "的的的的的的的的的的的的的的",
                "我觉得好我觉得好我觉得好我觉得好我觉得好", "I think the house is very good", "это очень хорошо да", "好\x07的",
                "今天天气：不错，", "assistant: 好", "안녕하세요 저는 학생이에요"],
        None: ["Stranger Things"],
        True: ["哈哈哈哈哈哈哈哈哈哈哈哈哈哈", "6666666666666666", "啊啊啊啊啊啊啊啊啊啊啊啊", "ok la", "(๑•̀ㅂ•́)و✧", "(ﾟДﾟ)", "iPhone 15 Pro Max啊",
                 "……………………", "不不不不不", "AA制", "wifi密码多少", "😂😂😂😂😂😂", "有点の贵", "https://t.cn/abc", "等等等等"],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "answer", "text"),
    [(rule, answer, text) for rule, lists in TEXTS.items() for answer, texts in lists.items() for text in texts],
)
def test_wording_rules_on_hits_and_near_misses(rule: str, answer: bool | None, text: str) -> None:
    if rule == "readable_text":
        rows: list[Row] = [("b", 0, "在干嘛"), ("a", 60, text), ("b", 20, "嗯")]
        assert TURN_RULES[rule](Scene(chat(rows)), 1).passed is answer
    else:
        assert on_text(rule, text) is answer


def test_a_sentence_that_goes_on_in_the_next_message_is_not_broken_off() -> None:
    rows: list[Row] = [("b", 0, "咋了"), ("a", 20, "我跟你说，"), ("a", 4, "他辞职了")]
    assert TURN_RULES["readable_text"](Scene(chat(rows)), 1).passed is True


@pytest.mark.parametrize(
    ("length", "typical", "answer"),
    [
        (25, "一条五六个字", True), (40, "一条五六个字", None), (61, "一条五六个字", False),
        (60, "一条十五到三十个字", True), (121, "一条十五到三十个字", False), (40, "话少", True), (41, "话少", None),
        (121, "话少", False), (61, "一条五六个字，说正经事时来条长的", None), (1, "一条二十到四十字", True),
    ],
)  # fmt: skip
def test_message_length_goes_by_the_card(length: int, typical: str, answer: bool | None) -> None:
    habits = ExpressionHabits(catchphrases=[], punctuation="随意", emoji="少", typical_length=typical)
    assert on_last("message_length", [("b", 0, "咋了"), ("a", 60, "字" * length)], make_persona(expression_habits=habits)) is answer


def test_numbers_in_cards() -> None:
    assert [chinese_number(t) for t in ("9", "十", "十几"[:1], "二十", "三五", "一百五十")] == [9, 10, 10, 20, 5, 150]
    assert usual_length("一条两到八个字，五六条连着蹦；心虚时变成一个字一条") == 8
    assert usual_length("一条十来个字到二十几个字") == 20
    assert usual_length("话少，两三条连发") is None


@pytest.mark.parametrize(
    ("earlier", "text", "answer"),
    [
        ("你现在在做什么工作呢", "你现在在做什么工作呢！", False),
        ("你现在在做什么工作呢", "你现在做什么工作呢", False),
        ("哈哈哈哈哈哈哈哈", "哈哈哈哈哈哈哈哈", None),
        ("先这样 我先忙了", "先这样", None),
        ("周六下午三点", "周日下午三点见哈", None),
        ("我刚到家 累死我了今天", "我刚到公司 今天又下雨", None),
        ("我跟你说那个房东他又来涨房租", "真的烦 我跟你说那个房东他又来涨房租了", False),
    ],
)
def test_near_copies(earlier: str, text: str, answer: bool | None) -> None:
    assert on_last("not_a_near_copy", [("b", 0, "咋"), ("a", 30, earlier), ("b", 30, "哦"), ("a", 30, text)]) is answer


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        ([("a", 9, "嗯"), ("a", 5, "嗯嗯")], False),
        ([("a", 9, "哈哈"), ("a", 5, "好的"), ("a", 5, "嗯")], False),
        ([("a", 9, "嗯"), ("b", 9, "我说的你听了没"), ("a", 9, "哦"), ("b", 9, "唉"), ("a", 9, "嗯嗯"), ("b", 9, "？"), ("a", 9, "哦哦")], False),
        ([("a", 9, "😂"), ("a", 5, "哈哈"), ("a", 5, "🤣")], False),
        ([("a", 9, "哈哈哈"), ("a", 5, "好嘞")], True),
        ([("a", 9, "嗯"), ("b", 9, "那就周六"), ("a", 9, "嗯嗯")], True),
        ([("a", 9, "嗯"), ("a", 5, "那行吧周六见")], True),
        ([("b", 9, "嗯"), ("b", 9, "哦"), ("a", 9, "嗯")], True),
        ([("a", 9, "知道了"), ("a", 9, "谢谢")], True),
    ],
)  # fmt: skip
def test_filler_bursts(rows: list[Row], answer: bool) -> None:
    assert on_last("no_filler_burst", [("b", 0, "周六去吗"), *rows]) is answer


def test_typing_habits_need_a_card_that_rules_something_out() -> None:
    def says(text: str, punctuation: str, emoji: str, earlier: Sequence[str] = ()) -> bool | None:
        habits = ExpressionHabits(catchphrases=["我服了"], punctuation=punctuation, emoji=emoji, typical_length="短")
        rows: list[Row] = [("b", 0, "咋了"), *(("a", 30, e) for e in earlier), ("a", 60, text)]
        return on_last("typing_habits", rows, make_persona(expression_habits=habits))

    assert says("好。", "不打句号，用空格", "用[捂脸]") is False
    assert says("好[捂脸]", "随意", "不用") is False
    assert says("好😂", "随意", "从不发表情") is False
    assert says("好", "不打句号", "不用") is True
    assert says("好", "不打句号", "用[捂脸]") is None
    assert says("好。", "很少打标点", "用😂") is None
    assert says("好。", "不打句号，但生气时单发一个", "用😂") is None
    assert says("好🙏", "随意", "几乎不用，谢人的时候打一个🙏") is None
    assert says("我服了啊", "随意", "少", ["我服了", "我服了呀", "真的我服了"]) is False
    assert says("我服了啊", "随意", "少", ["我服了", "啥", "真的我服了"]) is None
    assert on_last("typing_habits", [("b", 0, "咋了"), ("a", 60, "好。")]) is None


def test_segment_count() -> None:
    def burst(n: int, gap: int = 5) -> bool | None:
        return on_last("segment_count", [("b", 0, "咋了"), *(("a", gap, f"第{i}句话") for i in range(n))])

    assert [burst(n) for n in (1, 4, 5, 6, 8)] == [True, True, None, False, False]
    assert burst(8, gap=300) is True
    packed = "他昨天来了又走了不知道想干嘛。我问他吃了没他也不说。后来我妈打电话来了。我就没管他。今天他又来。烦死我了真是的唉，你说他到底想干什么呢"
    assert on_last("segment_count", [("b", 0, "咋了"), ("a", 60, packed)]) is False
    assert on_last("segment_count", [("b", 0, "咋了"), ("a", 60, "他来了。又走了。我没管。烦。真的。")]) is True


def test_typing_time() -> None:
    long = "等我把碗刷完再把地拖了然后洗个澡就上来陪你们打两把"

    def says(rows: list[Row]) -> bool | None:
        return on_last("typing_time", rows)

    assert says([("a", 0, "上号"), ("a", 1, long)]) is False
    assert says([("b", 0, "上号"), ("a", 0, long)]) is False
    assert says([("b", 0, "上号"), ("a", 20, long)]) is True
    assert says([("b", 0, "上号"), ("a", 1, "来了")]) is True
    # typed while the partner was typing: the own last message is long ago
    assert says([("b", 0, "上号"), ("a", 5, "好"), ("b", 40, "快点"), ("a", 1, long)]) is None
    assert says([("b", 0, "上号"), ("a", 30, "等"), ("a", -10, "来了")]) is False
    assert says([("b", 0, "上号"), ("a", 60, "等"), ("a", 0, long)]) is None  # a source that keeps full minutes only


def test_typing_time_goes_by_the_recorded_asks() -> None:
    dialogue = chat([("b", 0, "上号"), ("a", 40, "好"), ("b", 10, "快点"), ("a", 2, "我把碗刷完再把地拖了洗个澡就上来")])
    start, message = dialogue.messages[2].at, dialogue.messages[3]
    decision = Decision(content=message.content, at=message.at, end=False)
    fresh = Ask(speaker="a", now=start, decision=decision)
    dialogue.asks = [fresh]
    assert TURN_RULES["typing_time"](Scene(dialogue), 3).passed is None  # 17 characters in 2 s: fast, not impossible
    draft = Draft(content=message.content, at=message.at)
    first = Ask(speaker="a", now=dialogue.messages[1].at, decision=decision)
    dialogue.asks = [first, Ask(speaker="a", now=start, previous_draft=draft, decision=decision)]
    assert TURN_RULES["typing_time"](Scene(dialogue), 3).passed is True  # a draft kept for 12 s
    dialogue.messages[3] = message.model_copy(update={"at": start + timedelta(seconds=1)})
    decision = Decision(content=message.content, at=dialogue.messages[3].at, end=False)
    dialogue.asks = [Ask(speaker="a", now=start, decision=decision)]
    assert TURN_RULES["typing_time"](Scene(dialogue), 3).passed is False


@pytest.mark.parametrize(
    ("rows", "answer"),
    [
        (own("你预算大概多少呀", "哦", "你预算大概是多少呀"), False),
        (own("你周六几点出发", "好", "嗯", "你周六几点出发啊"), False),
        (own("你干嘛", "哦", "你干嘛？", "嗯", "你干嘛"), False),
        (own("咋了", "咋了", "咋了"), True),
        (own("你吃饭没", "那明天几点见"), True),
        (own("好的呀我知道啦", "行 我带水"), True),
        ([("b", 0, "嗨"), ("a", 9, "你在哪个门等我呀"), ("a", 90, "你在哪个门等我呀")], None),
        (own("周六下午几点去打球", "周日下午几点去打牌"), None),
    ],
)
def test_repeated_questions(rows: list[Row], answer: bool | None) -> None:
    assert on_chat("no_repeated_question", rows) is answer


@pytest.mark.parametrize(
    ("texts", "answer"),
    [
        (["晓雯，你下班没"], False), (["林晓雯你吃饭没"], False), (["我是周子航啊"], False), (["晓雯！"], False),
        (["子航你到哪了"], True), (["周子航 你别闹"], True), (["我是林晓雯啊"], True), (["子航！"], True),
        (["你到哪了"], None), (["我跟子航说了"], None), (["晓雯我都不认识"], None), (["我是周子航的同事"], None),
    ],
)  # fmt: skip
def test_names(texts: list[str], answer: bool | None) -> None:
    assert on_chat("who_is_who", own(*texts)) is answer


def test_an_own_question_answered_by_oneself() -> None:
    assert on_chat("who_is_who", [("b", 0, "抽签了"), ("a", 20, "对手是老邮电吗？"), ("a", 30, "是的，谢谢你")]) is False
    assert on_chat("who_is_who", [("b", 0, "抽签了"), ("a", 20, "对手是老邮电吗？"), ("a", 30, "是不是啊")]) is None
    assert on_chat("who_is_who", [("a", 20, "去吗？"), ("b", 30, "去"), ("a", 9, "好的")]) is None


@pytest.mark.parametrize(
    ("text", "start", "answer"),
    [
        ("早上好", "2026-03-06T20:31:00", False), ("早安呀", "2026-03-06T23:31:00", False),
        ("晚安", "2026-03-06T10:31:00", False), ("下午好", "2026-03-06T08:00:00", False),
        ("现在都九点了", "2026-03-06T18:00:00", False), ("晚上好", "2026-03-06T09:00:00", False),
        ("早上好", "2026-03-06T08:31:00", True), ("晚安啦", "2026-03-06T23:31:00", True),
        ("现在都九点了", "2026-03-06T20:55:00", True), ("晚安", "2026-03-06T01:00:00", True),
        ("我昨天到家都九点了", "2026-03-06T18:00:00", None), ("明天早上好冷啊得穿多点衣服", "2026-03-06T20:31:00", None),
        ("早", "2026-03-06T13:00:00", None), ("他跟我说晚安", "2026-03-06T10:31:00", None),
    ],
)  # fmt: skip
def test_greetings_and_the_clock(text: str, start: str, answer: bool | None) -> None:
    assert on_chat("greeting_fits_clock", [("b", 0, "在吗"), ("a", 20, text)], start=start) is answer


def test_cold_shutdown() -> None:
    assert on_chat("no_cold_shutdown", own("哦", "嗯", "哦", "嗯嗯")) is False
    assert on_chat("no_cold_shutdown", [*own("好吧那先这样"), ("b", 9, "你明天几点来"), ("b", 60, "人呢"), ("b", 90, "？")]) is False
    assert on_chat("no_cold_shutdown", own("关我什么事", "行", "好")) is False
    assert on_chat("no_cold_shutdown", own("关我屁事哈哈哈", "行", "好")) is None
    assert on_chat("no_cold_shutdown", own("啊怎么回事", "那你别急", "哦 懂了")) is True
    assert on_chat("no_cold_shutdown", own("哦", "嗯", "那你别急")) is None
    assert on_chat("no_cold_shutdown", [*own("啊怎么了", "那你别急", "我来"), ("b", 9, "你明天来吗")]) is None


def test_proactivity() -> None:
    assert on_chat("asks_a_question", own("你几点下班")) is True
    assert on_chat("asks_a_question", own("好", "真好", "哈哈", "我也是")) is False
    assert on_chat("asks_a_question", own("好", "真好")) is None
    assert on_chat("asks_a_question", own("咋了", "真的假的", "是吗", "然后呢")) is None
    assert on_chat("tells_of_self", own("我昨天也加班到十点")) is True
    assert on_chat("tells_of_self", own("哦", "嗯", "哈哈")) is False
    assert on_chat("tells_of_self", own("我完全理解你的感受", "你跟我说过了")) is None
    assert on_chat("not_passive", own("昨天我也去了那儿", "你几点下班", "嗯")) is True
    assert on_chat("not_passive", own("嗯", "哦", "哈哈", "好的")) is False
    assert on_chat("not_passive", own("嗯", "哦", "昨天我也去了那儿", "好的")) is None


def test_both_take_part() -> None:
    assert on_chat("both_take_part", own("昨天去的", "还行吧", "人太多了")) is True
    assert on_chat("both_take_part", own("昨天去的")) is False
    assert on_chat("both_take_part", own("嗯", "哦", "哈哈", "好的")) is False
    assert on_chat("both_take_part", own("昨天去的", "还行吧", partner="嗯")) is None
    assert on_chat("both_take_part", own("昨天去的", "还行吧", "人太多了", partner="嗯")) is False


def test_taking_up_the_event() -> None:
    def says(rows: list[Row]) -> bool | None:
        return DIALOGUE_RULES["takes_up_the_event"](Scene(chat(rows), None, make_scenario())).passed

    assert says(own("我球拍断线了", "那场地几点开始", "今天打球没劲")) is True
    assert says(own("猫又吐了", "你喂它吃药啊", "医院排队排死", "兽医说没事", "猫粮换了牌子", "化毛膏管用")) is False
    assert says(own("猫又吐了", "医院排队排死")) is None
    assert says(own("我球拍断线了", "好的呀", "没问题")) is None
    assert on_chat("takes_up_the_event", own("我球拍断线了")) is None


def test_a_partner_who_does_not_follow() -> None:
    def says(*answers: str) -> bool | None:
        rows: list[Row] = [("b", 0, "打球去")]
        for answer in answers:
            rows += [("a", 20, "他没给他打"), ("b", 20, answer)]
        return on_chat("partner_follows", rows)

    assert says("？？？", "你在说什么") is False
    assert says("听不懂", "好吧", "你没事吧") is False
    assert says("？", "好吧") is None
    assert says("真的？", "几点？") is None


def test_turning_in_circles() -> None:
    words = ["我拍子断线了", "周六下午几点", "你开车去吗", "记得带水啊", "上次谁买了三瓶", "南门等你就行"]
    assert on_chat("keeps_moving", own(*words)) is True
    assert on_chat("keeps_moving", own(*words[:3])) is False  # six messages
    assert on_chat("keeps_moving", own(*words, "楼下馄饨涨价啦", "妈催咱回家吃晚饭", "上次谁买了三瓶水")) is None  # one near copy
    assert on_chat("keeps_moving", own(*words, "楼下馄饨涨价啦", "南门等你就行哈", "上次谁买了三瓶水")) is False
    assert on_chat("keeps_moving", own(*words, "拜拜", "晚安", "拜", "再见")) is False
    shuffled = ["他没打 我给他打", "他没打 你给他打", "我给他打了", "你给他打了", "他没打 我打", "你给他打吧"]
    assert on_chat("keeps_moving", own(*shuffled)) is False
    assert on_chat("keeps_moving", own("好啊", "行", "走", "来了")) is None


def test_signals() -> None:
    assert [t for t in ("嗯嗯", "哈哈哈", "好的呀", "😂", "…", "okk") if not is_filler(t)] == []
    assert [t for t in ("好冷", "不好", "知道了", "是我", "对不起", "行李") if is_filler(t)] == []
    assert [t for t in ("吃饭没有？", "你开车吗", "几点到", "是不是他", "到了没") if not is_question(t)] == []
    assert [t for t in ("没什么", "我不知道谁来", "怎么都行", "没事", "他没来") if is_question(t)] == []
    assert not is_real_question("真的假的")


def read(name: str) -> list[Dialogue]:
    return [Dialogue.model_validate_json(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def passed_share(verdict: Verdict) -> float:
    answers = [box.passed for box in verdict.boxes() if box.passed is not None]
    return answers.count(True) / len(answers)


@pytest.mark.parametrize("dialogue", read("natural.jsonl"), ids=lambda d: d.dialogue_id)
def test_natural_chats_pass_nearly_everything_that_rules_decide(dialogue: Dialogue) -> None:
    verdict = JUDGE.verdict(dialogue, PEOPLE)
    seen = coverage(verdict.boxes())
    assert failed_boxes(verdict) == []
    assert seen.assessed >= 0.45 * seen.total
    assert sum(box.passed is not None for box in verdict.dialogue) >= 6


EXPECTED_FAILS = {
    "court-assistant": {"D1.3", "D1.4", "D1.5", "D4.4", "D5.3", "E4.1"},
    "cat-loop": {"D2.3", "E1.1", "E5.4"},
    "overtime-names": {"E1.3", "E2.3"},
    "breakup-cold": {"D2.4", "E3.4", "E4.1", "E4.2", "E4.5", "E5.2"},
    "rent-garbled": {"D5.2", "E4.1"},
    "game-instant": {"D5.1", "D5.3"},
    "mother-essay": {"D1.3", "D2.1", "D2.2", "D4.4", "D5.1", "D1.5"},
    "phone-again": {"D2.4", "E1.1"},
}


@pytest.mark.parametrize("dialogue", read("twins.jsonl"), ids=lambda d: d.dialogue_id)
def test_bad_twins_fail_where_they_are_bad(dialogue: Dialogue) -> None:
    verdict = JUDGE.verdict(dialogue, PEOPLE)
    failed = failed_boxes(verdict)
    assert EXPECTED_FAILS[dialogue.dialogue_id] <= {f.id for f in failed}
    assert all(f.reason for f in failed)


def test_every_twin_scores_below_every_natural_chat() -> None:
    natural, twins = (
        [JUDGE.verdict(d, PEOPLE) for d in read(name)] for name in ("natural.jsonl", "twins.jsonl")
    )
    assert len(natural) >= 8
    assert len(twins) >= 8
    assert min(map(passed_share, natural)) > max(map(passed_share, twins))
    scores = [(case_score(n, RUBRIC) or 0.0) for n in natural]
    assert min(scores) > max(s for t in twins if (s := case_score(t, RUBRIC)) is not None)


def test_coverage_is_what_the_rubric_grants() -> None:
    granted = set(rule_boxes(RUBRIC))
    assert len(granted) == 24
    for dialogue in read("natural.jsonl") + read("twins.jsonl"):
        for box in JUDGE.verdict(dialogue, PEOPLE).boxes():
            assert box.passed is None or box.id in granted
            assert (box.unassessed == "no_rule") == (box.id not in granted)


def test_one_sided_rules_never_pass() -> None:
    one_sided = {box.id for box in RUBRIC.boxes() if box.rule in ONE_SIDED}
    assert len(one_sided) == 2
    verdicts = [JUDGE.verdict(d, PEOPLE) for d in read("natural.jsonl") + read("twins.jsonl")]
    answers = [box.passed for v in verdicts for box in v.boxes() if box.id in one_sided]
    assert True not in answers
    assert False in answers


def test_the_other_rules_both_pass_and_fail() -> None:
    answers: dict[str, set[bool | None]] = {}
    for dialogue in read("natural.jsonl") + read("twins.jsonl"):
        for box in JUDGE.verdict(dialogue, PEOPLE).boxes():
            answers.setdefault(box.id, set()).add(box.passed)
    rules = {box.id: box.rule for box in RUBRIC.boxes() if box.rule and box.rule not in ONE_SIDED}
    here = {i for i in rules if {True, False} <= answers[i]}
    # these four are shown both ways in their own tests above
    elsewhere = {"no_back_office_claims", "typing_habits", "who_is_who", "greeting_fits_clock", "takes_up_the_event"}
    assert {rules[i] for i in rules if i not in here} <= elsewhere


def test_the_same_dialogue_gets_the_same_verdict_through_the_interface() -> None:
    dialogue = read("natural.jsonl")[0]
    verdict = asyncio.run(JUDGE.judge(dialogue, PEOPLE, make_scenario()))
    assert verdict.to_line() == RulesJudge(RUBRIC).verdict(dialogue, PEOPLE, make_scenario()).to_line()
    assert (verdict.judge, verdict.complete, verdict.rubric) == ("rules", True, RUBRIC.hash)


def test_a_silent_role_has_no_turns_and_no_answers() -> None:
    verdict = JUDGE.verdict(chat([("b", 0, "在吗"), ("b", 60, "人呢")]), PEOPLE)
    assert verdict.turns == []
    assert set(verdict.unassessed()) == {"no_turns"}
    assert case_score(verdict, RUBRIC) is None


def test_another_rubric_uses_the_rules_that_it_names() -> None:
    def part(i: str, scope: str, rule: str | None) -> dict[str, object]:
        boxes = [{"id": f"{i}.1", "question": "q?", "rule": rule}, {"id": f"{i}.2", "question": "p?"}]
        return {"id": i, "name": i, "scope": scope, "weight": 1, "checkboxes": boxes}

    def rubric(turn: str | None, whole: str | None) -> Rubric:
        parts = [part("X", "turn", turn), part("Y", "dialogue", whole)]
        return Rubric.model_validate({"name": "x", "dimensions": parts})

    rows: list[Row] = [("b", 0, "咋了"), ("a", 60, "此外还有一点")]
    verdict = RulesJudge(rubric("no_essay_connectors", None)).verdict(chat(rows), {})
    assert [b.passed for b in verdict.boxes()] == [False, None, None, None]
    assert RulesJudge(rubric("chat_form", None)).identity != RulesJudge(rubric("readable_text", None)).identity
    with pytest.raises(RubricError, match=r"X\.1: rule: there is no rule 'asks_a_question' for a turn"):
        RulesJudge(rubric("asks_a_question", None))

"""How many messages a second the deterministic L0 gate reads on one core.

    python -m benchmarks.bench_gate [dialogues]

CPU time of `check` on records in memory and of `gate_file` from a file of JSON lines (parsing and validation included),
over seeded dialogues whose messages are filled templates of everyday chat with many near-misses among them. Patterns
are compiled before the clock starts; that takes about half a second, once a process.
"""

import random
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

from anthrolab.cards.persona import ExpressionHabits, HardFacts, Persona
from anthrolab.judging.l0 import check, gate_file
from anthrolab.runtime.dialogue import Dialogue, Message, Participant, Speaker

TEMPLATES = (
    "{t}{v}了吗", "我{t}刚{v}完 {f}", "{f}", "{f} {f}", "那{t}{p}见", "你{t}要不要来{p}", "我在{p}{v}呢 {f}", "{n}说{t}要下雨",
    "我妈{t}又催我{v}", "{p}那家店{f}", "给你带了{o}", "我{t}拍了好多{o} {f}", "{o}多少钱买的", "{n}发的视频你看了没", "我是真服了 {f}",
    "等会去{v} 你先{v}", "他{t}跟我说{o}涨价了", "我还没{v}呢", "工资{t}才发 {f}", "你们公司{t}加班不", "孩子{t}作业写到{k}点", "{k}块钱的{o}也敢卖",
    "我想{t}去{p}看看", "AI写的那个方案{f}", "我看行", "哈哈哈哈{f}", "你说{n}是不是傻", "晚上{v} {p}走起", "猫把{o}打翻了 {f}", "我都{k}天没{v}了",
)  # fmt: skip
WORDS = {
    "t": "今天 昨天 明天 周末 晚上 刚才 下周 中午 最近 早上".split(),
    "v": "吃饭 加班 跑步 开会 睡觉 洗澡 搬家 相亲 带娃 打球 看电影 写周报".split(),
    "f": "笑死 绝了 救命 还行吧 累死我了 你懂的 无语 真香 有点意思 算了 别提了 好家伙".split(),
    "p": "公司 楼下 万达 学校 老地方 你家 医院 地铁口 菜市场 公园".split(),
    "n": "老板 小王 我妈 我姐 房东 隔壁老李 班主任".split(),
    "o": "照片 橘子 手机 奶茶 裤子 耳机 电饭煲 合同 火锅底料 猫粮".split(),
    "k": "3 5 8 12 20 32 99".split(),
}


def card(number: int) -> Persona:
    """A persona with facts that the messages rarely touch."""
    return Persona(
        id=f"p{number:02d}", name=f"人{number}", gender="女" if number % 2 else "男", age=27, occupation="会计", education="本科",
        city="杭州", relationship_status="单身", personality=["慢热", "直"], interests=["爬山", "看剧"], weak_topics=["足球"],
        expression_habits=ExpressionHabits(catchphrases=[], punctuation="用空格", emoji="不用", typical_length="短"),
        knowledge_boundaries=["只懂本行"],
        hard_facts=HardFacts(age=27, gender="女" if number % 2 else "男", city=["杭州"], occupation=["会计"], relationship_status="单身"),
    )  # fmt: skip


def dialogues(count: int, seed: int = 7) -> list[Dialogue]:
    """`count` dialogues of 16 to 30 messages."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        at = datetime(2026, 3, 6, 20, 0)
        messages = []
        for i in range(rng.randint(16, 30)):
            text = rng.choice(TEMPLATES).format(**{key: rng.choice(words) for key, words in WORDS.items()})
            messages.append(Message(speaker="a" if i % 2 else "b", content=text, at=at, opener=i == 0))
            at += timedelta(seconds=rng.randint(3, 90))
        speakers: dict[Speaker, Participant] = {
            "a": Participant(name="人1", persona="p01"),
            "b": Participant(name="人2", persona="p02"),
        }
        made.append(Dialogue(dialogue_id=f"d{number}", evaluated_role="a", speakers=speakers, messages=messages))
    return made


def main(count: int = 10_000) -> None:
    """Print messages per second of both paths."""
    personas = {"p01": card(1), "p02": card(2)}
    sides: dict[Speaker, Persona] = {"a": personas["p01"], "b": personas["p02"]}
    made = dialogues(count)
    total = sum(len(d.messages) for d in made)
    start = time.process_time()
    for dialogue in dialogues(200, seed=1):
        check(dialogue, sides)
    print(f"compiling: {time.process_time() - start:.2f} s")
    start = time.process_time()
    results = [check(d, sides) for d in made]
    in_memory = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dialogues.jsonl"
        path.write_text("\n".join(d.to_line() for d in made), encoding="utf-8")
        start = time.process_time()
        rows = sum(1 for _ in gate_file(path, personas, {}))
        from_file = time.process_time() - start
    print(f"{rows} dialogues, {total} messages, {sum(not r.valid for r in results)} invalid")
    print(f"gate, records in memory: {total / in_memory:,.0f} messages/s")
    print(f"gate, from JSON lines:   {total / from_file:,.0f} messages/s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

"""A writer for `cards draft` that composes valid cards out of nothing, each unlike the others, and one that makes every mistake.

What it answers depends on the request alone, so that a command that was killed gets the same again.
"""

import hashlib
import json
import random
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anthrolab.loop.drafting.requests import OCCUPATIONS
from anthrolab.models.scripted import Answer, Call

LETTERS = (
    "云雨雪风山水江河湖海石木林竹松梅兰菊桃杏枣瓜豆米面糖盐酱醋茶碗盘锅灶炉灯窗门墙瓦砖梁柱桌椅床柜箱布棉线针衣裤鞋帽伞扇镜梳刀斧锯锤钉绳网"
    "舟桥路街巷井塔鼓琴笛鸟鸡鸭鹅牛羊马猪猫狗鱼虾蟹虫蜂蝶花草叶根枝果红黄蓝绿白黑灰紫冷热干湿轻重快慢长短高低粗细软硬早晚春夏秋冬东南西北"
    "跑跳走坐站躺吃喝洗擦扫抬背抱拉推拍敲挂摆装拆修补缝剪折叠翻滚吹晒晾炒煮蒸烤"
)
"""Characters that no rule of the linter knows together."""

WORK: dict[str, str] = {
    "retired": "退休工人", "no paid work": "全职妈妈", "health": "护士", "education": "老师", "science and engineering": "工程师",
    "farming and fishing": "种地", "driving and delivery": "司机", "factory and building": "电工", "shop, food and lodging": "开店的",
    "office, finance and public service": "会计", "media and culture": "编辑",
}  # fmt: skip
STATUS = {"单身": "单身", "恋爱": "有对象", "已婚": "已婚", "离异": "离异", "丧偶": "丧偶"}
REJECTED = "没有过的原因"
"""Stands in a request after a rejection."""


def asked(body: Mapping[str, Any]) -> str:
    """What a request asks for."""
    return str(body["messages"][-1]["content"])


def field(text: str, name: str) -> str:
    """A line of what is asked for."""
    found = re.search(rf"^{name}：(.*)$", text, re.MULTILINE)
    assert found is not None, (name, text[:300])
    return found[1]


def is_persona(body: Mapping[str, Any]) -> bool:
    """Whether a persona is asked for, and not a scenario."""
    return asked(body).startswith("这个人：")


def group_of(text: str) -> str:
    """The occupation group that is asked for."""
    return next(group for group, label in OCCUPATIONS.items() if label == field(text, "行当"))


def compose(body: Mapping[str, Any], seed: str = "") -> dict[str, Any]:
    """A valid card for what a request asks, as its writer would give it; `seed` instead of the request makes cards alike."""
    text = asked(body)
    rng = random.Random(hashlib.sha256((seed or text).encode()).digest())

    def words(n: int) -> str:
        return "".join(rng.choice(LETTERS) for _ in range(n))

    return persona(text, words) if is_persona(body) else scenario(words)


def persona(text: str, words: Callable[[int], str]) -> dict[str, Any]:
    age, group = int(field(text, "年龄").partition("岁")[0]), group_of(text)
    province, _, where = field(text, "住处").partition("，")
    if group == "pupil or student":
        school = "初二学生" if age < 15 else "高二学生" if age < 18 else "大二学生" if age < 25 else "研究生"
        work, education = school, "研究生" if age >= 25 else "在读"
        plain = ["学生", school]
    else:
        work, education, plain = WORK[group], "大专", [WORK[group]]
    return {
        "occupation": f"{work}，{words(8)}", "education": f"{education}，{words(5)}",
        "city": f"{province}{words(2)}{'村' if '村' in where else '镇'}", "relationship_status": f"{STATUS[field(text, '婚恋状况')]}，{words(6)}",
        "personality": [words(12) for _ in range(4)], "interests": [words(12) for _ in range(3)],
        "weak_topics": [words(10) for _ in range(2)],
        "expression_habits": {
            "catchphrases": [words(3) for _ in range(3)], "punctuation": words(12), "emoji": words(8), "typical_length": words(12),
        },
        "knowledge_boundaries": [words(16) for _ in range(3)],
        "hard_facts": {"city": [province], "occupation": plain},
    }  # fmt: skip


def scenario(words: Callable[[int], str]) -> dict[str, Any]:
    def side() -> dict[str, Any]:
        return {"place": words(10), "trigger": words(30), "emotion": words(4), "knows": [words(12) for _ in range(3)], "sees": ["city"]}

    return {
        "title": words(4), "relationship": f"同事，{words(14)}", "goal": words(16), "tone": words(12),
        "opener": {"content": words(9)}, "speakers": {"a": side(), "b": side()},
    }  # fmt: skip


def good(call: Call) -> str:
    """The answer of a writer without a fault."""
    return json.dumps(compose(call.body), ensure_ascii=False)


MISTAKES = ("none", "alike", "placeholder", "copied", "province", "occupation", "broken", "cut", "missing", "secret")
"""What `clumsy` does at a first attempt."""


def mistake_of(body: Mapping[str, Any]) -> str:
    """Which mistake a clumsy writer makes, by what is asked: the same for every attempt."""
    text = asked(body)
    first = field(text, "姓名") if is_persona(body) else field(text, "开头")
    return MISTAKES[int(hashlib.sha256(first.encode()).hexdigest(), 16) % len(MISTAKES)]


def clumsy(call: Call) -> str | Answer:
    """The answer of a writer that makes a mistake at the first attempt and none after it was told of it."""
    if REJECTED in asked(call.body):
        return good(call)
    return mistaken(call, mistake_of(call.body))


def mistaken(call: Call, mistake: str) -> str | Answer:
    """An answer with one mistake."""
    card, for_persona = compose(call.body), is_persona(call.body)
    main = card["interests"] if for_persona else card["speakers"]["a"]["knows"]
    if mistake == "alike":
        card = compose(call.body, "one mould")
    elif mistake == "placeholder":
        main[0] = "待补充"
    elif mistake == "copied":
        main[0] = "锅灶碗盘糖盐酱醋茶米面瓜豆枣杏桃"
    elif mistake == "province" and for_persona:
        here = field(asked(call.body), "住处")
        other = "青海" if not here.startswith("青海") else "福建"
        card["city"], card["hard_facts"]["city"] = other + "湖边", [other]
    elif mistake == "occupation" and for_persona:
        wrong = "护士" if group_of(asked(call.body)) != "health" else "电工"
        card["occupation"], card["hard_facts"]["occupation"] = wrong, [wrong]
    elif mistake == "broken":
        return "好的，这就写：" + json.dumps(card, ensure_ascii=False)[:-40]
    elif mistake == "cut":
        return json.dumps(card, ensure_ascii=False)[:120]
    elif mistake == "missing":
        del card["weak_topics" if for_persona else "tone"]
    elif mistake == "secret" and not for_persona:
        card["goal"] = card["speakers"]["a"]["trigger"][:12]
    return json.dumps(card, ensure_ascii=False)


def write_systems(path: Path, url: str, **changes: Any) -> Path:
    """A systems file with one chat system, `toy`, on a scripted server."""
    entry = {
        "name": "toy", "endpoint": url, "model": "scripted", "server": "openai", "policy": "chat", "timeout_s": 20.0, "retries": 1,
        "concurrency": 16, **changes,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"systems": [entry]}), encoding="utf-8")
    return path


def command(out: Path, systems: Path, *more: str) -> list[str]:
    """The verb as it is typed."""
    return [sys.executable, "-m", "anthrolab", "cards", "draft", "--writer", "toy", "--out", str(out), "--systems", str(systems), *more]

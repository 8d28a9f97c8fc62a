"""Whether the gate can test a persona's hard facts (L0-06): each true statement passes, and a false one is caught."""

from collections.abc import Iterator, Mapping

from anthrolab.cards.lint.finding import Finding
from anthrolab.cards.persona import Persona, RelationshipStatus
from anthrolab.judging.l0.facts import Fact, find

_FALSE_CITIES = ("我是拉萨人", "我是三亚人", "我是哈尔滨人")
_FALSE_WORK = ("我是做律师的", "我是做空姐的", "我是做程序员的", "我是做厨师的", "我是做兽医的")
_TRUE_STATUS: Mapping[RelationshipStatus, str] = {
    "单身": "我还没对象呢", "恋爱": "我有对象了", "已婚": "我结婚了", "离异": "我离过婚", "丧偶": "我老伴去世了",
}  # fmt: skip
_FALSE_STATUS: Mapping[RelationshipStatus, str] = {
    "单身": "我结婚了", "恋爱": "我结婚了", "已婚": "我还没结婚", "离异": "我还没结过婚", "丧偶": "我还没结过婚",
}  # fmt: skip


def untestable(personas: Mapping[str, Persona]) -> Iterator[Finding]:
    """Hard facts that the gate would take a true statement for a false one, or a plainly false one for a true one."""
    for key, persona in personas.items():
        facts = persona.hard_facts
        female = facts.gender == "女"
        checks: list[tuple[str, Fact, list[str], list[str]]] = [
            ("age", "age", [f"我今年{facts.age}岁"], [f"我今年{facts.age + 9}岁"]),
            ("gender", "gender", ["我一个女的" if female else "我一个男的"], ["我一个男的" if female else "我一个女的"]),
            ("city", "city", [f"我是{place}人" for place in facts.city], list(_FALSE_CITIES)),
            ("occupation", "occupation", [f"我是{word}" for word in facts.occupation], list(_FALSE_WORK)),
            ("relationship_status", "relationship", [_TRUE_STATUS[facts.relationship_status]],
             [_FALSE_STATUS[facts.relationship_status]]),
        ]  # fmt: skip
        for field, fact, true, false in checks:
            for said in true:
                if find(said, persona, [fact], year=2026):
                    yield Finding(key, f"hard_facts.{field}", f"the gate takes {said!r} for false; use a word that it knows, or add one to it")
            if not any(find(said, persona, [fact], year=2026) for said in false):
                yield Finding(key, f"hard_facts.{field}", f"the gate would not catch {false[0]!r}; name the fact more narrowly")

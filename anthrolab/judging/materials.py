"""What the model judge is shown: the person, the situation, the memory and the chat, each in its fence.

Nothing of a card or a dialogue, not even a name, stands outside a fence. The order is that of the prompt: what all
calls about a dialogue share comes first, so that servers keep it.
"""

from string import Template

from anthrolab.cards.persona import Persona
from anthrolab.cards.scenario import Scenario
from anthrolab.models.fence import fenced, quoted
from anthrolab.runtime.dialogue import Dialogue, other

WINDOW = 5
"""Messages before the target that a local call shows (paper section 5.3)."""

_WEEKDAYS = ("周一", "周二", "周三", "周四", "周五", "周六", "周日")


def person(persona: Persona | None) -> str:
    """The evaluated role's card; only that there is none if it is unknown."""
    if persona is None:
        return fenced("PERSONA", ["（没有人设卡）"])
    habits = persona.expression_habits
    return fenced(
        "PERSONA",
        [
            f"姓名：{quoted(persona.name)}",
            f"性别年龄：{persona.gender}，{persona.age}岁",
            f"职业：{quoted(persona.occupation)}",
            f"学历：{quoted(persona.education)}",
            f"所在：{quoted(persona.city)}",
            f"感情状况：{quoted(persona.relationship_status)}",
            f"性格：{quoted('；'.join(persona.personality))}",
            f"爱好：{quoted('；'.join(persona.interests))}",
            f"不太懂：{quoted('；'.join(persona.weak_topics))}",
            f"知识边界：{quoted('；'.join(persona.knowledge_boundaries))}",
            f"口头禅：{quoted('；'.join(habits.catchphrases))}",
            f"标点：{quoted(habits.punctuation)}",
            f"表情：{quoted(habits.emoji)}",
            f"长短：{quoted(habits.typical_length)}",
        ],
    )


def situation(scenario: Scenario | None, dialogue: Dialogue) -> str:
    """The scenario as the evaluated role knows it; only that there is none if it is unknown."""
    if scenario is None:
        return fenced("SCENARIO", ["（没有场景卡）"])
    role = dialogue.evaluated_role
    side = scenario.speakers.a if role == "a" else scenario.speakers.b
    names: dict[str, str] = {speaker: participant.name for speaker, participant in dialogue.speakers.items()}
    return fenced(
        "SCENARIO",
        [
            f"场景：{quoted(scenario.title)}",
            f"两人关系：{quoted(Template(scenario.relationship).safe_substitute(names))}",
            f"是否隔着屏幕：{'是，不在一处' if scenario.remote else '不一定，可能在一处'}",
            f"开始时间：{scenario.start:%Y-%m-%d %H:%M} {_WEEKDAYS[scenario.start.weekday()]}",
            f"聊什么：{quoted(scenario.goal)}",
            f"气氛：{quoted(scenario.tone)}",
            f"被评者在哪：{quoted(side.place)}",
            f"被评者的起因：{quoted(side.trigger)}",
            f"被评者的心情：{quoted(side.emotion)}",
            f"被评者对对方的了解：{quoted('；'.join(side.knows))}",
        ],
    )


def memory(dialogue: Dialogue) -> str:
    """What the evaluated role remembered of the partner when the chat began; only that it is nothing if so."""
    kept = (dialogue.memories or {}).get(dialogue.evaluated_role)
    if kept is None or not kept.lines():
        return fenced("MEMORY", ["（没有以前的记忆）"])
    return fenced("MEMORY", [f"截至：{kept.as_of:%Y-%m-%d}"] + [quoted(line) for line in kept.lines()])


def windows(dialogue: Dialogue) -> list[str]:
    """For every evaluated turn its message and the five before it.

    Each depends on these messages alone, so that a turn which a repair left as it was need not be asked about again.
    """
    return [fenced("CHAT", _chat(dialogue, max(0, i - WINDOW), i + 1, i)) for i in dialogue.turns()]


def whole(dialogue: Dialogue) -> str:
    """The complete dialogue."""
    return fenced("CHAT", _chat(dialogue, 0, len(dialogue.messages)))


def _chat(dialogue: Dialogue, first: int, end: int, target: int | None = None) -> list[str]:
    """Messages `first` up to before `end`, one a line: number (from 0), time, who, quoted text; `target` is marked."""
    role = dialogue.evaluated_role
    lines = [
        f"被评者的名字：{quoted(dialogue.speakers[role].name)}",
        f"对方的名字：{quoted(dialogue.speakers[other(role)].name)}",
    ]
    for number in range(first, end):
        message = dialogue.messages[number]
        who = "被评者" if message.speaker == role else "对方"
        marks = ("（开场白，给定的，不评）" if message.opener else "") + ("（待评）" if number == target else "")
        lines.append(f"#{number} {message.at:%Y-%m-%d %H:%M:%S} {who}{marks}：{quoted(message.content)}")
    return lines

"""The renderer R: cards and state into prompts (paper section 4.2, z_i = R(...) and x = [z; C; tail; draft; time]).

z, the system text of a speaker, depends on the seat only and is byte-identical within a session, so that servers
can reuse their prefix cache; what is the same for everybody stands first, so that all sessions share that part.
The snapshot holds what changes: compressed history, recent messages, unsent draft, time. Each block is a file of
prompts/blocks/, in the order of `Z` and of `snapshot`; a block with nothing to say is left out.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from string import Template

from anthrolab.cards.memory import Memory
from anthrolab.cards.persona import Persona
from anthrolab.files import content_hash
from anthrolab.models.fence import inert
from anthrolab.runtime.dialogue import STAMP, Summary
from anthrolab.runtime.history import Recall
from anthrolab.runtime.schedule import Asked
from anthrolab.runtime.seat import Seat, shown

Z = ("medium", "skills", "identity", "habits", "boundaries", "partner", "memory", "scenario", "contract")
"""The blocks of z, in order."""

PERSONA = ("skills", "identity", "habits", "boundaries")
"""The blocks of z that say who the speaker is: nothing that happens in a chat changes them."""

SNAPSHOT = ("summary", "tail", "draft", "draft_typing", "now", "again")
"""The blocks of the snapshot, in order."""

OTHERS = ("transcript", "summarise", "summarise_ask", "memory_update", "memory_update_ask", "again_auxiliary")
"""Prompts that are not made of blocks."""

SOURCES = ("runtime/prompt.py", "runtime/seat.py", "models/fence.py")
"""The code that fills them: labels and wording stand there too."""

WEEKDAYS = ["星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"]
MEMORY_LINES_OF_A_TRANSCRIPT = 3
SUMMARY_LINES_OF_A_TRANSCRIPT = 8


@cache
def template(name: str) -> Template:
    """A prompt file of this package, e.g. `transcript` or `blocks/tail`."""
    return Template((files("anthrolab.runtime") / "prompts" / f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def prompts_hash() -> str:
    """Changes when any runtime prompt changes, the order of the blocks, or the code that fills them; stands in the
    manifest."""
    names = [f"blocks/{name}" for name in (*Z, *SNAPSHOT)] + list(OTHERS)
    code = [(files("anthrolab") / name).read_text(encoding="utf-8") for name in SOURCES]
    return content_hash([[[name, template(name).template] for name in names], code])


def chat_system(seat: Seat, max_delay_s: int = 600) -> str:
    """z of the chat policy: how private chats work (and the longest delay, seconds), skills, persona, partner as this
    speaker knows them, memory, scenario from this side, the output contract."""
    fields = _z_fields(seat) | {"medium": {"longest": _duration(max_delay_s)}}
    return "\n\n".join(_block(name, fields[name]) for name in Z if fields.get(name) is not None)


def persona_hash(seat: Seat) -> str:
    """Changes when any block of `PERSONA` does, as rendered for this seat; the same before and after a refresh of what
    is known of the partner and the scene (paper section 4.2: "without overwriting the fixed AI persona")."""
    fields = _z_fields(seat)
    return content_hash([_block(name, fields[name]) if fields[name] is not None else None for name in PERSONA])


def chat_snapshot(seat: Seat, ask: Asked, recall: Recall, again: str | None = None) -> str:
    """The changing half of x: compressed history, recent messages, the unsent draft if any, the time.

    `again`: why the reply to the same ask was refused.
    """
    now = seat.clock(ask.now_s)
    fields: dict[str, Mapping[str, str] | None] = {
        "tail": {"history": "\n".join(seat.line(m) for m in recall.tail)},
        "now": {"now": now.strftime(STAMP), "weekday": WEEKDAYS[now.weekday()]},
    }
    if recall.summary is not None and summary_lines(recall.summary):
        fields["summary"] = {"summary": "\n".join(f"- {line}" for line in summary_lines(recall.summary))}
    if ask.draft:
        due = seat.clock(ask.draft.due_s)
        which = "draft_typing" if ask.interrupted == "typing" else "draft"
        fields[which] = {"draft": shown(ask.draft.content), "due": f"{due:%H:%M:%S}"}
    if again is not None:
        fields["again"] = {"error": again}
    return "\n\n".join(_block(name, fields[name]) for name in SNAPSHOT if fields.get(name) is not None)


def transcript_prompt(seat: Seat, ask: Asked, recall: Recall, clock: str = "") -> str:
    """x of the transcript policy: two chats of other people, this speaker's setting, the chat so far, an open line.

    The setting is short (first clauses only, no skills): a small base model is led by the chat, not by a card.
    `clock` is what the next time stamp is bound to begin with.
    """
    persona, side = seat.persona, seat.side
    setting = (
        f"{seat.name}，{persona.age}岁，{_clause(persona.occupation)}，{_clause(persona.personality[0])}。"
        f"{_clause(persona.expression_habits.typical_length)}。"
        f"和{seat.partner_name}：{_clause(_relationship(seat))}。{_clause(side.knows[0])}。"
        f"{seat.name}这会儿在{_clause(side.place)}，{_clause(side.trigger)}。"
    )
    if seat.memory is not None and seat.memory.lines():
        remembered = "；".join(inert(line).rstrip("。") for line in seat.memory.lines()[:MEMORY_LINES_OF_A_TRANSCRIPT])
        setting += f"{seat.name}记得{seat.partner_name}：{remembered}。"
    if recall.summary is not None and summary_lines(recall.summary):
        setting += "\n（前面说过：" + "；".join(summary_lines(recall.summary)[:SUMMARY_LINES_OF_A_TRANSCRIPT]) + "）"
    draft = ""
    if ask.draft:
        state = "打好了没发" if ask.interrupted == "waiting" else "正在输入"
        draft = f"（{seat.name}{state}：{shown(ask.draft.content)}）\n"
    return template("transcript").substitute(
        setting=setting,
        history="\n".join(seat.line(m) for m in recall.tail),
        draft=draft,
        clock=clock,
    )


def summary_lines(summary: Summary) -> list[str]:
    """A summary as lines: commitments first, since they must not be missed."""
    kinds = (("答应过", "commitments"), ("事情", "facts"), ("心情", "emotions"), ("还没完", "open_topics"))
    return [f"{label}：{inert(line)}" for label, kind in kinds for line in getattr(summary, kind)]


def memory_lines(memory: Memory) -> list[str]:
    """A memory as lines with the names of their sections."""
    kinds = (("情况", memory.facts), ("喜好", memory.preferences), ("你俩", memory.relationship), ("惦记的", memory.concerns))
    return [f"{label}：{inert(line)}" for label, lines in kinds for line in lines]


def _z_fields(seat: Seat) -> dict[str, Mapping[str, str] | None]:
    persona, scene, side = seat.persona, seat.scene, seat.side
    habits = persona.expression_habits
    memory = seat.memory if seat.memory is not None and seat.memory.lines() else None
    return {
        "skills": {"skills": "\n\n".join(skill.text for skill in seat.skills)} if seat.skills else None,
        "identity": {"name": seat.name, "persona": _persona_lines(persona)},
        "habits": {
            "habits": "\n".join(
                [
                    f"- 口头禅：{'；'.join(habits.catchphrases) or '没有'}",
                    f"- 标点：{habits.punctuation}",
                    f"- 表情：{habits.emoji}",
                    f"- 长短：{habits.typical_length}",
                ]
            )
        },
        "boundaries": {
            "boundaries": "\n".join(
                [f"- {line}" for line in persona.knowledge_boundaries] + [f"- 不太懂：{'；'.join(persona.weak_topics)}"]
            )
        },
        "partner": {
            "partner": seat.partner_name,
            "relationship": "\n".join(
                [f"- {_relationship(seat)}"]
                + ([f"- {seat.partner_name}：{'，'.join(seat.partner.known)}"] if seat.partner.known else [])
                + [f"- {line}" for line in side.knows]
            ),
        },
        "memory": None if memory is None else {
            "partner": seat.partner_name,
            "ago": _ago(memory, seat),
            "memory": "\n".join(f"- {line}" for line in memory_lines(memory)),
        },
        "scenario": {
            "scenario": "\n".join(
                [
                    f"- 你在：{side.place}",
                    f"- 起因：{side.trigger}",
                    f"- 心情：{side.emotion}",
                    f"- 聊什么：{scene.goal}",
                    f"- 气氛：{scene.tone}",
                ]
                + (["- 你俩不在一处，看不见对方"] if scene.remote else [])
            )
        },
        "contract": {"name": seat.name},
    }  # fmt: skip


def _block(name: str, fields: Mapping[str, str] | None) -> str:
    return template(f"blocks/{name}").substitute(fields or {})


def _duration(seconds: int) -> str:
    return f"{seconds // 60}分钟" if seconds >= 60 and seconds % 60 == 0 else f"{seconds}秒"


def _ago(memory: Memory, seat: Seat) -> str:
    days = (seat.scene.start.date() - memory.as_of).days
    day = memory.as_of
    return f"{day.year}年{day.month}月{day.day}日" + (f"，{days}天前" if days > 0 else "")


def _clause(text: str) -> str:
    """A card text up to its first full stop or semicolon, without what stands in brackets."""
    return re.split("[。；;]", re.sub("（[^）]*）", "", text))[0]


def _persona_lines(p: Persona) -> str:
    return "\n".join(
        [
            f"- {p.name}，{p.gender}，{p.age}岁，{p.occupation}，{p.education}，住{p.city}，{p.relationship_status}",
            f"- 性格：{'；'.join(p.personality)}",
            f"- 喜欢：{'；'.join(p.interests)}",
        ]
    )


def _relationship(seat: Seat) -> str:
    """The relationship with the sides' letters replaced by names."""
    a, b = seat.name_of("a"), seat.name_of("b")
    return Template(seat.scene.relationship).safe_substitute(a=a, b=b).rstrip("。")

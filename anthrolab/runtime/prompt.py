"""The renderer R: cards and state into prompts (paper section 4.2, equation for z and x).

z, the system text of a speaker, depends on the seat only and is byte-identical within a session, so that
servers can reuse their prefix cache; the snapshot holds what changes: recent messages, unsent draft, time.
"""

import re
from functools import cache
from importlib.resources import files
from string import Template

from anthrolab.cards.persona import Persona
from anthrolab.files import content_hash
from anthrolab.runtime.dialogue import STAMP
from anthrolab.runtime.schedule import Asked
from anthrolab.runtime.seat import Seat

PROMPTS = ("chat_system.md", "chat_snapshot.md", "transcript.md")
WEEKDAYS = ["星期一", "星期二", "星期三", "星期四", "星期五", "星期六", "星期日"]


@cache
def template(name: str) -> Template:
    """A prompt file of this package."""
    return Template((files("anthrolab.runtime") / "prompts" / name).read_text(encoding="utf-8"))


def prompts_hash() -> str:
    """Changes when any runtime prompt changes; stands in the manifest."""
    return content_hash([template(name).template for name in PROMPTS])


def chat_system(seat: Seat) -> str:
    """z of the chat policy: persona, partner as this speaker knows them, scenario from this side, the contract."""
    persona, scenario, side = seat.persona, seat.scenario, seat.side
    habits = persona.expression_habits
    return template("chat_system.md").substitute(
        name=seat.name,
        partner=seat.partner_name,
        persona=_persona_lines(persona),
        habits="\n".join(
            [
                f"- 口头禅：{'；'.join(habits.catchphrases) or '没有'}",
                f"- 标点：{habits.punctuation}",
                f"- 表情：{habits.emoji}",
                f"- 长短：{habits.typical_length}",
            ]
        ),
        boundaries="\n".join(
            [f"- {line}" for line in persona.knowledge_boundaries] + [f"- 不太懂：{'；'.join(persona.weak_topics)}"]
        ),
        partner_block="\n".join([f"- {_relationship(seat)}"] + [f"- {line}" for line in side.knows]),
        scenario="\n".join(
            [
                f"- 你在：{side.place}",
                f"- 起因：{side.trigger}",
                f"- 心情：{side.emotion}",
                f"- 聊什么：{scenario.goal}",
                f"- 气氛：{scenario.tone}",
            ]
        ),
        together="你俩不在一处，看不见对方。" if scenario.remote else "",
    )


def chat_snapshot(seat: Seat, ask: Asked, window: int) -> str:
    """The changing half of x: the last `window` messages verbatim, the unsent draft if any, the time."""
    now = seat.clock(ask.now_s)
    draft = ""
    if ask.draft:
        due = seat.clock(ask.draft.due_s)
        draft = f"\n【你打好了还没发的】\n{ask.draft.content}（原打算 {due:%H:%M:%S} 发；可以照发、改了再发，或者不发了）\n"
    return template("chat_snapshot.md").substitute(
        history="\n".join(seat.line(m) for m in ask.messages[-window:]),
        draft=draft,
        now=now.strftime(STAMP),
        weekday=WEEKDAYS[now.weekday()],
    )


def transcript_prompt(seat: Seat, ask: Asked, window: int, clock: str = "") -> str:
    """x of the transcript policy: two chats of other people, this speaker's setting, the chat so far, an open line.

    The setting is short (first clauses only): a small base model is led by the chat, not by a card. `clock` is
    what the next time stamp is bound to begin with.
    """
    persona, side = seat.persona, seat.side
    setting = (
        f"{seat.name}，{persona.age}岁，{_clause(persona.occupation)}，{_clause(persona.personality[0])}。"
        f"{_clause(persona.expression_habits.typical_length)}。"
        f"和{seat.partner_name}：{_clause(_relationship(seat))}。{_clause(side.knows[0])}。"
        f"{seat.name}这会儿在{_clause(side.place)}，{_clause(side.trigger)}。"
    )
    draft = ""
    if ask.draft:
        draft = f"（{seat.name}正在输入：{' '.join(ask.draft.content.split())}）\n"
    text = template("transcript.md").substitute(
        setting=setting,
        history="\n".join(seat.line(m) for m in ask.messages[-window:]),
        draft=draft,
        clock=clock,
    )
    return text.removesuffix("\n")


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
    return Template(seat.scenario.relationship).safe_substitute(a=a, b=b).rstrip("。")

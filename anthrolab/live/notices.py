"""The plain texts of a chat with a person: that this is an AI, and the notice out of character. Chinese first, then English."""

from anthrolab.live.care import Concern

AI_NOTICE = (
    "和你聊天的是一个 AI 程序，它在扮演一个虚构的人。没有真人在看，也不会有人赶来。看病、法律和钱的事不要靠它。\n"
    "You are talking with an AI program that plays a made-up person. Nobody reads along and nobody will come. "
    "Do not rely on it for medical, legal or money matters."
)
"""Shown before the first message."""

_ORDER: dict[Concern, tuple[str, ...]] = {
    "emergency": ("120", "119", "110", "12356", "12338", "12355"),
    "self_harm": ("12356", "120", "110", "12355", "12338"),
    "abuse": ("110", "120", "12338", "12355", "12356"),
}
"""Whom to call first."""

_LINES = {
    "120": ("120 急救", "120 ambulance"),
    "119": ("119 消防", "119 fire brigade"),
    "110": ("110 报警（不能出声就发短信到 12110）", "110 police (if you cannot speak, text 12110)"),
    "12356": ("12356 心理援助热线", "12356 psychological help"),
    "12338": ("12338 妇女维权热线", "12338 women's rights"),
    "12355": ("12355 青少年服务热线", "12355 young people"),
}

_FIRST: dict[Concern, tuple[str, str]] = {
    "emergency": ("如果真有人有危险，现在就打 120。", "If someone is in danger, call 120 now."),
    "self_harm": (
        "如果你或身边的人不想活了，或在伤害自己，请现在就告诉一个真人，或打 12356；人已经有危险就打 120。",
        "If you or someone near wants to die or is hurting themselves, tell a real person now, or call 12356; if a life is in danger, call 120.",
    ),
    "abuse": (
        "如果你或身边的人正被伤害，先到安全的地方，打 110。",
        "If you or someone near is being hurt, get to a safe place first and call 110.",
    ),
}


def header(name: str, system: str) -> str:
    """One line that stands over the chat all the time: who is played, and by which model."""
    name, system = " ".join(name.split()), " ".join(system.split())
    return f"AI · {name} 由模型 {system} 扮演，不是真人 · {name} is played by the model {system}, not a person"


def care_notice(concern: Concern, said_by_person: bool) -> str:
    """What is shown out of character when `care` found a concern in the person's words, or in the model's."""
    chinese, english = _FIRST[concern]
    lines = [_LINES[number] for number in _ORDER[concern]]
    calls = (
        f"{' · '.join(line[0] for line in lines)}。不在中国大陆：打当地的急救电话。",
        f"In China: {', '.join(line[1] for line in lines)}. Elsewhere: your local emergency number.",
    )
    if said_by_person:
        said = (
            f"{chinese}\n这里是 AI 程序，它帮不了你，也没有真人在看这个聊天。聊天已经暂停。",
            f"{english}\nThis is an AI program. It cannot help, and no person is reading this chat. The chat is paused.",
        )
    else:
        said = (
            "上面这些话是 AI 编的，没有人真的有危险。聊天已经暂停。\n如果这些话碰到了你自己的事，可以打：",
            "An AI made up these words; nobody is in danger. The chat is paused.\nIf they touch something of your own, you can call:",
        )
    return f"{said[0]}\n{calls[0]}\n\n{said[1]}\n{calls[1]}"

"""Dialogues written by hand, as the decisions behind them: one file a binding in `gold/`.

    binding: b01
    lines:
      - 19:42:00 a 小龙，抽签出来了        # the opener, as on the scenario card
      - ~19:43:05 b 我也有个事             # a draft that stayed unsent, because the next line came first
      - 19:42:40 a 头一轮碰老邮电
      - 19:43:20 b 啊？

Between two messages the sender of the second decided on it, at the first; the other was silent, or held the draft that a
`~` line gives, and decided anew when the second came in. So the lines say what was decided at every ask, and the
scheduler plays them (paper section 4.3): a line that it would not let pass is an error, not a dialogue.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from anthrolab.cards.gold import Written
from anthrolab.cards.library import Library
from anthrolab.errors import AnthrolabError
from anthrolab.runtime.dialogue import Ask, Dialogue, Speaker, other
from anthrolab.runtime.schedule import SILENCE, Asked, Plan, Rules
from anthrolab.runtime.scripted import ScriptedPolicy
from anthrolab.runtime.seat import Seat, seats
from anthrolab.runtime.session import play
from anthrolab.sync import run_async
from anthrolab.yaml_files import YamlError, read_model

LONGEST_S = 600
"""The benchmark's longest delay, seconds."""

_LINE = re.compile(r"(~?)((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d) ([ab]) (\S.*)", re.ASCII | re.DOTALL)


class WrittenError(AnthrolabError):
    """One or more problems in written dialogues; `problems` has a line for each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True)
class _Entry:
    number: int
    held: bool
    at_s: int
    speaker: Speaker
    content: str


def decisions(written: Written, start: datetime) -> dict[tuple[int, Speaker], Plan]:
    """What each speaker decided after the k-th message (from 1); who is not there was silent.

    WrittenError for lines that no two drafts could give.
    """
    entries, problems = _read(written, start)
    plans: dict[tuple[int, Speaker], Plan] = {}
    sent: list[_Entry] = []
    held: list[_Entry] = []
    for entry in entries:
        if entry.held:
            held.append(entry)
            continue
        if sent:
            last = sent[-1]
            if entry.at_s < last.at_s:
                problems.append(f"lines[{entry.number}]: is earlier than the message before it; put the lines in their order")
            plans[len(sent), entry.speaker] = Plan(entry.content, entry.at_s - last.at_s)
            for draft in held:
                if draft.speaker == entry.speaker:
                    problems.append(f"lines[{draft.number}]: {draft.speaker} holds this and sends lines[{entry.number}]; a speaker has one draft")
                elif draft.at_s <= entry.at_s:
                    problems.append(f"lines[{draft.number}]: is due before lines[{entry.number}] and would go out first; give it a later time")
                plans[len(sent), draft.speaker] = Plan(draft.content, draft.at_s - last.at_s)
        elif held:
            problems.append(f"lines[{held[0].number}]: stands before the opener; the first line is the opener")
        if len(held) > 1:
            problems.append(f"lines[{held[1].number}]: two unsent drafts between two messages; only the one who is not next can hold one")
        for late in (entry, *held) if sent else ():
            if late.at_s - sent[-1].at_s > LONGEST_S:
                problems.append(f"lines[{late.number}]: is due more than {LONGEST_S} s after the message before it; somebody has to write earlier")
        sent.append(entry)
        held = []
    for draft in held:
        plans[len(sent), draft.speaker] = Plan(draft.content, draft.at_s - sent[-1].at_s)
    if problems:
        raise WrittenError(problems)
    return plans


def _read(written: Written, start: datetime) -> tuple[list[_Entry], list[str]]:
    """Lines with seconds since the start; a clock that goes back by more than half a day has passed midnight."""
    entries: list[_Entry] = []
    problems: list[str] = []
    for number, line in enumerate(written.lines, 1):
        match = _LINE.fullmatch(line)
        if match is None:
            problems.append(f"lines[{number}]: is not 'HH:MM:SS a text' or '~HH:MM:SS a text': {line!r:.60}")
            continue
        clock = datetime.combine(start.date(), datetime.strptime(match[2], "%H:%M:%S").time())
        if clock < start - timedelta(hours=12):
            clock += timedelta(days=1)
        speaker: Speaker = "a" if match[3] == "a" else "b"
        entries.append(_Entry(number, bool(match[1]), int((clock - start).total_seconds()), speaker, match[4].strip()))
    if all(e.held for e in entries):
        problems.append("no line is a message; the first one is the opener")
        raise WrittenError(problems)
    return entries, problems


def play_written(
    written: Written, table: Mapping[Speaker, Seat], dialogue_id: str, evaluated_role: Speaker = "a"
) -> Dialogue:
    """The dialogue, played by the scheduler under the benchmark's rules; WrittenError if it comes out otherwise."""
    scene = table["a"].scene
    first = f"{scene.start:%H:%M:%S} {scene.opener.speaker} {scene.opener.content}"
    if written.lines[0] != first:
        raise WrittenError([f"lines[1]: is not the opener of {scene.id}; write: {first}"])
    plans = decisions(written, scene.start)

    def decide(ask: Asked) -> Plan:
        return plans.get((len(ask.messages), ask.speaker), SILENCE)

    policy = ScriptedPolicy(decide)
    rules = Rules(horizon_s=60 * scene.horizon_minutes, max_delay_s=LONGEST_S)
    dialogue = run_async(
        play(dialogue_id, table, {"a": policy, "b": policy}, rules, evaluated_role=evaluated_role, binding=written.binding)
    )
    _must_be_as_written(written, dialogue)
    return dialogue


def _must_be_as_written(written: Written, dialogue: Dialogue) -> None:
    wanted = [line for line in written.lines if not line.startswith("~")]
    came = as_lines(dialogue, held=False)
    for number, line in enumerate(wanted):
        if number >= len(came) or came[number] != line:
            stop = [f"{g.guard} dropped {g.content!r}" for g in dialogue.guards or []] or [f"the chat stopped: {dialogue.stop}"]
            raise WrittenError([f"message {number + 1}: {line!r:.60} does not go out at its time ({'; '.join(stop)}); change the line"])
    if len(came) > len(wanted):
        raise WrittenError([f"after the last line {came[len(wanted)]!r:.60} goes out; let it be due after the horizon, or write it as sent"])


def as_lines(dialogue: Dialogue, held: bool = True) -> list[str]:
    """A dialogue as written lines again; without `held` its messages only. ValueError without asks, if they are needed."""
    lines: list[str] = []
    asks = dialogue.asks
    if held and asks is None:
        raise ValueError(f"{dialogue.dialogue_id}: no asks, so its unsent drafts are not known")
    for number, message in enumerate(dialogue.messages):
        if number and held and asks:
            lines += _held(asks[2 * number - 2 : 2 * number], other(message.speaker))
        lines.append(f"{message.at:%H:%M:%S} {message.speaker} {message.content}")
    if held and asks:
        last = asks[2 * len(dialogue.messages) - 2 :]
        lines += _held(last, "a") + _held(last, "b")
    return lines


def _held(pair: Sequence[Ask], speaker: Speaker) -> list[str]:
    return [
        f"~{ask.decision.at:%H:%M:%S} {speaker} {ask.decision.content}"
        for ask in pair
        if ask.speaker == speaker and ask.decision is not None and not ask.decision.end and ask.decision.content.strip()
    ]


def load_gold(folder: Path, library: Library) -> dict[str, Dialogue]:
    """The written dialogues of a folder's `gold/` by binding, played; none if there is no such folder.

    WrittenError lists every problem of every file.
    """
    problems: list[str] = []
    found: dict[str, Dialogue] = {}
    for path in sorted((folder / "gold").glob("*.yaml")):
        try:
            written = read_model(path, Written)
            if written.binding != path.stem:
                raise WrittenError([f"binding: is '{written.binding}' but the file is named '{path.stem}'; make them equal"])
            if written.binding not in library.bindings:
                raise WrittenError([f"binding: no binding '{written.binding}'; add it to bindings.yaml or name another"])
            found[written.binding] = play_written(written, seats_of(library, written.binding), f"gold-{written.binding}")
        except YamlError as e:
            problems += e.problems
        except WrittenError as e:
            problems += [f"{path}: {problem}" for problem in e.problems]
    if problems:
        raise WrittenError(problems)
    return found


def seats_of(library: Library, binding_id: str) -> dict[Speaker, Seat]:
    """Both seats of a binding of a library, with the memories that it holds, without skills."""
    binding = library.bindings[binding_id]
    return seats(
        library.personas[binding.persona_a],
        library.personas[binding.persona_b],
        library.scenarios[binding.scenario],
        memories=library.memories,
    )

"""One dialogue as chat bubbles: both sides with times, drafts that were not sent, and what failed where."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from anthrolab.cards.scenario import Scenario
from anthrolab.judging.rubric import Rubric
from anthrolab.judging.scores import coverage, failed_boxes
from anthrolab.judging.verdict import Verdict
from anthrolab.metrics.stops import ending
from anthrolab.runtime.dialogue import Dialogue
from anthrolab.show.coverage import L0_NAMES
from anthrolab.show.notes import Note, notes_of, person_in
from anthrolab.show.pages import asset, environment
from anthrolab.show.stops import SHORT_ENDINGS
from anthrolab.show.unsent import Unsent, times_kept, unsent_drafts


@dataclass(frozen=True)
class Finding:
    """A failed checkbox or a broken constraint: its id, what it asks, the reason given, and by whom."""

    id: str
    text: str
    reason: str
    by: str
    partner: bool = False
    marked: bool = False


@dataclass
class Bubble:
    """A message, or a draft that was not sent as it stands.

    index: position among the dialogue's messages (None: a draft). kept: messages of the partner through which a sent
    draft was kept. unsent: what became of a draft; became: the text that took its place. marked: to be found at once.
    """

    tested: bool
    name: str
    at: str
    text: str
    opener: bool = False
    turn: int | None = None
    index: int | None = None
    kept: int = 0
    unsent: str | None = None
    became: str | None = None
    marked: bool = False
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class Chat:
    """A dialogue ready for print."""

    title: str
    category: str
    relationship: str
    day: str
    tested: str
    partner: str
    outcome: str
    good: bool
    bubbles: list[Bubble]
    silences: list[str]
    below: list[Finding]
    notes: list[Note] = field(default_factory=list)


def chat_view(
    dialogue: Dialogue,
    *,
    gate: Mapping[str, Any] | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
    rubric: Rubric | None = None,
    scenario: Scenario | None = None,
    valid: bool | None = None,
) -> Chat:
    """What is shown of a dialogue.

    gate: its row of gate.jsonl; verdicts: by the judge's name as printed; rubric: for the wording of failed
    checkboxes; valid: as the ledger says (None: not judged).
    """
    messages = _messages(dialogue)
    below: list[Finding] = []
    _add_gate(gate or {}, messages, below)
    for judge, verdict in (verdicts or {}).items():
        _add_verdict(verdict, judge, rubric, messages, below)
    names = {s: p.name for s, p in dialogue.speakers.items()}
    role = dialogue.evaluated_role
    return Chat(
        title=scenario.title if scenario else dialogue.dialogue_id,
        category=scenario.category if scenario else "",
        relationship=scenario.relationship if scenario else "",
        day=dialogue.start.strftime("%Y-%m-%d") if dialogue.start else "",
        tested=names[role],
        partner=names["b" if role == "a" else "a"],
        outcome=_outcome(dialogue, gate, verdicts or {}, valid),
        good=valid is not False,
        bubbles=_with_unsent(dialogue, messages),
        silences=_silences(dialogue),
        below=below,
        notes=notes_of(dialogue),
    )


def marked_chat(chat: Chat, failing: Collection[tuple[str, int | None]]) -> Chat:
    """The chat with some findings marked, and the messages at which they stand: (id, message index or None)."""

    def mark(findings: Sequence[Finding], index: int | None) -> list[Finding]:
        return [replace(f, marked=not f.partner and (f.id, index) in failing) for f in findings]

    bubbles = []
    for bubble in chat.bubbles:
        findings = mark(bubble.findings, bubble.index)
        bubbles.append(replace(bubble, findings=findings, marked=any(f.marked for f in findings)))
    return replace(chat, bubbles=bubbles, below=mark(chat.below, None))


def chat_html(chats: Sequence[Chat], *, first_open: bool = True) -> str:
    """Chats as an HTML fragment without style, each in a fold-out."""
    return environment().get_template("chats.html").render(chats=chats, first_open=first_open)


def chat_page(chat: Chat) -> str:
    """One chat as an HTML fragment with its style, for a notebook."""
    return f"<style>{asset('chats.css')}</style>\n{chat_html([chat])}"


def _messages(dialogue: Dialogue) -> list[Bubble]:
    turns = {position: number for number, position in enumerate(dialogue.turns(), 1)}
    kept = times_kept(dialogue)
    return [
        Bubble(
            tested=m.speaker == dialogue.evaluated_role,
            name=dialogue.speakers[m.speaker].name,
            at=m.at.strftime("%H:%M:%S"),
            text=m.content,
            opener=m.opener,
            turn=turns.get(i),
            index=i,
            kept=kept[i],
        )
        for i, m in enumerate(dialogue.messages)
    ]


def _with_unsent(dialogue: Dialogue, messages: list[Bubble]) -> list[Bubble]:
    """The messages with every unsent draft at its place in time."""
    drafts = unsent_drafts(dialogue)

    def after(position: int) -> list[Bubble]:
        return [_unsent(dialogue, d) for d in drafts if d.after == position]

    shown = after(-1)
    for position, bubble in enumerate(messages):
        shown += [bubble, *after(position)]
    return shown


def _unsent(dialogue: Dialogue, draft: Unsent) -> Bubble:
    return Bubble(
        tested=draft.speaker == dialogue.evaluated_role,
        name=dialogue.speakers[draft.speaker].name,
        at=draft.at.strftime("%H:%M:%S"),
        text=draft.content,
        unsent=draft.fate,
        became=draft.became,
    )


def _silences(dialogue: Dialogue) -> list[str]:
    """Asks that ended in no draft: a decision to stay silent, or a reply that broke the contract."""
    lines = []
    for ask in dialogue.asks or []:
        who = f"{ask.now.strftime('%H:%M:%S')} {dialogue.speakers[ask.speaker].name}"
        if ask.error is not None:
            lines.append(f"{who}: reply broke the contract ({ask.error.splitlines()[0] if ask.error else 'no reason'})")
        elif ask.decision is not None and (ask.decision.end or not ask.decision.content.strip()):
            lines.append(f"{who}: stays silent")
    return lines


def _add_gate(gate: Mapping[str, Any], messages: list[Bubble], below: list[Finding]) -> None:
    for key in ("violations", "partner_violations"):
        for v in gate.get(key, []):
            text = f"{L0_NAMES[v['id']]} ({v['severity']})"
            finding = Finding(v["id"], text, str(v["evidence"]), "gate", partner=key == "partner_violations")
            at = v["message_index"]
            (messages[at].findings if 0 <= at < len(messages) else below).append(finding)


def _add_verdict(
    verdict: Verdict, judge: str, rubric: Rubric | None, messages: list[Bubble], below: list[Finding]
) -> None:
    questions = {box.id: box.question for box in rubric.boxes()} if rubric else {}
    for answer in verdict.judge_violations():
        finding = Finding(answer.id, L0_NAMES.get(answer.id, ""), answer.reason or "", judge)
        at = answer.message_index
        (messages[at].findings if at is not None and at < len(messages) else below).append(finding)
    for box in failed_boxes(verdict):
        finding = Finding(box.id, questions.get(box.id, ""), box.reason or "", judge)
        (below if box.message_index is None else messages[box.message_index].findings).append(finding)


def _outcome(
    dialogue: Dialogue, gate: Mapping[str, Any] | None, verdicts: Mapping[str, Verdict], valid: bool | None
) -> str:
    parts = [f"{len(dialogue.messages)} messages", f"{len(dialogue.turns())} evaluated turns", *person_in(dialogue)]
    if why := SHORT_ENDINGS[ending(dialogue)] or dialogue.stop:
        parts.append(why)
    if valid is not None:
        fatal = sorted({v["id"] for v in (gate or {}).get("violations", []) if v["severity"] == "fatal"})
        why = ", ".join(fatal) or ("no turns" if (gate or {}).get("reason") == "no_turns" else "found by the judge")
        parts.append("valid" if valid else f"invalid ({why})")
    for judge, verdict in verdicts.items():
        assessed, total = coverage(verdict.boxes())
        parts.append(f"{judge}: {len(failed_boxes(verdict))} failed of {assessed} assessed checkboxes ({total} in all)")
    return " · ".join(parts)

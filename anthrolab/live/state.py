"""The state of a live chat: what follows from its events."""

from dataclasses import dataclass, field

from anthrolab.live.context import EMPTY, Context, rewound
from anthrolab.live.events import (
    Answered,
    Begun,
    ContextSet,
    DraftDropped,
    Ended,
    Event,
    Failed,
    MessageSent,
    Notice,
    Over,
    Rewound,
    Summarised,
    Typed,
    WentOn,
)  # fmt: skip
from anthrolab.runtime.dialogue import Speaker, Summary
from anthrolab.runtime.policy import Answer
from anthrolab.runtime.schedule import Plan, Sent


@dataclass
class State:
    """What follows from the events so far. `answers` has one entry a message, but for the last if it still waits for one.
    `contexts`: every context, with how many messages there were; `analyses`: what the analyser made of it, refusals with
    it. `dropped`: drafts that a guard dropped, with how many messages there were. `typed`: what the person sent and is not out yet, in the order of its time. `person`: the person's side."""

    person: Speaker
    typed: list[Typed] = field(default_factory=list)
    messages: list[Sent] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    summaries: list[Summary] = field(default_factory=list)
    context: Context = field(default_factory=Context)
    contexts: list[tuple[int, Context]] = field(default_factory=list)
    analyses: list[ContextSet] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    held: bool = False
    rewinds: int = 0
    stop: Ended | None = None
    failed: Failed | None = None
    dropped: list[tuple[int, DraftDropped]] = field(default_factory=list)

    @property
    def trouble(self) -> str | None:
        """Why the model could not be had at the open ask; None if nothing is wrong."""
        return self.failed.message if self.failed else None

    def apply(self, event: Event) -> None:
        """One more event."""
        match event:
            case Typed():
                self.typed = sorted([*self.typed, event], key=lambda one: one.at_s)
            case MessageSent():
                if event.speaker == self.person:
                    self.typed = self.typed[1:]
                self.messages.append(Sent(event.speaker, event.content, event.at_s))
            case Answered():
                plan = None if event.content is None else Plan(event.content, event.delay_s, event.end)
                self.answers.append(Answer(plan, event.error, event.recovered, event.call))
                self.failed = None
                if event.analysis is not None:
                    self.apply(event.analysis)
            case Summarised():
                self.summaries.append(event.summary)
            case ContextSet():
                if event.context != self.context:
                    self.contexts.append((len(self.messages), event.context))
                self.context = event.context
                if event.by == "analyser":
                    self.analyses.append(event)
            case Notice():
                self.notices.append(event)
                self.held = True
            case WentOn():
                self.held, self.failed = False, None
            case Failed():
                self.failed = event
            case DraftDropped():
                self.dropped.append((len(self.messages), event))
            case Rewound():
                self._rewind(event.to)
            case Over():
                self.stop = event.stop
            case Begun():
                pass

    def _rewind(self, to: int) -> None:
        self.messages, self.answers = self.messages[: to + 1], self.answers[:to]
        self.summaries = [s for s in self.summaries if s.upto <= to + 1]
        self.context = rewound(self.context, to + 1)
        self.contexts = [(after, c) for after, c in self.contexts if after <= to + 1]
        if (self.contexts[-1][1] if self.contexts else EMPTY) != self.context:
            self.contexts.append((to + 1, self.context))
        self.analyses = [a for a in self.analyses if a.context.upto <= to + 1]
        self.notices = [n for n in self.notices if n.message <= to]
        self.dropped = [(after, d) for after, d in self.dropped if after <= to]
        self.rewinds += 1
        self.held = any(n.message == to for n in self.notices)
        self.typed, self.stop, self.failed = [], None, None

"""The L0 validity gate: deterministic, precision first (paper section 5.2).

One subject a file: `identity` (L0-01), `medium` (02), `presence` (03), `repetition` (05), `facts` (06), `time_logic`
(08); `gate` puts them together, `lines` reads files, `framing` knows questions, wishes, plans and reported words.
"""

from anthrolab.judging.l0.gate import check
from anthrolab.judging.l0.lines import gate_file
from anthrolab.judging.l0.result import SEVERITY, L0Result, Violation

__all__ = ["SEVERITY", "L0Result", "Violation", "check", "gate_file"]

"""`anthrolab doctor`: what works on this machine, and what one endpoint takes and obeys.

`machine` looks at this machine and at who answers; `probe` asks one endpoint, `findings` reads its answers, `advice`
makes settings for systems.yaml of them; `text` prints both.
"""

from anthrolab.models.doctor.advice import advise
from anthrolab.models.doctor.machine import diagnose
from anthrolab.models.doctor.probe import LIMIT_S, probe_endpoint
from anthrolab.models.doctor.text import check_lines, probe_lines

__all__ = ["LIMIT_S", "advise", "check_lines", "diagnose", "probe_endpoint", "probe_lines"]

"""The embedded server: llama.cpp's own, inside this process, on a free loopback port."""

import os
import secrets
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from anthrolab.files import content_hash
from anthrolab.models.budget import Budget
from anthrolab.models.bundled import GEMMA, INSTALL, LocalModelError, gemma_path
from anthrolab.models.endpoint import Endpoint

HASHED_BYTES = 1 << 20
"""How much of each end of a model file goes into its identity: enough to tell files apart, fast for any size."""

PROMPT_CACHE_MIB = 512
"""Memory for prompts that lost their slot to another dialogue (18 kB a token for the bundled model)."""

SPINS = "2000"
"""Turns that an OpenMP thread of llama.cpp spins before it sleeps (GOMP_SPINCOUNT; yours is kept if set)."""

SETTLE_S = 1.0
"""Seconds for the main loop to begin before a server is given up (see `_answers` for why it must have begun)."""


class EmbeddedServer:
    """A model served in this process: `with EmbeddedServer() as server: ... server.url`.

    `model` is "gemma3-270m" (the bundled one) or the path of a GGUF file. `context` is the number of tokens a
    request may have, `slots` how many requests run at once (their tokens share the cores), `threads` defaults to
    all cores. It lives and dies with the process, so that no kill leaves a server behind. Its port answers only
    to the key made for this start. llama.cpp's own log is printed to stderr only if `verbose`.
    """

    def __init__(
        self,
        model: str = GEMMA,
        *,
        context: int = 4096,
        slots: int = 2,
        threads: int | None = None,
        deadline: float = 300.0,
        verbose: bool = False,
    ) -> None:
        self.path, self.identity = find_model(model)
        self.context = context
        self.slots = slots
        self.threads = threads or usable_cores()
        self.deadline = deadline
        self.verbose = verbose
        self.api_key = secrets.token_hex(16)
        self._server: Any = None

    def __repr__(self) -> str:
        return f"EmbeddedServer({self.identity!r}, slots={self.slots})"

    @property
    def url(self) -> str:
        """Base URL of the running server; LocalModelError if it does not run."""
        if self._server is None:
            raise LocalModelError(f"{self.path}: its server does not run; use it inside `with EmbeddedServer(...)`")
        return f"{self._server.listening_address}/v1"

    def start(self) -> None:
        """Load the model and wait until the server answers; LocalModelError if it does not."""
        if self._server is not None:
            return
        xllamacpp = _load_llama_cpp()
        params = xllamacpp.CommonParams()
        params.model.path = str(self.path)
        params.model_alias = {self.path.name}
        params.n_ctx = self.context * self.slots  # llama.cpp divides it among the slots
        params.n_parallel = self.slots
        params.swa_full = True  # without it Gemma's prefix cache is lost at every request
        params.cache_ram_mib = PROMPT_CACHE_MIB
        params.cpuparams.n_threads = self.threads
        params.cpuparams_batch.n_threads = self.threads
        params.verbosity = 3 if self.verbose else 0
        params.api_keys = [self.api_key]
        params.ui = False
        params.port = 0
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError:
            raise LocalModelError(
                f"{self.path}: llama.cpp cannot load this model with context {self.context} and {self.slots} slots; "
                "check the file and the free memory (EmbeddedServer(..., verbose=True) shows llama.cpp's own log)"
            ) from None
        try:
            self._wait_until_ready()
        except BaseException:
            time.sleep(SETTLE_S)
            self.stop()
            raise

    def stop(self) -> None:
        """Shut the server down and free its port and memory."""
        self._server = None  # its destructor ends the main loop and joins its threads

    def client(self, budget: Budget | None = None) -> Endpoint:
        """A client for the running server that has as many requests in flight as there are slots."""
        return Endpoint(self.url, api_key=self.api_key, identity=self.identity, budget=budget, concurrency=self.slots)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + self.deadline
        while not self._answers():
            if time.monotonic() > end:
                raise LocalModelError(
                    f"{self.path}: the embedded server did not become ready within {self.deadline:g} s; "
                    "use a smaller model or raise the deadline"
                )
            time.sleep(0.02)

    def _answers(self) -> bool:
        """True once the main loop runs. /health answers before that, and a server that is shut down before its
        loop runs waits for the end of that loop for ever; /slots is answered by the loop itself."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        asked = urllib.request.Request(
            self.url.removesuffix("/v1") + "/slots", headers={"Authorization": f"Bearer {self.api_key}"}
        )
        try:
            with direct.open(asked, timeout=5):
                return True
        except OSError:
            return False


def _load_llama_cpp() -> Any:
    """The xllamacpp module. Its OpenMP threads wait for one another by spinning, which is set once, at loading:
    SPINS instead of 300,000 turns is as fast on idle cores and several times faster on busy ones."""
    given = os.environ.get("GOMP_SPINCOUNT")
    os.environ["GOMP_SPINCOUNT"] = given or SPINS
    try:
        import xllamacpp
    except ImportError:
        raise LocalModelError(f"the embedded server is not installed; run: {INSTALL}") from None
    finally:
        if given is None:
            del os.environ["GOMP_SPINCOUNT"]
    return xllamacpp


def find_model(model: str) -> tuple[Path, str]:
    """A model's file and its identity (file name and content hash); LocalModelError if it is missing or no GGUF."""
    if model == GEMMA:
        path, sha256 = gemma_path()
        return path, f"embedded:{path.name}:{sha256[:16]}"
    path = Path(model).expanduser().absolute()
    try:
        size = path.stat().st_size
        with open(path, "rb") as f:
            head = f.read(HASHED_BYTES)
            f.seek(max(0, size - HASHED_BYTES))
            tail = f.read(HASHED_BYTES)
    except FileNotFoundError:
        raise LocalModelError(f"{path}: no such model file; give the path of a .gguf file or '{GEMMA}'") from None
    except OSError as e:
        raise LocalModelError(f"{path}: cannot be read ({e.strerror}); give the path of a readable .gguf file") from e
    if not head.startswith(b"GGUF"):
        raise LocalModelError(
            f"{path}: is no GGUF file (it does not begin with 'GGUF'); convert the model for llama.cpp first"
        )
    return path, f"embedded:{path.name}:{content_hash(str(size).encode() + head + tail)}"


def usable_cores() -> int:
    """Cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1

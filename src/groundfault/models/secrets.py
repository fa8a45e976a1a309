"""Secrets: keys and passwords in all spellings of servers, and texts without them."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit

HIDDEN = "[hidden]"
MIN_IN_ANSWERS = 8
"""Fewest characters of a secret to cut out of answers; a shorter one may be a word."""

# endings of environment variables' names that hold a secret
_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def read_credentials(url: str) -> tuple[str, ...]:
    """Read the secret parts of a URL.

    Password, name with password, and the query, which may hold a key.

    Raises
    ------
    ValueError
        If it is no URL.
    """
    parts = urlsplit(url)
    secrets = [parts.password or "", parts.query]
    if parts.password:
        # as HTTP's basic authentication sends them
        secrets.append(f"{unquote(parts.username or '')}:{unquote(parts.password)}")
    return tuple(filter(None, secrets))


def read_environment(shortest: int = 8) -> set[str]:
    """Read values of environment variables with names like OPENAI_API_KEY.

    Services repeat keys in their messages, which are recorded and printed. Shorter values are not
    keys, and removing them would garble messages.

    Parameters
    ----------
    shortest : int
        Fewest characters of a value that counts.
    """
    return {
        value
        for name, value in os.environ.items()
        if name.upper().endswith(_NAMES) and len(value) >= shortest
    }


def spell(secrets: Iterable[str]) -> list[str]:
    """Return the ways in which a server may write secrets, longest first.

    One may contain another.
    """
    forms = set()
    for secret in filter(None, secrets):
        for plain in {secret, unquote(secret)}:
            code = base64.b64encode(plain.encode()).decode()
            forms |= {plain, quote(plain, safe=""), json.dumps(plain)[1:-1], code.rstrip("=")}
            forms.add(base64.urlsafe_b64encode(plain.encode()).decode().rstrip("="))
    return sorted(forms, key=lambda form: (-len(form), form))


def hide(text: str, forms: Iterable[str]) -> str:
    """Return a text without any of the forms that `spell` has listed."""
    for form in forms:
        text = text.replace(form, HIDDEN)
    return text


def hide_in_json(text: str, forms: Iterable[str]) -> str:
    """Hide forms as `hide` does; JSON may also spell any character by its number."""
    forms = tuple(forms)
    text = hide(text, forms)
    try:
        plain = json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    without = hide(plain, forms)
    return text if without == plain else without

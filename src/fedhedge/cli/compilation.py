"""Compiled programmes that outlive the process."""

from __future__ import annotations

import os
from pathlib import Path


def keep_compiled() -> None:
    """Let JAX keep what it compiles in the user's cache folder, unless JAX_COMPILATION_CACHE_DIR names another.

    A command that runs again then starts in a second or two instead of many.
    """
    import jax

    from fedhedge.data.resolve import user_cache

    folder = Path(os.environ.get("JAX_COMPILATION_CACHE_DIR") or user_cache() / "compiled")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        # Without a cache that can be written everything is simply compiled every time.
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)  # type: ignore[no-untyped-call]

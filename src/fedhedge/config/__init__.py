"""Configuration files: TOML tables, checked in full before any work is done."""

from fedhedge.config.config import Config, load_config

__all__ = ["Config", "load_config"]

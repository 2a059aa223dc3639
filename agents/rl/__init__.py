"""Trained schedulers. Playing them needs numpy only; torch is imported by the modules that train."""

from .trained import load_trained

__all__ = ["load_trained"]

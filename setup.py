"""Carries the checkout's `agents` and `scenarios` inside the wheel, as hetenv.agents and hetenv.scenarios.

An editable install maps nothing: the loaders then find both folders beside `hetenv` in the checkout.
"""

from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

CARRIED = [name for name in ("agents", "scenarios") if Path(name).is_dir()]


class BuildWithCarried(build_py):
    """build_py that adds the carried folders, except in an editable install."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.editable_mode:
            return
        found = find_packages(include=[f"{name}{end}" for name in CARRIED for end in ("", ".*")])
        self.packages = [*self.packages, *(f"hetenv.{name}" for name in sorted({*found, *CARRIED}))]
        self.package_dir = {**(self.package_dir or {}), **{f"hetenv.{name}": name for name in CARRIED}}


setup(cmdclass={"build_py": BuildWithCarried})

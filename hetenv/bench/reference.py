"""Reference cases: folders with a trace, a cluster and what a published simulator made of them, run again by hetenv.

A *form* is one way to lay out such a folder; each has a module of its own with `NAME`, `recognises` and `run`. Everything runs
through the Simulator and registered planners: what is special about a simulator is a setting of the scenario (clock, overheads,
knowledge) or a policy that says so.
"""

from pathlib import Path
from typing import Any, Final, Protocol

from hetenv.bench import reference_pollux, reference_swf, reference_tiresias
from hetenv.errors import ScenarioError

Row = dict[str, Any]
"""Of one policy or one cell; see the form's `run`."""


class Form(Protocol):
    """A module that runs one form of case."""

    NAME: str

    def recognises(self, folder: Path) -> bool:
        """Whether the folder's files are of this form."""

    def run(self, folder: Path, policy: str | None, replay: bool) -> list[Row]:
        """The case's policies (one, or all where None), each against what is expected.

        Args:
            replay: use the stored allocations of the original in place of the policy's own.
        """


FORMS: Final[tuple[Form, ...]] = (reference_swf, reference_tiresias, reference_pollux)
"""In the order in which they are tried."""


def form_of(folder: Path) -> Form:
    """The form of a case; ScenarioError says why there is none."""
    if not folder.is_dir():
        raise ScenarioError(f"{folder}: no such folder; a reference case is a folder with its trace and expected values")
    for form in FORMS:
        if form.recognises(folder):
            return form
    names = ", ".join(form.NAME for form in FORMS)
    files = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
    raise ScenarioError(f"{folder}: not a reference case of a known form ({names}); it holds {files}")


def run(folder: Path, policy: str | None = None, replay: bool = False) -> list[Row]:
    """Run a case; rows as its form gives them."""
    return form_of(folder).run(folder, policy, replay)

"""What planners see of one simulation, and the loop that lets one decide."""

from hetenv.view.drive import drive
from hetenv.view.jobs import JOB_VIEW
from hetenv.view.view import View

__all__ = ["JOB_VIEW", "View", "drive"]

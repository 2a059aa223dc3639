"""The `hetenv` command. Bad input ends with status 2 and one line on stderr; a traceback is always a bug of ours."""

import os
import sys
from typing import Final, cast

import typer

from hetenv.cli.app import app
from hetenv.errors import HetenvError

_CommandLineError: Final = cast(type[Exception], typer.BadParameter.__mro__[2])
"""click's ClickException, wherever this version of typer keeps it."""
INTERRUPTED: Final = 130


def main() -> None:
    """Run the command line and exit with its status."""
    sys.exit(status_of(sys.argv[1:]))


def status_of(arguments: list[str]) -> int:
    """Run one command line; returns the exit status."""
    try:
        status = app(arguments, prog_name="hetenv", standalone_mode=False) or 0
        return _interrupted() if status == INTERRUPTED else status
    except HetenvError as error:
        return _refuse(str(error))
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None:
            raise
        return _refuse(f"{error.filename}: {error.strerror}")
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except _CommandLineError as error:
        message = getattr(error, "format_message", error.__str__)()
        return _refuse(f"{message} (see hetenv --help)")


def _refuse(message: str) -> int:
    print("hetenv: " + " ".join(message.split()), file=sys.stderr)
    return 2


def _interrupted() -> int:
    print("hetenv: interrupted; what was finished is kept where --out was given", file=sys.stderr)
    return INTERRUPTED

"""Every reference case that is promised has tests that bear its number."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PROMISED = {*range(1, 12), *range(13, 17), *range(18, 25)}
"""P01 to P11, P13 to P16, P18 to P24. P12, P17, P25 and P28 have some, too."""


def test_every_promised_case_has_a_test() -> None:
    found = {
        int(number)
        for path in TESTS.rglob("test_*.py")
        for number in re.findall(r"^def test_p(\d\d)_", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert not PROMISED - found

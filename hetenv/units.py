"""SI conversion factors. Inside hetenv every quantity is in s, bytes, W, J, samples; conversions happen once, at the edge."""

from typing import Final

KILO: Final = 1e3
MEGA: Final = 1e6
GIGA: Final = 1e9
TERA: Final = 1e12

MINUTE_S: Final = 60.0
HOUR_S: Final = 3600.0
DAY_S: Final = 86400.0

JOULE_PER_KWH: Final = 3.6e6
JOULE_PER_MWH: Final = 3.6e9
BITS_PER_BYTE: Final = 8.0
KG_PER_LB: Final = 0.45359237

POWER_QUANTUM_W: Final = 2.0**-10
"""Powers enter the simulator as multiples of this, so that their float64 sums are exact in any order."""


def quantise_power(power_w: float) -> float:
    """The multiple of POWER_QUANTUM_W nearest to `power_w` (W)."""
    return round(power_w / POWER_QUANTUM_W) * POWER_QUANTUM_W

"""When renewable power that a grid cannot use is there for a site: at low carbon intensity, at low prices, beyond local demand."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hetenv.errors import ScenarioError

Array = NDArray[np.float64]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    power_w: float = Field(gt=0.0, allow_inf_nan=False, description="renewable power that the site may then take")


class LowCarbon(_Part):
    """Power while the marginal carbon intensity (the average, where no marginal one is given) is below a threshold.

    Default 100 g/kWh: training in curtailment windows, arXiv 2602.22760.
    """

    kind: Literal["low_carbon"] = "low_carbon"
    below_g_per_kwh: float = Field(default=100.0, gt=0.0, allow_inf_nan=False)


class LowPrice(_Part):
    """Power while the price is below a threshold; default: while it is negative."""

    kind: Literal["low_price"] = "low_price"
    below_usd_per_mwh: float = Field(default=0.0, allow_inf_nan=False)


Curtailment = Annotated[LowCarbon | LowPrice, Field(discriminator="kind")]


def curtailed_w(rules: tuple[Curtailment, ...], g_per_kwh: Array | None, usd_per_mwh: Array | None, where: str) -> Array | float:
    """[T] power that is there for the site by these rules together, W.

    Args:
        g_per_kwh: [T] intensity that `low_carbon` reads, None where the site has none.
        usd_per_mwh: [T] price that `low_price` reads.

    Raises:
        ScenarioError: a rule reads what the site does not have.
    """
    total: Array | float = 0.0
    for index, rule in enumerate(rules):
        read, name = (g_per_kwh, "marginal_carbon or carbon") if isinstance(rule, LowCarbon) else (usd_per_mwh, "price")
        if read is None:
            raise ScenarioError(f"{where}[{index}]: {rule.kind} needs the site's {name}; state it")
        limit = rule.below_g_per_kwh if isinstance(rule, LowCarbon) else rule.below_usd_per_mwh
        total = total + np.where(read < limit, rule.power_w, 0.0)
    return total

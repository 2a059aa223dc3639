"""Distributions of run times, in seconds."""

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator


class FixedDuration(BaseModel):
    """The same run time for every job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["fixed"] = "fixed"
    value_s: float = Field(ge=0.0, allow_inf_nan=False)

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """[n] run times, s."""
        return np.full(n, self.value_s)


class ExponentialDuration(BaseModel):
    """Memoryless run times."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["exponential"] = "exponential"
    mean_s: float = Field(gt=0.0, allow_inf_nan=False)

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """[n] run times, s."""
        return rng.exponential(self.mean_s, n)


class LognormalDuration(BaseModel):
    """Heavy-tailed run times: ln is normal around ln(median_s); values beyond a bound are set to the bound.

    Published GPU clusters have sigma of 1.5 to 2.5 (Philly 1.8).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["lognormal"] = "lognormal"
    median_s: float = Field(gt=0.0, allow_inf_nan=False)
    sigma: float = Field(default=1.5, ge=0.0, le=5.0)
    min_s: float = Field(default=0.0, ge=0.0)
    max_s: float = Field(default=np.inf, gt=0.0)

    @model_validator(mode="after")
    def _ordered(self) -> "LognormalDuration":
        if self.min_s > self.max_s:
            raise ValueError(f"min_s {self.min_s} is above max_s {self.max_s}; swap them")
        return self

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        """[n] run times, s."""
        drawn = self.median_s * np.exp(self.sigma * rng.standard_normal(n))
        return np.clip(drawn, self.min_s, self.max_s)


Duration = Annotated[FixedDuration | ExponentialDuration | LognormalDuration, Field(discriminator="kind")]

"""What causes share: the source's name, presets of published rates, and the nodes that a cause names by pool."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hetenv import catalog
from hetenv.cluster import Cluster
from hetenv.errors import ScenarioError, unknown


class Part(BaseModel):
    """A frozen config that knows its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Cause(Part):
    """Base of causes; the subclass states `kind` and `draw`."""

    kind: str
    name: str | None = Field(default=None, min_length=1, description="source name; default: the kind")

    @property
    def source_name(self) -> str:
        return self.name or self.kind

    def nodes_of(self, cluster: Cluster, pools: tuple[str, ...] | None) -> NDArray[np.int64]:
        """Indices of the nodes of some pools (None: of all), ascending. Raises ScenarioError."""
        if pools is None:
            return np.arange(cluster.n_nodes)
        chosen = [self.pool_of(cluster, pool, "pools") for pool in pools]
        return np.flatnonzero(np.isin(cluster.node_pool, chosen))

    def pool_of(self, cluster: Cluster, pool: str, field: str) -> int:
        """Index of a pool; ScenarioError names the field that holds the name."""
        if pool not in cluster.pool_names:
            raise ScenarioError(f"events.{self.source_name}.{field}: {unknown('pool', pool, cluster.pool_names)}")
        return cluster.pool(pool)

    def site_of(self, cluster: Cluster, site: str, field: str) -> int:
        """Index of a site; ScenarioError names the field that holds the name."""
        if site not in cluster.site_names:
            raise ScenarioError(f"events.{self.source_name}.{field}: {unknown('site', site, cluster.site_names)}")
        return cluster.site(site)


class PublishedCause(Cause):
    """A cause whose fields may come from a published study: `preset`. A field stated beside it wins."""

    preset: str | None = Field(default=None, description="a row of catalog/event_presets.csv of this kind")

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("preset") is None:
            return data
        entry = catalog.event_preset(cls.model_fields["kind"].default, data["preset"])
        return {**entry.fields, **data}

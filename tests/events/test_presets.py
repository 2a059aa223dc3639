"""Presets: each reproduces its published figures within sampling error over 200 episodes."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from hetenv import catalog
from hetenv.bench.event_presets import BEGIN, END, N_EPISODES, measured, rewrite, surroundings
from hetenv.errors import ScenarioError
from hetenv.events import EVENT_TYPES, EventConfig, Failures
from hetenv.events.rates import FIGURES, absences, measure
from hetenv.events.stream import Effect, EventContext, rows

Z = 3.5
"""Standard errors that a figure may be off: 1 in 2,000 by chance."""


@pytest.mark.parametrize("name", catalog.names("event_presets"))
def test_a_preset_reproduces_its_published_figures(name: str) -> None:
    for row in measured(name):
        assert row.found.n_episodes == N_EPISODES
        off = abs(row.found.value - row.published)
        assert off < Z * row.found.standard_error + 1e-3 * row.published, row
        assert row.found.standard_error < 0.15 * row.published, "too few events to tell"


def test_every_figure_of_every_preset_is_known_and_has_a_source() -> None:
    for entry in catalog.event_presets().values():
        assert set(entry.figures) <= set(FIGURES) and entry.figures, entry.name
        assert entry.source and entry.licence


def test_a_field_beside_a_preset_wins() -> None:
    parse = TypeAdapter(EventConfig).validate_python
    plain = parse({"kind": "failures", "preset": "meta_rsc1"})
    stated = parse({"kind": "failures", "preset": "meta_rsc1", "spread_sigma": 0})
    assert isinstance(plain, Failures) and isinstance(stated, Failures)
    assert plain.spread_sigma == 0.8 and stated.spread_sigma == 0 and stated.mtbf_h == plain.mtbf_h
    assert parse(plain.model_dump()) == plain


def test_an_unknown_preset_names_those_of_its_kind() -> None:
    with pytest.raises(ValidationError, match="unknown preset of failures 'meta_rcs1'; did you mean 'meta_rsc1'"):
        Failures.model_validate({"preset": "meta_rcs1"})
    with pytest.raises(ValidationError, match="unknown preset of failures 'bamboo_p3'"):
        Failures.model_validate({"preset": "bamboo_p3"})


def test_figures_of_rows_by_hand() -> None:
    context = EventContext(surroundings("spot").cluster, np.zeros(4), 100.0)
    nodes = context.cluster.n_nodes
    drawn = np.concatenate(
        [
            rows(Effect.NODE_DOWN, [10, 10], [0, 1], [20, 30]),  # node 0: 10-30, node 1: 10-40
            rows(Effect.NODE_DOWN, [35, 0], [1, 2], [15, 5]),  # node 1: to 50; node 2: 0-5
            rows(Effect.NODE_DOWN, 90, 0, np.inf),  # node 0: 90-100
            rows(Effect.JOB_CRASH, 5, [0, 0, 2], 0),
        ]
    )
    node, from_s, to_s = absences(drawn, 100.0)
    assert list(zip(node, from_s, to_s)) == [(0, 10, 30), (0, 90, 100), (1, 10, 50), (2, 0, 5)]
    found = {name: figure(drawn, context) for name, figure in FIGURES.items()}
    up_s = nodes * 100.0 - 75
    assert found["availability"] == (up_s, nodes * 100.0)
    assert found["mean_up_s"] == (up_s, 3) and found["mean_down_s"] == (75, 3)
    assert found["nodes_per_reclaim"] == (3, 2) and found["share_failed"] == (2, 4)


def test_figures_of_sites_by_hand() -> None:
    context = EventContext(surroundings("renewables").cluster, np.zeros(0), 4 * 3600.0)
    price = rows(Effect.SITE_PRICE, [0, 3600, 9000], 0, np.array([-20.0, 40.0, -0.5]) / 3.6e9)
    carbon = rows(Effect.SITE_CARBON, [0, 7200], 0, np.array([99.0, 101.0]) / 3.6e9)
    found = {name: figure(np.concatenate([carbon, price]), context) for name, figure in FIGURES.items() if name.endswith(("_year", "wh"))}
    year = 4 / 8760
    assert found["negative_price_hours_per_year"] == pytest.approx((1 + 1.5, year))
    assert found["hours_below_100_g_per_year"] == pytest.approx((2, year))
    assert found["mean_price_usd_per_mwh"] == pytest.approx((3600 * (-20 + 60 - 0.75), 4 * 3600))
    assert found["mean_carbon_g_per_kwh"] == pytest.approx((7200 * 200, 4 * 3600))


def test_a_site_may_take_its_weather_from_a_preset() -> None:
    site = TypeAdapter(EventConfig).validate_python(
        {"kind": "renewables", "sites": {"a": {"preset": "caiso_2023", "cloudiness": 0.6, "solar": {"peak_w": 5}}}}
    ).sites["a"]
    assert (site.latitude_deg, site.cloudiness, site.carbon.solar_share, site.solar.peak_w) == (37, 0.6, 0.5, 5)
    with pytest.raises(ValidationError, match="unknown preset of renewables 'caiso'; did you mean 'caiso_2023'"):
        TypeAdapter(EventConfig).validate_python({"kind": "renewables", "sites": {"a": {"preset": "caiso"}}})


def test_an_unknown_figure_is_named() -> None:
    with pytest.raises(ScenarioError, match="unknown figure 'availabilty'; did you mean 'availability'"):
        measure(Failures(mtbf_h=1), surroundings("spot"), ("availabilty",), 1)


def test_the_table_is_put_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "events.md"
    page.write_text(f"above\n{BEGIN}\nold\n{END}\nbelow\n", encoding="utf-8")
    rewrite(page, measured("meta_rsc1", 3))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"above\n{BEGIN}\n| cause |") and text.endswith(f"{END}\nbelow\n") and "old" not in text
    page.write_text("nothing", encoding="utf-8")
    with pytest.raises(ScenarioError, match="the marks"):
        rewrite(page, [])


def test_the_page_shows_every_preset_and_every_cause() -> None:
    page = (Path(__file__).parents[2] / "docs/events.md").read_text(encoding="utf-8")
    for entry in catalog.event_presets().values():
        for figure in entry.figures:
            assert f"| `{entry.name}` | {figure} |" in page, "run: hetenv presets --page docs/events.md"
    for event_type in EVENT_TYPES:
        kind = event_type.model_fields["kind"].default  # type: ignore[attr-defined]
        assert f"| `{kind}` |" in page, "add a line for the new cause to docs/events.md"

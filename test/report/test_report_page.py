# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The page as a browser sees it: nothing asked for, nothing complained about, everything shown, on any width."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from identification_helpers import as_described
from report_helpers import Chromium, find_chromium, moving_arm

from robotid_ros.calibration import calibrate
from robotid_ros.excitation import FourierTrajectory
from robotid_ros.free_floating import FreeFloatingRobot, RigidBody, SensorNoise, identify_target, simulate
from robotid_ros.identification import identify
from robotid_ros.report import Report, render_report, write_report
from robotid_ros.report.calibration import calibration_report
from robotid_ros.report.free_floating import free_floating_report
from robotid_ros.report.identification import identification_report
from robotid_ros.simulation.measured_arm import example_arm

pytest.importorskip('plotly', reason='the plot extra is not installed')

LARGEST_PAGE = 3_500_000  # bytes, 2 MB of them plotly.js


def _identification() -> Report:
    model, training = moving_arm(0, samples=700)
    _, validation = moving_arm(1, samples=500)
    with as_described():
        result = identify(training, model, friction='coulomb_viscous', validation=validation)
    return identification_report(model, result, training, validation=validation, true_base=2.0 * _base(model, result))


def _base(model: object, result: object) -> np.ndarray:
    from robotid_ros.identification import TorquePredictor

    return TorquePredictor(model, result).base.values  # type: ignore[arg-type]


def _calibration() -> Report:
    rng = np.random.default_rng(3)
    arm = example_arm(rng)
    points = arm.measure(arm.configurations(40, rng), rng, noise=1e-4)
    return calibration_report(calibrate(arm.nominal, points))


def _free_floating() -> Report:
    from report_helpers import UR10E

    rng = np.random.default_rng(0)
    body = RigidBody(mass=40.0, center_of_mass=[0.05, 0.02, 0.3], inertia=np.diag([2.0, 2.2, 1.8]))
    robot = FreeFloatingRobot.from_urdf(UR10E.parent / 'iiwa14_space.urdf', target=body)
    size = (robot.n, 3)
    trajectory = FourierTrajectory(
        a=rng.normal(0, 0.2, size), b=rng.normal(0, 0.2, size), offset=np.full(robot.n, 0.3), base_frequency=0.1
    )
    measurement = simulate(robot, trajectory, np.arange(0.0, 5.0, 0.05)).with_noise(SensorNoise(), rng)
    return free_floating_report(identify_target(robot, measurement), truth=robot.body)


BUILDERS = {'identification': _identification, 'calibration': _calibration, 'free_floating': _free_floating}


@pytest.fixture(scope='module', params=sorted(BUILDERS))
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    report = BUILDERS[request.param]()
    path = tmp_path_factory.mktemp('report') / 'report.html'
    write_report(report, path)
    return report, path


@pytest.fixture(scope='module')
def browser() -> Iterator[Chromium]:
    chromium = Chromium(find_chromium())
    try:
        yield chromium
    finally:
        chromium.close()


def test_the_page_is_one_small_file_without_references(page: tuple[Report, Path]) -> None:
    text = page[1].read_text(encoding='utf-8')
    assert len(text.encode()) < LARGEST_PAGE
    assert not re.search(r'https?:|<link(?! rel="icon" href="data:,")|src=|@import|url\((?!#)', text)
    identifiers = re.findall(r'\bid="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    for reference in re.findall(r'(?:href="#|url\(#)([^")]+)', text):
        assert reference in identifiers


class _Outline(HTMLParser):
    """Collects what a screen reader needs."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.labels: list[str] = []
        self.language = ''

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if re.fullmatch('h[1-6]', tag):
            self.headings.append(int(tag[1]))
        if found.get('role') == 'img':
            self.labels.append(found.get('aria-label') or '')
        if tag == 'html':
            self.language = found.get('lang') or ''


def test_the_page_can_be_read_without_seeing_it(page: tuple[Report, Path]) -> None:
    report, path = page
    outline = _Outline()
    outline.feed(path.read_text(encoding='utf-8'))
    assert outline.language == 'en'
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    steps = np.diff(outline.headings)
    assert steps.max() <= 1, 'a heading level is skipped'
    charts = [label for label in outline.labels if not label.endswith(' light')]
    assert len(charts) == sum(len(figure.charts) for figure in report.figures)
    assert all(len(label) > 30 and 'nan' not in label.lower() for label in charts)
    assert all(figure.reading.endswith('.') for figure in report.figures)


def _drawn(browser: Chromium, path: Path, width: int) -> None:
    """Draw every chart of a page, unless the browser shows it so: it is most of the work."""
    if browser.drawn == (path, width):
        return
    browser.open(path, width)
    browser.evaluate('robotid.ready.then(() => { robotid.all(); return Promise.all([...document.querySelectorAll('
                     '".chart")].map(e => e._promise || 0)).then(() => 1); })')  # fmt: skip
    browser.drawn = path, width


# Drawing takes seconds: a telephone and a desk for the page with the most charts, one of them for each of the others.
@pytest.mark.parametrize(
    ('page', 'width'),
    [('calibration', 390), ('free_floating', 1280), ('identification', 390), ('identification', 1280)],
    indirect=['page'],
)
def test_the_browser_shows_everything(page: tuple[Report, Path], browser: Chromium, width: int) -> None:
    report, path = page
    _drawn(browser, path, width)
    assert browser.complaints() == []
    assert [address for address in browser.requests() if not address.startswith(('file:', 'data:', 'blob:'))] == []
    assert browser.evaluate('document.documentElement.scrollWidth') <= width
    assert browser.evaluate("document.querySelectorAll('figure').length") == len(report.figures)
    sizes = browser.evaluate(
        "[...document.querySelectorAll('.chart')].map(c => [c.clientWidth, c.querySelector('.main-svg').clientWidth,"
        " c.querySelectorAll('.trace, .hm').length, c.querySelectorAll('text').length, c.data.length])"
    )
    assert len(sizes) == sum(len(figure.charts) for figure in report.figures)
    for outer, inner, marks, texts, traces in sizes:
        assert 300 < inner <= outer
        assert marks == traces
        assert texts > 3
    # The text of a chart is legible and inside it.
    outside = browser.evaluate(
        "[...document.querySelectorAll('.chart')].flatMap(s => { const b = s.getBoundingClientRect();"
        " return [...s.querySelectorAll('.main-svg text')].filter(t => t.textContent).filter(t => {"
        ' const r = t.getBoundingClientRect(); return r.width > 0 && (r.left < b.left - 1 || r.right > b.right + 1'
        ' || r.top < b.top - 1 || r.bottom > b.bottom + 1 || Math.min(r.height, r.width) < 5);'
        ' }).map(t => t.textContent); })'
    )
    assert outside == []


@pytest.mark.parametrize('page', ['free_floating', 'identification'], indirect=True)  # those with charts over time
def test_charts_of_one_run_zoom_together_and_the_legend_hides_curves(
    page: tuple[Report, Path], browser: Chromium
) -> None:
    report, path = page
    linked = [figure for figure in report.figures if figure.charts[0].layout.get('meta') == 'linked']
    _drawn(browser, path, 1280)
    place = report.figures.index(linked[0])
    ranges = browser.evaluate(
        '(async () => '
        f"{{ const f = document.querySelectorAll('figure')[{place}];"
        " const c = [...f.querySelectorAll('.chart')];"
        " await Plotly.relayout(c[0], {'xaxis.range': [1, 2]}); await new Promise(r => setTimeout(r, 300));"
        ' return c.map(e => [...e._fullLayout.xaxis.range]); })()'
    )
    assert ranges == [[1, 2]] * len(linked[0].charts)
    seen = browser.evaluate(
        '(async () => '
        f"{{ const f = document.querySelectorAll('figure')[{place}];"
        " f.querySelector('.legend button').click();"
        " await new Promise(r => setTimeout(r, 300)); return [...f.querySelectorAll('.chart')].map(e =>"
        ' e._fullData.map(t => t.visible)); })()'
    )
    assert all((False in chart and True in chart) or chart == [False] for chart in seen)


@pytest.mark.parametrize('page', ['free_floating'], indirect=True)  # draws every chart once more
def test_it_prints_on_few_pages(page: tuple[Report, Path], browser: Chromium) -> None:
    report, path = page
    browser.open(path, 1280)
    browser.evaluate('robotid.ready.then(() => 1)')
    pdf = browser.pdf()
    pages = len(re.findall(rb'/Type\s*/Page\b', pdf))
    charts = sum(len(figure.charts) for figure in report.figures)
    assert 1 <= pages <= 5 + charts / 4
    assert browser.evaluate("[...document.querySelectorAll('.chart')].every(c => c.data)")  # all, not those in sight


@pytest.mark.slow
def test_what_users_name_is_escaped() -> None:
    model, training = moving_arm(0, samples=400)
    result = identify(training, model, friction='coulomb_viscous', estimator='wls')
    from dataclasses import replace

    text = render_report(identification_report(model, replace(result, robot='<script>alert(1)</script>'), training))
    assert '<script>alert' not in text
    assert '&lt;script&gt;' in text

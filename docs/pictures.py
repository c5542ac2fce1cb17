# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Makes the pictures of README and manual from what ``robotid demo`` left in a folder, with a headless Chromium.

    robotid demo --out robotid_demo && python docs/pictures.py robotid_demo

Needs the extras ``web`` and ``docs`` (Pillow, for the animation), and Chromium on PATH. The diagrams need nothing.
"""

import base64
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'test'))

OUT = HERE / '_static'
FRAMES = 36
WHOLE = (1280, 470)
TALL = 14_000  # px: a whole report in sight, so that taking its picture does not move anything


def main(folder: Path) -> None:
    """Make all pictures from the folder of a demonstration."""
    OUT.mkdir(exist_ok=True)
    write_diagrams(OUT)
    from report_helpers import Chromium, find_chromium

    browser = Chromium(find_chromium())
    try:
        browser.call('Emulation.setScrollbarsHidden', hidden=True)  # a picture has none: what was measured would move
        whole(browser, folder)
        animation(browser, folder / 'training.html')
        part(browser, folder / 'training.html', 1100, 'robotid.shown', 'body', OUT / 'design_page.png', height=1150)
        ready = 'robotid.ready'
        part(browser, folder / 'report.html', 1100, ready, 'body', OUT / 'report_page.png', height=1250)
        for title, name in (('Friction curves', 'friction_curves'), ('Base parameters by link', 'base_parameters')):
            part(browser, folder / 'report.html', 1100, ready, figure(title), OUT / f'{name}.png')
    finally:
        browser.close()


def figure(title: str) -> str:
    """Return the expression for the figure of a report whose caption begins like this."""
    captions = "[...document.querySelectorAll('figcaption h3')]"
    return f"{captions}.find(each => each.textContent.startsWith('{title}')).closest('figure')"


def part(
    browser: Any, page: Path, width: int, ready: str, element: str, target: Path, *, height: float | None = None
) -> None:
    """Take a picture of one element of a page, or of its upper part."""
    browser.open(page, width, 900 if height is not None else TALL)
    browser.evaluate(
        f'robotid.ready.then(() => {ready}).then(() => robotid.all && robotid.all())'
        '.then(() => new Promise(done => setTimeout(done, 2500)))'
    )
    element = "document.querySelector('body')" if element == 'body' else element
    box = browser.evaluate(
        f'(() => {{ const b = {element}.getBoundingClientRect(); return [b.x + scrollX, b.y + scrollY, b.width,'
        ' b.height]; })()'
    )
    x, y, w, h = box
    if height is not None:
        x, y, w, h = 0.0, 0.0, float(width), height
    clip = {'x': x - 12.0 if x > 12.0 else 0.0, 'y': y, 'width': w + 24.0 if x > 12.0 else w, 'height': h, 'scale': 1}
    picture = browser.call('Page.captureScreenshot', captureBeyondViewport=True, clip=clip)
    target.write_bytes(base64.b64decode(picture['data']))
    print(f'written: {target}')


def animation(browser: Any, page: Path) -> None:
    """Write the arm moving through one period as an animated GIF."""
    from PIL import Image

    browser.open(page, 640, 800)
    box = browser.evaluate(
        "robotid.ready.then(() => robotid.shown).then(() => { const b = document.getElementById('scene')"
        '.getBoundingClientRect(); return [b.x + scrollX + 1, b.y + scrollY + 30, b.width - 2, b.height - 60]; })'
    )
    clip = {**dict(zip(('x', 'y', 'width', 'height'), box, strict=True)), 'scale': 0.8}
    period = _period(page)
    pictures = []
    for k in range(FRAMES):
        browser.evaluate(f'robotid.seek({period * k / FRAMES}).then(() => 1)')
        picture = browser.call('Page.captureScreenshot', captureBeyondViewport=True, clip=clip)
        image = Image.open(io.BytesIO(base64.b64decode(picture['data']))).convert('RGB')
        pictures.append(image.quantize(32, dither=Image.Dither.NONE))
    target = OUT / 'arm.gif'
    pictures[0].save(
        target, save_all=True, append_images=pictures[1:], duration=round(1000 * period / FRAMES), loop=0, optimize=True
    )
    print(f'written: {target}, {target.stat().st_size // 1000} kB')


def _period(page: Path) -> float:
    from robotid_ros.excitation import load_excitation

    return load_excitation(page.with_suffix('.yaml')).trajectory.period


def design_period(folder: Path) -> float:
    """Return the period of the validation's trajectory [s]."""
    return _period(folder / 'validation.html')


def whole(browser: Any, folder: Path) -> None:
    """Write the picture that README opens with: the arm, its excitation, and the torque before and after."""
    from robotid_ros.data import ProcessingSettings, process_file
    from robotid_ros.excitation import load_excitation
    from robotid_ros.identification import IdentificationResult, TorquePredictor
    from robotid_ros.model import RobotConfig, RobotModel
    from robotid_ros.model.packaged import arm_file
    from robotid_ros.report.content import Chart
    from robotid_ros.report.page import html_page, panel
    from robotid_ros.report.subject import predicted_run

    model = RobotModel.from_urdf(arm_file('ur10e'))
    config = RobotConfig.from_yaml(arm_file('ur10e').with_suffix('.yaml'))
    result = IdentificationResult.load(folder / 'result.yaml')
    _, last = sorted((folder / 'recordings').iterdir())
    data, _ = process_file(last, ProcessingSettings.for_robot(config))
    data = data.select(np.flatnonzero(data.time < data.time[0] + design_period(folder)))
    predictor = TorquePredictor(model, result)
    run = predicted_run('Validation', predictor.prepared(data), predictor)
    design = load_excitation(folder / 'training.yaml')
    time = np.linspace(0.0, design.trajectory.period, 500)
    j = 1
    error = {name: float(np.sqrt(np.mean((run.dataset.tau[:, j] - torque[:, j]) ** 2))) for name, torque in (
        ('before', run.described), ('after', run.predicted))}  # fmt: skip
    charts = {
        'motion': Chart(
            '2. An exciting motion, within all limits',
            'time [s]',
            'position [rad]',
            alt='Six joint positions over one period.',
            height=330,
        ),
        'torque': Chart(
            '3. Its torque, before and after',
            'time [s]',
            'torque of the shoulder [N·m]',
            note=f'error {error["before"]:.1f} → {error["after"]:.2f} N·m',
            alt='Torque of the second joint.',
            height=330,
            showlegend=True,
            legend={'orientation': 'h', 'x': 0, 'y': 1.02, 'yanchor': 'bottom'},
            margin={'l': 56, 'r': 12, 't': 30, 'b': 42},
        ),
    }
    for k, (q, name) in enumerate(zip(design.trajectory.position(time).T, model.joint_names, strict=True)):
        charts['motion'].line(k, time, q, name)
    grey, when = {'color': '#848e9a', 'width': 4}, run.dataset.time
    charts['torque'].line('measured', when, run.dataset.tau[:, j], 'measured', line=grey)
    charts['torque'].line('prior', when, run.described[:, j], 'robot description')
    charts['torque'].line('predicted', when, run.predicted[:, j], 'identified')
    browser.open(folder / 'training.html', 900)
    browser.evaluate('robotid.ready.then(() => robotid.shown).then(() => 1)')
    scene = browser.evaluate(
        "robotid.seek(2.4).then(() => Plotly.toImage('scene', {format: 'png', width: 560, height: 460, scale: 2}))"
    )
    body = (
        '<style>body{max-width:none;padding:14px 18px}.row{display:grid;grid-template-columns:1fr 1fr 1fr;gap:26px}'
        'img{width:100%;height:330px;object-fit:cover}footer,.modebar-container{display:none}.panel-title{font-size:1.05rem}</style>'
        '<div class="row"><div class="panel"><p class="panel-title"><b>1. An arm, from its URDF</b></p><img '
        f'src="{scene}" '
        f'alt=""></div>{panel(charts["motion"], "motion")}{panel(charts["torque"], "torque")}</div>'
    )
    page = folder / 'whole.html'
    page.write_text(html_page('robotid_ros', body, charts), encoding='utf-8')
    part(browser, page, WHOLE[0], 'robotid.all()', 'body', OUT / 'whole.png', height=395)
    page.unlink()


_STYLE = 'font-family="Helvetica, Arial, sans-serif" font-size="15" fill="#1c2430" stroke-linejoin="round"'


def _box(x: float, y: float, w: float, h: float, title: str, text: str = '', colour: str = '#e8f1f8') -> str:
    lines = text.split('\n') if text else []
    rows = ''.join(
        f'<text x="{x + w / 2}" y="{y + 42 + 18 * k}" text-anchor="middle" font-size="12.5" fill="#566170">{row}</text>'
        for k, row in enumerate(lines)
    )
    top = y + (24 if lines else h / 2 + 5)
    return (
        f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="8" fill="{colour}" stroke="#7c8896"/>'
        f'<text x="{x + w / 2}" y="{top}" text-anchor="middle" font-weight="bold">{title}</text>{rows}'
    )


def _arrow(points: list[tuple[float, float]], label: str = '', at: tuple[float, float] | None = None) -> str:
    way = ' '.join(f'{"M" if k == 0 else "L"}{x} {y}' for k, (x, y) in enumerate(points))
    text = ''
    if label and at is not None:
        text = f'<text x="{at[0]}" y="{at[1]}" text-anchor="middle" font-size="12.5" fill="#005a94">{label}</text>'
    return f'<path d="{way}" fill="none" stroke="#39424e" stroke-width="1.6" marker-end="url(#tip)"/>{text}'


def _svg(width: int, height: int, title: str, parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{title}" {_STYLE}><defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 1L9 5L0 9z" fill="#39424e"/></marker></defs>'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def write_diagrams(folder: Path) -> None:
    """Write the block diagram of the nodes and the state machine of a run."""
    nodes = [
        _box(20, 40, 200, 84, 'excitation', 'designs, checks, runs\nand stops a motion'),
        _box(330, 40, 200, 84, 'recorder', 'loses nothing, averages\nthe periods'),
        _box(640, 40, 200, 84, 'identification', 'parameters, deviations,\nverdict'),
        _box(175, 230, 360, 70, 'trajectory controller and arm', 'yours, Gazebo, or simulated_arm (MuJoCo)', '#f2f3f5'),
        _box(640, 218, 200, 94, 'result', 'YAML, calibrated URDF,\nC, MJCF, SDF,\nreport.html', '#e8f4f0'),
        _arrow([(220, 72), (328, 72)], 'reference', (274, 64)),
        _arrow([(530, 82), (638, 82)], 'averaged', (584, 74)),
        _arrow([(120, 124), (120, 265), (173, 265)], 'joint_trajectory', (68, 180)),
        _arrow([(430, 230), (430, 126)], 'joint_states', (480, 180)),
        _arrow([(740, 124), (740, 216)], 'result, robot_description', (655, 176)),
        _arrow([(205, 230), (205, 126)], '', None),
    ]
    _write(folder / 'nodes.svg', _svg(860, 330, 'The three nodes and what passes between them', nodes))
    states = [
        _box(20, 120, 110, 46, 'idle'),
        _box(190, 120, 110, 46, 'designing'),
        _box(360, 120, 110, 46, 'ready', '', '#e8f4f0'),
        _box(560, 20, 240, 250, '', '', '#f5f6f8'),
        f'<text x="680" y="44" text-anchor="middle" font-weight="bold">running</text>',  # noqa: F541
        _box(590, 60, 180, 40, 'to the start'),
        _box(590, 130, 180, 40, 'period 1, 2, …'),
        _box(590, 200, 180, 40, 'to rest'),
        _box(860, 60, 120, 46, 'finished', '', '#e8f4f0'),
        _box(860, 190, 120, 46, 'stopped', '', '#fbeae6'),
        _arrow([(130, 143), (188, 143)], '~/design', (160, 110)),
        _arrow([(300, 143), (358, 143)]),
        _arrow([(470, 143), (558, 143)], '~/start', (514, 110)),
        _arrow([(680, 100), (680, 128)]),
        _arrow([(680, 170), (680, 198)]),
        _arrow([(800, 83), (858, 83)]),
        _arrow([(800, 213), (858, 213)], '~/stop or a fault', (920, 182)),
        _arrow([(920, 60), (920, 8), (415, 8), (415, 118)], '', None),
        _arrow(
            [(920, 236), (920, 300), (415, 300), (415, 168)], 'the same motion again, or another design', (665, 293)
        ),
    ]
    _write(folder / 'run.svg', _svg(1000, 315, 'The states of a run', states))
    work = [
        _box(20, 130, 170, 84, 'identified arm', 'result.yaml', '#e8f4f0'),
        _box(330, 20, 200, 60, 'payload', 'ten seconds of any motion'),
        _box(330, 95, 200, 60, 'wrench', 'poses with a sensor'),
        _box(330, 170, 200, 60, 'contact', 'recordings without one'),
        _box(330, 245, 200, 60, 'card', 'what its owner says'),
        _box(670, 20, 230, 60, 'mass, centre, inertia', 'to the driver, when asked', '#f2f3f5'),
        _box(670, 95, 230, 60, 'bias, weight of tool', '~/wrench without them', '#f2f3f5'),
        _box(670, 170, 230, 60, 'levels of each joint', '~/contact_torque, contact.hpp', '#f2f3f5'),
        _box(670, 245, 230, 60, 'prior of a like arm', 'robotid identify --prior', '#f2f3f5'),
    ]
    work += [_arrow([(190, 172), (260, 172), (260, y), (328, y)]) for y in (50, 200, 275)]
    work += [_arrow([(530, y), (668, y)]) for y in (50, 125, 200, 275)]
    _write(folder / 'work.svg', _svg(920, 320, 'What an identified arm is used for', work))
    export = [
        _box(20, 130, 170, 84, 'identified arm', 'result.yaml', '#e8f4f0'),
        _box(330, 20, 200, 60, 'simulators', 'URDF, MJCF, SDF, USD'),
        _box(330, 95, 200, 60, 'programs', 'C, C++, Python, Pinocchio'),
        _box(330, 170, 200, 60, 'ros2_control package', 'torque law, solver, tests'),
        _box(330, 245, 200, 60, 'replay', 'a recording, or commands'),
        _box(670, 20, 230, 60, 'physical bodies', 'and the loss in percent', '#f2f3f5'),
        _box(670, 95, 230, 60, 'the whole torque', 'no memory, no state', '#f2f3f5'),
        _box(670, 170, 230, 60, 'effort interfaces', 'gravity, pd, impedance', '#f2f3f5'),
        _box(670, 245, 230, 60, 'ready or not, and why', 'servo, friction, inertia', '#f2f3f5'),
    ]
    export += [_arrow([(190, 172), (260, 172), (260, y), (328, y)]) for y in (50, 125, 200, 275)]
    export += [_arrow([(530, y), (668, y)]) for y in (50, 125, 200, 275)]
    _write(folder / 'export.svg', _svg(920, 320, 'Where an identified arm goes', export))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding='utf-8')
    print(f'written: {path}')


if __name__ == '__main__':
    if len(sys.argv) == 1:
        OUT.mkdir(exist_ok=True)
        write_diagrams(OUT)
    else:
        main(Path(sys.argv[1]))

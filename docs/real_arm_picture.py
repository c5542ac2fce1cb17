# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Draws the torque of the real UR10 before and after its identification, from what the latter wrote to a folder.

robotid identify RECORDING --robot RECORDING/ur10.urdf --train-fraction 0.5 --out FOLDER
python docs/real_arm_picture.py RECORDING/ur10.urdf FOLDER
"""

import sys
from pathlib import Path

import numpy as np

from robotid_ros.data import load_dataset
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.model import RobotModel
from robotid_ros.report.subject import predicted_run

HERE = Path(__file__).parent
TARGET = HERE / '_static' / 'real_arm.svg'
DESCRIBED = HERE.parent / 'test' / 'robots' / 'ur10.urdf'  # masses and inertias as its maker's description has them
SHOWN = {'lift': 1, 'elbow': 2, 'wrist 1': 3}
WIDTH, PLOT, LEFT, TOP, GAP = 920, 130, 72, 56, 26  # px
EVERY = 5  # of the samples is drawn
STYLES = {
    'measured': ('#9aa3ad', 4.0, ''),
    "the maker's description": ('#c2710c', 1.4, '4 3'),
    'identified': ('#0072b2', 1.5, ''),
}


def polyline(x: np.ndarray, y: np.ndarray, style: tuple[str, float, str]) -> str:
    """Return a line through points [px]."""
    colour, width, dash = style
    points = ' '.join(f'{a:.1f},{b:.1f}' for a, b in zip(x, y, strict=True))
    dashed = f' stroke-dasharray="{dash}"' if dash else ''
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>'


def text(x: float, y: float, words: str, more: str = '') -> str:
    """Return words of the picture."""
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{words}</text>'


def main(robot: str, folder: str) -> None:
    """Draw what was measured in the half that was held out, and what either model says of it."""
    model = RobotModel.from_urdf(robot)
    predictor = TorquePredictor(model, IdentificationResult.load(Path(folder) / 'result.yaml'))
    data = predictor.prepared(load_dataset(Path(folder) / 'validation_1.npz'))
    run = predicted_run('Validation', data, predictor)
    motion = run.dataset.q, run.dataset.dq, run.dataset.ddq
    before = inverse_dynamics(RobotModel.from_urdf(DESCRIBED), *motion)
    tau, time = run.dataset.tau, run.dataset.time
    lines = dict(zip(STYLES, (tau, before, run.predicted), strict=True))
    total = [100.0 * np.linalg.norm(tau - other) / np.linalg.norm(tau) for other in (before, run.predicted)]
    x = LEFT + (WIDTH - LEFT - 16) * (time - time[0]) / (time[-1] - time[0])
    parts = []
    for k, name in enumerate(STYLES):
        parts.append(polyline(np.array([LEFT, LEFT + 34]) + 240 * k, np.full(2, 19.0), STYLES[name]))
        parts.append(text(LEFT + 42 + 240 * k, 24, name))
    for row, (name, j) in enumerate(SHOWN.items()):
        top = TOP + row * (PLOT + GAP)
        low, high = min(values[:, j].min() for values in lines.values()), max(v[:, j].max() for v in lines.values())
        step = next(each for each in (5.0, 10.0, 20.0, 50.0, 100.0) if (high - low) / each < 5.0)
        frame = f'x="{LEFT}" y="{top}" width="{WIDTH - LEFT - 16}" height="{PLOT}"'
        parts.append(f'<rect {frame} fill="none" stroke="#d3d8de"/>')
        for tick in np.arange(np.ceil(low / step), high / step) * step:
            y = top + PLOT * (high - tick) / (high - low)
            parts.append(polyline(np.array([LEFT, WIDTH - 16.0]), np.full(2, y), ('#e4e8ec', 1.0, '')))
            parts.append(text(LEFT - 6, y + 4, f'{tick:g}', 'text-anchor="end" font-size="12"'))
        rms = [float(np.sqrt(np.mean((tau[:, j] - other[:, j]) ** 2))) for other in (before, run.predicted)]
        parts.append(text(LEFT, top - 6, f'{name} [N·m]: error {rms[0]:.1f} → {rms[1]:.2f} rms', 'font-size="13"'))
        for key, values in lines.items():
            parts.append(polyline(x[::EVERY], top + PLOT * (high - values[::EVERY, j]) / (high - low), STYLES[key]))
    bottom = TOP + len(SHOWN) * (PLOT + GAP)
    for tick in range(int(np.ceil(time[0])), int(time[-1]) + 1, 2):
        place = LEFT + (WIDTH - LEFT - 16) * (tick - time[0]) / (time[-1] - time[0])
        parts.append(text(place, bottom - 8, f'{tick} s', 'text-anchor="middle" font-size="12"'))
    title = 'Torque of a real UR10 in the half of the recording that was held out'
    TARGET.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" width="{WIDTH}" role="img" '
        f'aria-label="{title}" font-family="Helvetica, Arial, sans-serif" font-size="14" fill="#1c2430">'
        f'<rect width="{WIDTH}" height="{bottom}" fill="#ffffff"/>{"".join(parts)}</svg>\n',
        encoding='utf-8',
    )
    print(f'torque unexplained: {total[0]:.0f} % by the description, {total[1]:.1f} % as identified; written: {TARGET}')


if __name__ == '__main__':
    main(*sys.argv[1:3])

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Accuracy and speed of the kinematic calibration on simulated arms.

Accuracy: root mean square distance at held-out poses without noise, over several arms with about 2 mm of error,
measured with 0.1 mm of noise per coordinate; beside it the limit sigma sqrt(p / N).
"""

from collections.abc import Iterator

import numpy as np

from benchmark.row import Row
from benchmark.timing import seconds
from robotid_ros.calibration import CalibrationConfig, calibrate
from robotid_ros.calibration.pose_selection import select_poses
from robotid_ros.simulation.measured_arm import example_arm, example_table

NOISE = 1e-4  # [m] per coordinate
REACH = {30: 0.10, 100: 0.05}  # [mm]


def rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def accuracy(quick: bool) -> Iterator[Row]:
    """Calibrate arms with 30 and 100 poses, chosen by the package and at random."""
    seeds = 2 if quick else 12
    for count, reach in REACH.items():
        for frame in ('known', 'unknown'):
            chosen = select_poses(example_table(), count, frame=frame, target=np.array([0.06, -0.04, 0.11])).q
            errors: dict[str, list[float]] = {'before': [], 'random': [], 'selected': []}
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                arm = example_arm(rng, known_frame=frame == 'known')
                held_out = arm.measure(arm.configurations(300, rng), rng, noise=0.0)
                for name, q in (('random', arm.configurations(count, rng)), ('selected', chosen)):
                    points = arm.measure(q, rng, noise=NOISE)
                    result = calibrate(arm.nominal, points, CalibrationConfig(frame=frame, folds=0), held_out=held_out)
                    errors[name].append(result.held_out.after.rms)
                errors['before'].append(result.held_out.before.rms)
            limit = 1e3 * NOISE * np.sqrt(result.identifiable / count)
            figures = {name: 1e3 * rms(values) for name, values in errors.items() if values}
            known = frame == 'known'
            yield Row(
                what=f'held-out error, {count} poses, {frame} frame, 0.1 mm of noise',
                unit='mm',
                values=figures['selected'],
                anchor='the limit sigma sqrt(p/N)',
                theirs=limit,
                source='computed',
                high=reach if known else None,
                runs=f'root mean square of {seeds} arms at 300 poses each, poses selected by the package',
                note=f'{figures["before"]:.2f} mm before, {figures["random"]:.3f} mm with random poses, '
                f'limit sigma sqrt(p/N) {limit:.3f} mm with {result.identifiable} parameters',
            )


def speed(quick: bool) -> Iterator[Row]:
    """Time a calibration from measured points to the result."""
    runs = 2 if quick else 7
    for count, full_pose in ((1000, False), (1000, True), (100, False)):
        rng = np.random.default_rng(0)
        arm = example_arm(rng)
        points = arm.measure(arm.configurations(count, rng), rng, angle_noise=1e-4 if full_pose else None)
        result = calibrate(arm.nominal, points, CalibrationConfig(folds=0))
        fit = seconds(lambda: calibrate(arm.nominal, points, CalibrationConfig(folds=0)), runs)  # noqa: B023 (called at once)
        whole = seconds(lambda: calibrate(arm.nominal, points, CalibrationConfig(folds=5)), 1)  # noqa: B023
        yield Row(
            what=f'calibration to convergence, {count} {"poses" if full_pose else "positions"}, '
            f'{result.identifiable} parameters',
            unit='s',
            values=fit.processor if result.fit.converged else float('nan'),
            high=0.5 if count == 1000 else None,
            runs=f'median processor time of {runs} runs',
            note=f'{fit.wall:.2f} s on the clock; {whole.processor:.2f} s with choice of terms and cross-validation',
        )


CASES = (accuracy, speed)

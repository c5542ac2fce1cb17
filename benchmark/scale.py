# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Time and memory over samples, joints and recordings, with the order of growth.

python -m benchmark --all --only scale

Each figure is that of a process of its own, from the recording to the result. The motion is free and does not repeat;
positions and efforts have noise, the joints friction.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmark.fleet import measure_fleet
from benchmark.row import Row
from robotid_ros.data import Recording, process_recording
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.identification import identify
from robotid_ros.model import RobotModel

RATE = 500.0  # Hz
_BLOCK = 20_000  # samples computed at a time
CHILD = """
import json, resource, sys, warnings
warnings.simplefilter('ignore')
import benchmark
from benchmark.scale import identified
print(json.dumps(identified(int(sys.argv[1]), float(sys.argv[2]))))
"""


def recorded(arm: RobotModel, length: float, rng: np.random.Generator) -> Recording:
    """Return a recording of a free motion: five sines in each joint, of frequencies that have no common period."""
    count, n = round(length * RATE), arm.n
    omega, phase = 2.0 * np.pi * rng.uniform(0.03, 0.3, (n, 5)), rng.uniform(0.0, 2.0 * np.pi, (n, 5))
    size = rng.uniform(0.1, 0.4, (n, 5))
    time, position, effort = np.arange(count) / RATE, np.empty((count, n)), np.empty((count, n))
    for start in range(0, count, _BLOCK):
        rows = slice(start, start + _BLOCK)
        angle = time[rows, None, None] * omega + phase
        q, dq, ddq = (np.sum(size * omega**order * np.sin(angle + 0.5 * np.pi * order), axis=2) for order in range(3))
        position[rows] = q + 1e-5 * rng.standard_normal(q.shape)
        torque = inverse_dynamics(arm, q, dq, ddq) + 3.0 * np.sign(dq) + 2.0 * dq
        effort[rows] = torque + 0.3 * rng.standard_normal(q.shape)
    return Recording(joint_names=arm.joint_names, time=time, position=position, effort=effort)


def identified(joints: int, length: float) -> dict[str, float]:
    """Identify an arm by the defaults from a recording; return seconds of the processor and the most memory [MB]."""
    import resource

    from dynamics_helpers import random_inertial

    from benchmark.arms import limited, seven_axes
    from benchmark.timing import processor_seconds

    rng = np.random.default_rng(joints)
    if joints == 7:
        arm = seven_axes(rng)
    elif joints == 6:
        arm = limited('ur10e')
    else:
        arm = RobotModel.from_mdh(rng.uniform(-1.5, 1.5, (joints, 4)).tolist(), inertial=random_inertial(joints, rng))
    recording, processor = recorded(arm, length, rng), processor_seconds()
    dataset = process_recording(recording)
    del recording  # as the commands do
    identify(dataset, arm)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {'processor': processor_seconds() - processor, 'memory': memory / 1e3}


def samples(quick: bool) -> Iterator[Row]:
    """Identify recordings of growing length."""
    lengths = (10, 60) if quick else (10, 60, 600, 3600)
    found = [_child(7, length) for length in lengths]
    text = f'identify a recording, 7 joints, {", ".join(map(str, lengths))} s at {RATE:g} Hz'
    yield from _rows(text, [RATE * length for length in lengths], found, 1.1)
    for length, seconds, memory in ((60, 5.0, None), (3600, 60.0, 1500.0)):
        if length in lengths:
            each, what = found[lengths.index(length)], f'identify a recording, 7 joints, {length} s at {RATE:g} Hz'
            yield Row(what=f'{what}: time', unit='s', values=each['processor'], high=seconds, runs='one run')
            if memory is not None:
                yield Row(what=f'{what}: memory', unit='MB', values=each['memory'], high=memory, runs='one run')


def joints(quick: bool) -> Iterator[Row]:
    """Identify arms of growing length."""
    sizes = (6, 7) if quick else (6, 7, 12, 20)
    found = [_child(n, 30.0) for n in sizes]
    text = f'identify a recording, {", ".join(map(str, sizes))} joints, 30 s at {RATE:g} Hz'
    yield from _rows(text, sizes, found, 3.0)


def recordings(quick: bool) -> Iterator[Row]:
    """Identify fleets of growing size."""
    sizes = (1, 2) if quick else (1, 10, 100, 1000)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for count in sizes:
            each = min(count, 10)
            spent = measure_fleet(Path(folder), count // each, each, 2, ['--friction', 'coulomb_viscous'])
            found.append({'processor': spent.processor, 'memory': spent.peak})
    text = f'robotid fleet --jobs 2, {", ".join(map(str, sizes))} recordings of 60 s at 125 Hz'
    yield from _rows(text, sizes, found, 1.1)


def _child(joints: int, length: float) -> dict[str, float]:
    command = [sys.executable, '-c', CHILD, str(joints), str(length)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ['no message'])[-1])
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _rows(text: str, sizes: Sequence[float], found: Sequence[dict[str, float]], high: float) -> Iterator[Row]:
    for name, unit in (('processor', 's'), ('memory', 'MB')):
        what = 'processor time' if name == 'processor' else 'memory'
        yield Row(what=f'{text}: {what}', unit=unit, values=[each[name] for each in found], runs='one run each')
    order = np.polyfit(np.log(sizes), np.log([each['processor'] for each in found]), 1)[0]
    yield Row(what=f'{text}: order of growth of the time', values=order, high=high, runs='one run each')


CASES = LONG = (samples, joints, recordings)

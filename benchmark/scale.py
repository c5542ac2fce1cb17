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

Each figure is that of a process of its own. The arms follow an excitation exactly; efforts have noise and friction.
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

RATE = 100.0  # Hz
CHILD = """
import json, resource, sys, warnings
warnings.simplefilter('ignore')
import benchmark
from benchmark.scale import identified
print(json.dumps(identified(int(sys.argv[1]), float(sys.argv[2]))))
"""


def identified(joints: int, length: float) -> dict[str, float]:
    """Identify an arm by the defaults; return seconds of the processor and how far the memory rose [MB]."""
    import resource

    from dynamics_helpers import random_inertial
    from identification_helpers import dataset

    from benchmark.arms import fourier_motion, limited
    from benchmark.timing import processor_seconds
    from robotid_ros.dynamics import inverse_dynamics
    from robotid_ros.identification import identify
    from robotid_ros.model import RobotModel

    rng = np.random.default_rng(joints)
    if joints == 6:
        arm = limited('ur10e')
    else:
        arm = RobotModel.from_mdh(rng.uniform(-1.5, 1.5, (joints, 4)), inertial=random_inertial(joints, rng))
    fields = fourier_motion(joints, round(length * RATE), RATE, rng)
    torque = inverse_dynamics(arm, *fields[1:]) + 3.0 * np.sign(fields[2]) + 2.0 * fields[2]
    data = dataset(arm, fields, torque + 0.3 * rng.standard_normal(torque.shape), RATE)
    before, processor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, processor_seconds()
    identify(data, arm)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {'processor': processor_seconds() - processor, 'memory': memory / 1e3}


def samples(quick: bool) -> Iterator[Row]:
    """Identify recordings of growing length."""
    lengths = (10, 60) if quick else (10, 60, 600, 3600)
    found = [_child(6, length) for length in lengths]
    text = f'identify, 6 joints, {", ".join(map(str, lengths))} s at 100 Hz'
    yield from _rows(text, [RATE * length for length in lengths], found, 1.1)


def joints(quick: bool) -> Iterator[Row]:
    """Identify arms of growing length."""
    sizes = (6, 7) if quick else (6, 7, 12, 20)
    found = [_child(n, 30.0) for n in sizes]
    yield from _rows(f'identify, {", ".join(map(str, sizes))} joints, 30 s at 100 Hz', sizes, found, 3.0)


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
        what = 'processor time' if name == 'processor' else 'memory beside the data'
        yield Row(what=f'{text}: {what}', unit=unit, values=[each[name] for each in found], runs='one run each')
    order = np.polyfit(np.log(sizes), np.log([each['processor'] for each in found]), 1)[0]
    yield Row(what=f'{text}: order of growth of the time', values=order, high=high, runs='one run each')


CASES = LONG = (samples, joints, recordings)

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Time and memory of ``robotid fleet`` on simulated UR10e arms, some of which wear.

python -m benchmark.fleet FOLDER [--arms 20] [--each 10] [--jobs 2] [-- OPTIONS OF ROBOTID FLEET]

It takes many minutes for 200 recordings, so it is no area of ``python -m benchmark``. The arms follow an excitation
exactly; their bodies differ from the description by 10 %, and their friction scatters by 2 % from month to month. In
every fifth arm, friction rises by 3 % a month. Recordings that the folder already holds are taken as they are.
"""

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dynamics_helpers import ARMS

from benchmark.arms import limited
from benchmark.timing import processor_seconds
from robotid_ros.data import Recording, write_csv
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory, optimize_excitation
from robotid_ros.simulation import perturb

SECONDS, RATE, PERIOD = 60.0, 125.0, 20.0
BEGIN, MONTH = 1.75e9, 30 * 86400.0  # [s since 1970, s]
SCATTER, WEAR = 0.02, 0.03  # of friction: from recording to recording, and a month in arms that wear
ENCODER = 2.0 * np.pi / 2**17  # [rad]
NOISE = 0.003  # of the effort, as a fraction of the effort limits


def record(path: Path, arm: int, month: int, trajectory: FourierTrajectory) -> None:
    """Write what an arm's joint states show in a month."""
    model, rng = limited('ur10e'), np.random.default_rng((arm, month))
    truth = perturb(model, np.random.default_rng(arm), 0.1)
    share = rng.normal(1.0, SCATTER, (2, model.n)) * (1.0 + WEAR * month * (arm % 5 == 0))
    friction = replace(
        truth.friction, coulomb=truth.friction.coulomb * share[0], viscous=truth.friction.viscous * share[1]
    )
    time = np.arange(round(SECONDS * RATE)) / RATE
    q, dq, ddq = trajectory.evaluate(time)
    effort = replace(truth, friction=friction).torque(q, dq, ddq)
    effort += NOISE * model.limits.effort * rng.standard_normal(q.shape)
    position = np.rint(q / ENCODER) * ENCODER
    stamps = BEGIN + month * MONTH + time
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(path, Recording(joint_names=model.joint_names, time=stamps, position=position, effort=effort))


def make(folder: Path, arms: int, each: int) -> None:
    """Write the recordings that are not there yet."""
    trajectory = optimize_excitation(
        limited('ur10e'), ExcitationConfig(period=PERIOD, starts=1, iterations=60, seed=1, start_at_rest=True)
    ).trajectory
    for arm, month in itertools.product(range(arms), range(each)):
        path = folder / f'arm{arm:02d}' / f'month{month:02d}.csv'
        if not path.is_file():
            record(path, arm, month, trajectory)


def memory_of(root: int) -> float:
    """Return what a process and its descendants hold [MB], shared pages counted once."""
    parents = {}
    for status in Path('/proc').glob('[0-9]*/stat'):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(')')[2].split()[1])
        except OSError:  # it has ended
            continue
    tree, total = {root}, 0.0
    while new := {child for child, parent in parents.items() if parent in tree} - tree:
        tree |= new
    for process in tree:
        try:
            lines = Path(f'/proc/{process}/smaps_rollup').read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) / 1e3 for line in lines if line.startswith('Pss:'))
    return total


class Spent(NamedTuple):
    """Seconds on the clock and of the processor, and the most memory [MB]."""

    wall: float
    processor: float
    peak: float


def measure_fleet(folder: Path, arms: int, each: int, jobs: int, more: Sequence[str]) -> Spent:
    """Make the recordings that are not there, and run ``robotid fleet`` on them."""
    recordings = folder / f'recordings_{arms}x{each}'
    make(recordings, arms, each)
    out = folder / f'out_{arms}x{each}_{jobs}'
    shutil.rmtree(out, ignore_errors=True)  # of an earlier run, which would be resumed
    words = ['fleet', str(recordings), '--robot', str(ARMS['ur10e']), '--jobs', str(jobs), '--out', str(out)]
    processor, begun, peak = processor_seconds(), time.monotonic(), 0.0
    process = subprocess.Popen([sys.executable, '-m', 'robotid_ros', *words, *more])
    ended = threading.Event()
    threading.Thread(target=lambda: (process.wait(), ended.set()), daemon=True).start()
    while not ended.wait(1.0):
        peak = max(peak, memory_of(process.pid))
    spent = time.monotonic() - begun
    return Spent(spent, processor_seconds() - processor, peak)


def main() -> None:
    parser = argparse.ArgumentParser(prog='python -m benchmark.fleet', description=(__doc__ or '').split('\n')[0])
    parser.add_argument('folder', type=Path, help='where recordings and results go')
    parser.add_argument('--arms', type=int, default=20)
    parser.add_argument('--each', type=int, default=10, help='recordings of each arm')
    parser.add_argument('--jobs', type=int, default=2)
    usual = ['--friction', 'coulomb_viscous']
    parser.add_argument(
        'more', nargs='*', default=usual, help=f'of robotid fleet, after --; default: {" ".join(usual)}'
    )
    options = parser.parse_args()
    count = options.arms * options.each
    spent = measure_fleet(options.folder, options.arms, options.each, options.jobs, options.more)
    processor = spent.processor
    print(
        f'{count} recordings of {SECONDS:.0f} s at {RATE:.0f} Hz, --jobs {options.jobs}: {spent.wall:.0f} s, '
        f'{processor:.0f} s of processor time ({processor / count:.1f} s each), at most {spent.peak:.0f} MB; '
        f'load at the end {os.getloadavg()[0]:.1f}'
    )


if __name__ == '__main__':
    main()

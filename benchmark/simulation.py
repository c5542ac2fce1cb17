# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Time the simulated arm: one physics step, an offline run, and the node in real time under load.

python -m benchmark.simulation [--quick]

For the node it counts every joint state against its stamp (a step left out would show), and measures when it came,
what the node took of a core, and how far it fell behind.
"""

import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources

import numpy as np

from benchmark.area import Options, main
from benchmark.row import Anchor, Bar, Row
from benchmark.timing import seconds
from robotid_ros.model import RobotModel
from robotid_ros.simulation import Plant, Sensors, effort_scale, perturb, simulate_trajectory

AREA = 'simulation'


def offline(options: Options) -> Iterator[Row]:
    """Time steps of the plant and a run without ROS."""
    model = RobotModel.from_urdf((resources.files('robotid_ros') / 'robots' / 'ur10e.urdf').read_text(encoding='utf-8'))
    rng = np.random.default_rng(0)
    truth = perturb(model, rng)
    plant = Plant(truth, model, torque_noise=1e-3 * effort_scale(model), rng=rng)
    t = np.arange(0.0, 20.0, 0.02)
    w = np.linspace(0.5, 1.5, 6)
    q, dq, ddq = np.sin(t[:, None] * w), w * np.cos(t[:, None] * w), -(w**2) * np.sin(t[:, None] * w)
    steps = {}
    for count in (1, 100):
        block = (np.repeat(q[:1], count, axis=0), np.zeros((count, 6)), np.zeros((count, 6)))
        taken = [seconds(lambda: plant.run(*block), 1).processor for _ in range(options.runs(1000, 200) // count)]  # noqa: B023
        steps[count] = 1e6 * float(np.median(taken)) / count
    sensors = Sensors.typical(model, truth.drive_gain)
    timing = seconds(lambda: simulate_trajectory(plant, t, q, dq, ddq, sensors=sensors, rng=rng), options.runs(3))
    yield Row(
        area=AREA,
        what='simulated per real second without ROS, 6 joints at 1 kHz, recorded at 500 Hz',
        unit='s/s',
        values=(t[-1] / timing.processor,),
        better='higher',
        anchor=Anchor(name='real time', values=(1.0,), source='by definition'),
        runs=f'{t[-1]:.0f} s, median processor time of {timing.runs} runs',
        note=f'a step takes {steps[100]:.0f} us in blocks of 100, {steps[1]:.0f} us alone',
    )


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep some processes computing."""
    spinning = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def cpu_seconds(pid: int) -> float:
    with open(f'/proc/{pid}/stat', encoding='ascii') as file:
        fields = file.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def watch(rate: float, duration: float, load: int) -> Row:
    """Run the node beside busy processes and look at every joint state."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.qos import QoSProfile
    from sensor_msgs.msg import JointState

    stamps: list[int] = []
    arrivals: list[int] = []

    def receive(raw: bytes) -> None:
        arrivals.append(time.time_ns())
        sec, nanosec = struct.unpack_from('=iI', raw, 4)
        stamps.append(sec * 1_000_000_000 + nanosec)

    context = rclpy.Context()
    context.init()
    node = rclpy.create_node('bench', context=context)
    node.create_subscription(JointState, 'joint_states', receive, QoSProfile(depth=10000), raw=True)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    command = [sys.executable, '-m', 'robotid_ros.nodes.simulated_arm', '--ros-args', '-p', f'publish_rate:={rate}']
    arm = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while not stamps:
            executor.spin_once(timeout_sec=0.1)
        with busy(load):
            first, before, start = len(stamps), cpu_seconds(arm.pid), time.monotonic()
            while time.monotonic() < start + duration:
                executor.spin_once(timeout_sec=0.1)
            share = (cpu_seconds(arm.pid) - before) / (time.monotonic() - start)
        taken = np.array(stamps[first:])
        delay = 1e-6 * (np.array(arrivals[first:]) - taken)
        steps = np.diff(taken) * rate * 1e-9
        missing = int(np.sum(np.rint(steps) - 1))
        return Row(
            area=AREA,
            what=f'simulated arm in real time at {rate:.0f} Hz beside {load} busy processes: joint states left out',
            values=(missing,),
            bar=Bar(high=0),
            runs=f'one run of {duration:g} s, {len(taken)} joint states',
            note=f'stamps within {1e6 * np.abs(steps - 1).max() / rate:.3f} us of the grid; arrival after the stamp: '
            f'median {np.median(delay):.2f}, 99 % {np.percentile(delay, 99):.2f}, largest {delay.max():.2f} ms; '
            f'{100 * share:.1f} % of a core',
        )
    finally:
        arm.send_signal(signal.SIGINT)
        arm.wait(timeout=10)
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()


def node(options: Options) -> Iterator[Row]:
    """Watch the node in real time, alone and beside busy processes."""
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 101))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    for rate, load in ((1000.0, 0), (1000.0, 2)):
        yield watch(rate, options.runs(8, 3), load)


CASES = (offline, node)

if __name__ == '__main__':
    main(AREA, CASES, __doc__)

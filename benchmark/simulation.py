# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Time the simulated arm: one physics step, an offline run, and the node in real time under load.

For the node it counts every joint state against its stamp (a step left out would show), and measures when it came,
what the node took of a core, and how far it fell behind.
"""

import os
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np
import rclpy
from dynamics_helpers import arm
from rclpy.qos import QoSProfile
from ros_helpers import NodeProcess
from sensor_msgs.msg import JointState

from benchmark.row import Row
from benchmark.timing import processor_seconds_of, seconds
from robotid_ros.demo.processes import isolated_environment
from robotid_ros.simulation import Plant, Sensors, effort_scale, perturb, simulate_trajectory


def offline(quick: bool) -> Iterator[Row]:
    """Time steps of the plant and a run without ROS."""
    model = arm('ur10e')
    rng, runs = np.random.default_rng(0), 1 if quick else 3
    truth = perturb(model, rng)
    plant = Plant(truth, model, torque_noise=1e-3 * effort_scale(model), rng=rng)
    t = np.arange(0.0, 20.0, 0.02)
    w = np.linspace(0.5, 1.5, 6)
    q, dq, ddq = np.sin(t[:, None] * w), w * np.cos(t[:, None] * w), -(w**2) * np.sin(t[:, None] * w)
    steps = {}
    for count in (1, 100):
        block = (np.repeat(q[:1], count, axis=0), np.zeros((count, 6)), np.zeros((count, 6)))
        taken = [seconds(lambda: plant.run(*block), 1).processor for _ in range((200 if quick else 1000) // count)]  # noqa: B023
        steps[count] = 1e6 * float(np.median(taken)) / count
    sensors = Sensors.typical(model, truth.drive_gain)
    timing = seconds(lambda: simulate_trajectory(plant, t, q, dq, ddq, sensors=sensors, rng=rng), runs)
    yield Row(
        what='simulated per real second without ROS, 6 joints at 1 kHz, recorded at 500 Hz',
        unit='s/s',
        values=t[-1] / timing.processor,
        better='higher',
        runs=f'{t[-1]:.0f} s, median processor time of {runs} runs',
        note=f'a step takes {steps[100]:.0f} us in blocks of 100, {steps[1]:.0f} us alone',
    )


def watch(seconds: float, load: int) -> Row:
    """Run the node at 1 kHz beside busy processes and look at every joint state."""
    stamps: list[int] = []
    arrivals: list[int] = []

    def receive(raw: bytes) -> None:
        arrivals.append(time.time_ns())
        sec, nanosec = struct.unpack_from('=iI', raw, 4)
        stamps.append(sec * 1_000_000_000 + nanosec)

    listener = rclpy.create_node('bench')
    listener.create_subscription(JointState, 'joint_states', receive, QoSProfile(depth=10000), raw=True)
    environment = {**os.environ}
    command = ['-m', 'robotid_ros.nodes.simulated_arm', '--ros-args', '-p', 'publish_rate:=1000.0']
    with NodeProcess(command, environment) as process, ExitStack() as stack:
        while not stamps:
            rclpy.spin_once(listener, timeout_sec=0.1)
        for _ in range(load):
            stack.enter_context(NodeProcess(['-c', 'while True: pass'], environment))
        pid = process.process.pid
        first, before, start = len(stamps), processor_seconds_of(pid), time.monotonic()
        while time.monotonic() < start + seconds:
            rclpy.spin_once(listener, timeout_sec=0.1)
        share = (processor_seconds_of(pid) - before) / (time.monotonic() - start)
    listener.destroy_node()
    taken = np.array(stamps[first:])
    delay = 1e-6 * (np.array(arrivals[first:]) - taken)
    steps = 1e-6 * np.diff(taken)  # [ms], one each
    return Row(
        what=f'simulated arm in real time at 1000 Hz beside {load} busy processes: joint states left out',
        values=np.sum(np.rint(steps) - 1),
        high=0,
        runs=f'one run of {seconds:g} s, {len(taken)} joint states',
        note=f'stamps within {1e3 * np.abs(steps - 1).max():.3f} us of the grid; arrival after the stamp: '
        f'median {np.median(delay):.2f}, 99 % {np.percentile(delay, 99):.2f}, largest {delay.max():.2f} ms; '
        f'{100 * share:.1f} % of a core',
    )


def node(quick: bool) -> Iterator[Row]:
    """Watch the node in real time, alone and beside busy processes."""
    os.environ.update(isolated_environment())
    with rclpy.init():
        for load in (0, 2):
            yield watch(3 if quick else 8, load)


CASES = (offline, node)

"""Time the simulated arm: one physics step, an offline run, and the node in real time under load.

    python benchmark/bench_simulation.py [--seconds 10] [--load 2]

For the node it counts every joint state against its stamp (a step left out would show), and
measures when it came, what the node took of a core, and how far it fell behind.
"""

import argparse
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

from robotid_ros.model import RobotModel
from robotid_ros.simulation import Plant, Sensors, effort_scale, perturb, simulate_trajectory


def bench_offline() -> None:
    model = RobotModel.from_urdf((resources.files('robotid_ros') / 'robots' / 'ur10e.urdf').read_text(encoding='utf-8'))
    rng = np.random.default_rng(0)
    truth = perturb(model, rng)
    plant = Plant(truth, model, torque_noise=1e-3 * effort_scale(model), rng=rng)
    t = np.arange(0.0, 20.0, 0.02)
    w = np.linspace(0.5, 1.5, 6)
    q, dq, ddq = np.sin(t[:, None] * w), w * np.cos(t[:, None] * w), -(w**2) * np.sin(t[:, None] * w)
    for steps in (1, 2, 100):
        block = (np.repeat(q[:1], steps, axis=0), np.zeros((steps, 6)), np.zeros((steps, 6)))
        times = []
        for _ in range(2000 // steps):
            start = time.perf_counter()
            plant.run(*block)
            times.append(time.perf_counter() - start)
        print(f'plant, {steps:3d} steps per call: {1e6 * np.median(times) / steps:6.1f} us per step of 6 joints')
    start = time.perf_counter()
    simulate_trajectory(plant, t, q, dq, ddq, sensors=Sensors.typical(model, truth.drive_gain), rng=rng)
    taken = time.perf_counter() - start
    print(f'offline, {t[-1]:.0f} s at 1 kHz, recorded at 500 Hz: {taken:.2f} s ({t[-1] / taken:.0f} times real time)')


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


def bench_node(rate: float, seconds: float, load: int) -> None:
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
            while time.monotonic() < start + seconds:
                executor.spin_once(timeout_sec=0.1)
            share = (cpu_seconds(arm.pid) - before) / (time.monotonic() - start)
        taken = np.array(stamps[first:])
        delay = 1e-6 * (np.array(arrivals[first:]) - taken)
        steps = np.diff(taken) * rate * 1e-9
        missing = int(np.sum(np.rint(steps) - 1))
        print(
            f'node at {rate:5.0f} Hz, {load} busy processes: {len(taken)} joint states, {missing} left out, '
            f'stamps within {1e6 * np.abs(steps - 1).max() / rate:.3f} us of the grid; '
            f'arrival after the stamp: median {np.median(delay):.2f}, 99 % {np.percentile(delay, 99):.2f}, '
            f'largest {delay.max():.2f} ms; {100 * share:.1f} % of a core'
        )
    finally:
        arm.send_signal(signal.SIGINT)
        arm.wait(timeout=10)
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=float, default=10.0, help='how long each run of the node is watched')
    parser.add_argument('--load', type=int, default=2, help='busy processes in the loaded runs')
    options = parser.parse_args()
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 101))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    bench_offline()
    for rate in (500.0, 1000.0):
        for load in (0, options.load):
            bench_node(rate, options.seconds, load)


if __name__ == '__main__':
    main()

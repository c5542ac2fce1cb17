"""Messages received, CPU, memory, processing time and derivative error of the recorder.

    python benchmark/bench_recorder.py [--seconds 20] [--rates 1000 2000 4000]

JointStates of 6 joints (position, velocity, effort) come from another process, serialised
beforehand, so that it reaches 4 kHz. 'recorder' is the node itself, which also writes to
disk, decodes and averages; 'stalled' the same while the whole interpreter stands still for 0.3 s
every 2 s; 'single' a node that gets deserialised messages from a SingleThreadedExecutor. CPU is user and
system time of that process per second. Anchor, measured on two cores at 1 / 4 kHz:
MultiThreadedExecutor receives 5 / 1 %, SingleThreadedExecutor 100 % at 25 / 89 % CPU. To be read
with the load of the machine beside it: everything here shares two cores.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import numpy as np
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from robotid_ros.data import Dataset, ProcessingSettings
from robotid_ros.data.joint_state_cdr import decode_layout
from robotid_ros.data.raw_log import MessageChunk
from robotid_ros.data.session import RecordingSession
from robotid_ros.data.stream import PeriodicReference, process_raw_log
from robotid_ros.nodes.loop_client import LoopClient

JOINTS = tuple(f'joint_{k}' for k in range(1, 7))
PERIOD, RATE = 25.0, 1000

PUBLISHER = """
import json, struct, sys, time
import rclpy
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
rate, seconds, names = float(sys.argv[1]), float(sys.argv[2]), json.loads(sys.argv[3])
rclpy.init()
node = rclpy.create_node('publisher')
qos = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
publisher = node.create_publisher(JointState, 'joint_states', qos)
values = [0.1 * k for k in range(len(names))]
data = bytearray(serialize_message(JointState(name=names, position=values, velocity=values, effort=values)))
while publisher.get_subscription_count() < 1:
    time.sleep(0.01)
time.sleep(0.5)
count = int(rate * seconds)
begin, stamp, k, late = time.monotonic(), time.time_ns(), 0, 0.0
while k < count:
    now = time.monotonic() - begin
    late = max(late, now - k / rate)
    due = min(count, int(now * rate) + 1)
    while k < due:
        struct.pack_into('<iI', data, 4, *divmod(stamp + int(k * 1e9 / rate), 10**9))
        publisher.publish(bytes(data))
        k += 1
    ahead = begin + k / rate - time.monotonic()
    if ahead > 0.0:
        time.sleep(ahead)
print(k, late, time.monotonic() - begin, flush=True)
sys.stdin.readline()
"""

STALLED = """
import ctypes, sys
from robotid_ros.nodes.recorder import Recorder
from robotid_ros.nodes.runtime import run_node
def stalling():
    node = Recorder()
    node.create_timer(2.0, lambda: ctypes.PyDLL(None).usleep(300_000))
    return node
sys.exit(run_node(stalling))
"""

SINGLE = """
import sys, time
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
count = int(sys.argv[1])
rclpy.init()
node = rclpy.create_node('single')
received = []
qos = QoSProfile(depth=5000, reliability=ReliabilityPolicy.RELIABLE)
node.create_subscription(JointState, 'joint_states', lambda message: received.append(None), qos)
executor = SingleThreadedExecutor()
executor.add_node(node)
end = time.monotonic() + float(sys.argv[2])
while len(received) < count and time.monotonic() < end:
    executor.spin_once(timeout_sec=0.5)
print(len(received), flush=True)
sys.stdin.readline()
"""


def spawn(code: str, *arguments: object, module: bool = False) -> subprocess.Popen[str]:
    head = [sys.executable, *(['-m', code] if module else ['-c', code])]
    return subprocess.Popen(
        [*head, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def cpu_seconds(pid: int) -> float:
    fields = Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def receive(kind: str, rate: float, seconds: float, folder: Path) -> str:
    """Return one row of the table."""
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 101))
    parameters = ['--ros-args', '-p', 'effort:=torque', '-p', f'output_folder:={folder}']
    if kind == 'single':
        receiver = spawn(SINGLE, int(rate * seconds), seconds + 30.0)
    elif kind == 'stalled':
        receiver = spawn(STALLED, *parameters)
    else:
        receiver = spawn('robotid_ros.nodes.recorder', *parameters, module=True)
    publisher = None
    try:
        if kind == 'single':
            publisher = spawn(PUBLISHER, rate, seconds, json.dumps(JOINTS))
            published, late, took = line(publisher).split()
            received, cpu, idle = int(line(receiver)), cpu_seconds(receiver.pid), 0.0
        else:
            client = LoopClient(lambda: None, int(os.environ['ROS_DOMAIN_ID']), ('recorder',))
            client.wait(lambda: 'recorder' in client.status, 'a status', 60.0)
            idle_begin, begin = cpu_seconds(receiver.pid), time.monotonic()
            client.wait(lambda: time.monotonic() - begin > 5.0, 'some idle time', 10.0)
            idle = (cpu_seconds(receiver.pid) - idle_begin) / 5.0
            publisher = spawn(PUBLISHER, rate, seconds, json.dumps(JOINTS))
            before = cpu_seconds(receiver.pid)
            client.call('/recorder/start', 60.0)
            published, late, took = line(publisher).split()
            cpu = cpu_seconds(receiver.pid) - before
            text = client.call('/recorder/stop', 60.0)
            received = int(text.split(' messages')[0].split()[-1])
            client.close()
    finally:
        for process in (publisher, receiver):
            if process is not None:
                process.kill()
                process.wait()
    return (
        f'{kind:9} {rate:6.0f} {published:>9} {received:9d} {100.0 * received / int(published):8.3f} % '
        f'{100.0 * cpu / float(took):6.1f} % {100.0 * idle:6.2f} % {1000.0 * float(late):8.0f} ms '
        f'{os.getloadavg()[0]:6.1f}'
    )


def serialised(elapsed: np.ndarray, start: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return messages, one per row, and their stamps [ns]."""
    zeros = [0.0] * len(JOINTS)
    template = bytes(serialize_message(JointState(name=list(JOINTS), position=zeros, velocity=zeros, effort=zeros)))
    layout = decode_layout(template)
    assert layout is not None
    rows = np.tile(np.frombuffer(template, dtype=np.uint8), (len(elapsed), 1))
    stamps = start + np.rint(elapsed * 1e9).astype(np.int64)
    rows[:, 4:8] = (stamps // 10**9).astype('<i4').view(np.uint8).reshape(-1, 4)
    rows[:, 8:12] = (stamps % 10**9).astype('<u4').view(np.uint8).reshape(-1, 4)
    q, dq, _ = motion(elapsed)
    effort = 20.0 * np.sin(2.0 * np.pi * 3.0 / PERIOD * elapsed)[:, None] + 5.0 * np.sign(dq)
    q = q + 1e-4 * rng.standard_normal(q.shape)
    effort = effort + 0.3 * rng.standard_normal(q.shape)
    for place, values in zip(layout.offsets, (q, dq, effort), strict=True):
        rows[:, place : place + 48] = np.ascontiguousarray(values, dtype='<f8').view(np.uint8).reshape(-1, 48)
    return rows, stamps


def motion(elapsed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return position, velocity and acceleration of five harmonics, (N, 6) each."""
    q, dq, ddq = (np.zeros((len(elapsed), 6)) for _ in range(3))
    for k in range(1, 6):
        w = 2.0 * np.pi * k / PERIOD
        angle = w * elapsed[:, None] + k * np.arange(6)
        q += np.sin(angle) / k
        dq += w * np.cos(angle) / k
        ddq -= w**2 * np.sin(angle) / k
    return q, dq, ddq


def resident() -> float:
    return int(Path('/proc/self/statm').read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6


def long_run(folder: Path, periods: int = 50) -> None:
    """The run of the method this follows: 50 periods of 25 s at 1 kHz, 1.25 million samples."""
    rng, start = np.random.default_rng(0), 1_700_000_000_000_000_000
    count = int(PERIOD * RATE)
    session = RecordingSession(folder, JOINTS, ProcessingSettings(), {'topic': 'joint_states'})
    session.follow(PeriodicReference(joints=JOINTS, period=PERIOD, start=start))
    spent, memory = 0.0, []
    for period in range(periods):
        rows, stamps = serialised(np.arange(period * count, (period + 1) * count) / RATE, start, rng)
        begin = time.process_time()
        for k in range(0, count, 250):
            part = slice(k, k + 250)
            lengths = np.full(250, rows.shape[1])
            numbers = np.arange(k, k + 250) + period * count
            chunk = MessageChunk(
                payload=rows[part].reshape(-1),
                lengths=lengths,
                arrival=stamps[part],
                sequence=numbers,
                publisher=np.zeros_like(numbers),
            )
            session.take(chunk)
        spent += time.process_time() - begin
        del rows
        memory.append(resident())
    session.finish()
    print(f'\nwriting, decoding, averaging: {100.0 * spent / (periods * PERIOD):.2f} % of a core at 1 kHz')
    print(
        f'memory after {count} samples {memory[0]:.0f} MB, after {periods * count} {memory[-1]:.0f} MB: '
        f'{memory[-1] - memory[0]:+.0f} MB (reach: at most +50)'
    )
    wall, cpu = time.monotonic(), time.process_time()
    dataset = process_raw_log(folder, ProcessingSettings())
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    print(
        f'from disk to averaged dataset: {wall:.1f} s, of which CPU {cpu:.1f} s (reach: at most 5 s); '
        f'load {os.getloadavg()[0]:.1f}'
    )
    derivatives(dataset, rng)


def derivatives(dataset: Dataset, rng: np.random.Generator) -> None:
    """Compare accelerations with what central differences make of the raw signal."""
    exact = motion(dataset.time)
    raw = exact[0] + 1e-4 * rng.standard_normal(exact[0].shape)
    central = (raw[2:] - 2.0 * raw[1:-1] + raw[:-2]) * RATE**2
    found, anchor = np.std(dataset.ddq - exact[2]), np.std(central - exact[2][1:-1])
    print(
        f'acceleration error: {found:.2e} rad/s^2, central differences of the raw signal {anchor:.2e}: '
        f'1/{anchor / found:.3g} of it (reach: 1/100)'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--seconds', type=float, default=20.0, help='length of each reception (the anchor: 60)')
    parser.add_argument('--rates', type=float, nargs='+', default=[1000.0, 2000.0, 4000.0])
    options = parser.parse_args()
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    print(f'{options.seconds:g} s each; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores')
    print('receiver    rate published  received             CPU   idle   publisher late by   load')
    with tempfile.TemporaryDirectory() as folder:
        for rate in options.rates:
            for kind in ('recorder', 'stalled', *(('single',) if rate == options.rates[0] else ())):
                print(receive(kind, rate, options.seconds, Path(folder)), flush=True)
        long_run(Path(folder) / 'long')


if __name__ == '__main__':
    main()

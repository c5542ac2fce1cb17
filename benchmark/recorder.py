# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Messages received, processor time, memory, processing time and derivative error of the recorder.

python -m benchmark.recorder [--quick]

JointStates of 6 joints (position, velocity, effort) come from another process, serialised beforehand, so that it
reaches 4 kHz. 'recorder' is the node itself, which also writes to disk, decodes and averages; 'stalled' the same while
the whole interpreter stands still for 0.3 s every 2 s; 'single' a node that gets deserialised messages from a
SingleThreadedExecutor. Processor time is user and system time of that process per second of messages. To be read with
the load of the machine beside it: publisher, receiver and everything else share its cores.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rclpy.serialization import serialize_message
from scipy.signal import savgol_filter
from sensor_msgs.msg import JointState

from benchmark.area import Options, main
from benchmark.row import Anchor, Bar, Row
from robotid_ros.data import ProcessingSettings
from robotid_ros.data.joint_state_cdr import decode_layout
from robotid_ros.data.messages import MessageChunk
from robotid_ros.data.session import RecordingSession
from robotid_ros.data.stream import average_bag
from robotid_ros.nodes.conversions import trajectory_message
from robotid_ros.nodes.loop_client import LoopClient

AREA = 'recorder'
JOINTS = tuple(f'joint_{k}' for k in range(1, 7))
PERIOD, RATE = 25.0, 1000
PATIENCE = 300.0  # [s] for a node to start or answer: a machine that does much else needs them

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
print('ready', flush=True)
sys.stdin.readline()
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


def ready_publisher(rate: float, seconds: float) -> subprocess.Popen[str]:
    """Start a publisher that publishes once it is told to and knows a subscription."""
    publisher = spawn(PUBLISHER, rate, seconds, json.dumps(JOINTS))
    if line(publisher).strip() != 'ready':
        raise RuntimeError('the publisher ended before it was ready')
    return publisher


def go(publisher: subprocess.Popen[str]) -> None:
    assert publisher.stdin is not None
    publisher.stdin.write('\n')
    publisher.stdin.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """What became of the messages of one run."""

    published: int
    received: int
    share: float  # of a core, while messages came [%]
    idle: float  # of a core, before [%]
    late: float  # largest delay of the publisher [s]
    load: float

    @property
    def percent(self) -> float:
        return 100.0 * self.received / self.published


def receive(kind: str, rate: float, seconds: float, folder: Path, resting: float = 0.0) -> Reception:
    """Publish for some seconds and count what arrives."""
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 101))
    parameters = ['--ros-args', '-p', 'effort:=torque', '-p', f'output_folder:={folder}', '-p', 'start_timeout:=60.0']
    if kind == 'single':
        receiver = spawn(SINGLE, int(rate * seconds), seconds + PATIENCE)
    elif kind == 'stalled':
        receiver = spawn(STALLED, *parameters)
    else:
        receiver = spawn('robotid_ros.nodes.recorder', *parameters, module=True)
    publisher, idle = None, 0.0
    try:
        if kind == 'single':
            publisher = ready_publisher(rate, seconds)
            go(publisher)
            published, late, took = line(publisher).split()
            received, cpu = int(line(receiver)), cpu_seconds(receiver.pid)
        else:
            client = LoopClient(lambda: None, int(os.environ['ROS_DOMAIN_ID']), ('recorder',))
            client.wait(lambda: 'recorder' in client.status, 'a status', PATIENCE)
            if resting:
                before, begin = cpu_seconds(receiver.pid), time.monotonic()
                client.wait(lambda: time.monotonic() - begin > resting, 'some idle time', 2.0 * resting)
                idle = (cpu_seconds(receiver.pid) - before) / resting
            publisher = ready_publisher(rate, seconds)
            before = cpu_seconds(receiver.pid)
            go(publisher)  # it waits for the subscription, which the recorder makes when it starts
            client.call('/recorder/start', PATIENCE)
            published, late, took = line(publisher).split()
            cpu = cpu_seconds(receiver.pid) - before
            text = client.call('/recorder/stop', PATIENCE)
            received = int(text.split(' messages')[0].split()[-1])
            client.close()
    finally:
        for process in (publisher, receiver):
            if process is not None:
                process.kill()
                process.wait()
    result = Reception(
        published=int(published),
        received=received,
        share=100.0 * cpu / float(took),
        idle=100.0 * idle,
        late=float(late),
        load=os.getloadavg()[0],
    )
    print(
        f'{kind:9} {rate:6.0f} Hz: {result.published:7d} published, {result.received:7d} received '
        f'({result.percent:.3f} %), {result.share:5.1f} % of a core, idle {result.idle:.2f} %, '
        f'publisher late by {1000.0 * result.late:.0f} ms, load {result.load:.1f}',
        flush=True,
    )
    return result


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


def reception(options: Options) -> Iterator[Row]:
    """Receive at 1, 2 and 4 kHz, undisturbed and while the interpreter stands still now and then."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    seconds = options.runs(12, 4)
    with tempfile.TemporaryDirectory() as folder:
        single = receive('single', 1000.0, seconds, Path(folder))
        for rate in (1000.0, 2000.0, 4000.0):
            for kind, text in (('recorder', ''), ('stalled', ', standing still 0.3 s every 2 s')):
                first = kind == 'recorder' and rate == 1000.0
                got = receive(kind, rate, seconds, Path(folder), resting=3.0 if first else 0.0)
                yield Row(
                    area=AREA,
                    what=f'received of published at {rate / 1000.0:g} kHz{text}',
                    unit='%',
                    values=(got.percent,),
                    better='higher',
                    bar=Bar(low=100.0, high=100.0),
                    runs=f'one run of {seconds} s, {got.published} messages',
                    note=f'{got.share:.1f} % of a core; publisher late by up to {1000.0 * got.late:.0f} ms',
                )
                if first:
                    yield Row(
                        area=AREA,
                        what='processor time of the recorder at 1 kHz: receiving, writing, decoding, averaging',
                        unit='% of a core',
                        values=(got.share,),
                        anchor=Anchor(
                            name='rclpy SingleThreadedExecutor, deserialised messages, which are then dropped',
                            values=(single.share,),
                        ),
                        bar=Bar(low=2.0, of='ratio'),
                        runs=f'one run of {seconds} s each',
                        note=f'idle {got.idle:.2f} %; the anchor received {single.percent:.2f} %',
                    )


def long_run(options: Options) -> Iterator[Row]:
    """The run of the method this follows: 50 periods of 25 s at 1 kHz, 1.25 million samples."""
    periods = options.runs(50, 4)
    with tempfile.TemporaryDirectory() as folder:
        yield from _long_run(Path(folder) / 'long', periods)


def _long_run(folder: Path, periods: int) -> Iterator[Row]:
    rng, start = np.random.default_rng(0), 1_700_000_000_000_000_000
    count = int(PERIOD * RATE)
    session = RecordingSession(folder, JOINTS, ProcessingSettings(), {})
    times = np.linspace(0.0, PERIOD, 501)
    reference = trajectory_message(JOINTS, 0.0, times, *motion(times))
    reference.header.stamp.sec, reference.header.stamp.nanosec = divmod(start, 10**9)
    session.follow(serialize_message(reference), start)
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
    total = f'{periods * count} samples'
    yield Row(
        area=AREA,
        what=f'memory after {total} against after {count}',
        unit='MB',
        values=(max(0.0, memory[-1] - memory[0]),),
        anchor=Anchor(
            name='keeping every sample in memory', values=(periods * count * 19 * 8 / 1e6,), source='counted'
        ),
        bar=Bar(high=50.0),
        runs='one run',
        note=f'{memory[0]:.0f} MB of the process after {count}; writing, decoding, averaging take '
        f'{100.0 * spent / (periods * PERIOD):.2f} % of a core at 1 kHz',
    )
    wall, cpu = time.monotonic(), time.process_time()
    dataset = average_bag(folder, ProcessingSettings())
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    yield Row(
        area=AREA,
        what=f'from {total} on disk to the averaged dataset',
        unit='s',
        values=(wall,),
        bar=Bar(high=5.0),
        runs='one run, wall time',
        note=f'{cpu:.1f} s of processor time',
    )
    exact = motion(dataset.time)
    raw = exact[0] + 1e-4 * rng.standard_normal(exact[0].shape)
    smooth = savgol_filter(raw, 101, 4, deriv=2, delta=1.0 / RATE, axis=0, mode='wrap')
    yield Row(
        area=AREA,
        what=f'acceleration error, 1e-4 rad of noise, {periods} periods',
        unit='rad/s^2',
        values=(float(np.std(dataset.ddq - exact[2])),),
        anchor=Anchor(name='Savitzky-Golay over 101 samples of one period', values=(float(np.std(smooth - exact[2])),)),
        runs='standard deviation over a period, six joints',
    )


CASES = (reception, long_run)

if __name__ == '__main__':
    main(AREA, CASES, __doc__)

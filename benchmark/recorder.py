# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Messages received, processor time, memory, processing time and derivative error of the recorder.

JointStates of 6 joints (position, velocity, effort) come from another process, serialised beforehand, so that it
reaches 4 kHz. 'recorder' is the node itself, which also writes to disk, decodes and averages; 'stalled' the same while
the whole interpreter stands still for 0.3 s every 2 s; 'single' a node that gets deserialised messages from a
SingleThreadedExecutor; 'raw' one that writes them to MCAP as they come, and does no more. Processor time
is user and system time of that process per second of messages. To be read with the load of the machine beside it:
publisher, receiver and everything else share its cores.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import recorder_helpers
from mcap.writer import CompressionType, Writer
from recorder_helpers import harmonics, reference_message, stream, write_plan
from ros_helpers import NodeProcess, ros_environment

from benchmark.row import Row
from benchmark.timing import processor_seconds_of
from robotid_ros.data import ProcessingSettings
from robotid_ros.data.messages import MessageChunk
from robotid_ros.data.session import RecordingSession
from robotid_ros.data.stream import average_bag
from robotid_ros.nodes.loop_client import LoopClient

JOINTS = tuple(f'joint_{k}' for k in range(1, 7))
PERIOD, RATE = 25.0, 1000
PATIENCE = 300.0  # [s] for a node to start or answer: a machine that does much else needs them
START = 1_700_000_000_000_000_000  # [ns]

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
print('listening', flush=True)
end = time.monotonic() + float(sys.argv[2])
while len(received) < count and time.monotonic() < end:
    executor.spin_once(timeout_sec=0.5)
print('received', len(received), flush=True)
sys.stdin.readline()
"""


RAW = """
import sys, time
import rclpy
from mcap.writer import CompressionType, Writer
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
count = int(sys.argv[1])
rclpy.init()
node = rclpy.create_node('raw')
file = open(sys.argv[3], 'wb')
writer = Writer(file, compression=CompressionType.NONE)
writer.start()
channel = writer.register_channel('joint_states', 'cdr', writer.register_schema('JointState', 'ros2msg', b''))
received = 0
def receive(message):
    global received
    stamp = time.time_ns()
    writer.add_message(channel, stamp, message, stamp)
    received += 1
qos = QoSProfile(depth=5000, reliability=ReliabilityPolicy.RELIABLE)
node.create_subscription(JointState, 'joint_states', receive, qos, raw=True)
executor = SingleThreadedExecutor()
executor.add_node(node)
print('listening', flush=True)
end = time.monotonic() + float(sys.argv[2])
while received < count and time.monotonic() < end:
    executor.spin_once(timeout_sec=0.5)
writer.finish()
print('received', received, flush=True)
sys.stdin.readline()
"""


class Reception(NamedTuple):
    """What became of the messages of one run."""

    percent: float  # received of those published
    share: float  # of a core, while messages came [%]
    idle: float  # of a core, before [%]
    late: float  # largest delay of the publisher [s]


def receive(kind: str, rate: float, seconds: float, folder: Path, resting: float = 0.0) -> Reception:
    """Publish for some seconds and count what arrives."""
    environment = ros_environment()
    messages, _ = stream(seconds, 1, rate, np.random.default_rng(0), start=time.time_ns(), joints=JOINTS)
    count, idle = len(messages), 0.0
    write_plan(folder / 'plan.npz', [{'messages': messages, 'rate': rate, 'settle': 0.5}])
    parameters = ['--ros-args', '-p', 'effort:=torque', '-p', f'output_folder:={folder}', '-p', 'start_timeout:=60.0']
    command = {
        'single': ['-c', SINGLE, str(count), str(seconds + PATIENCE)],
        'raw': ['-c', RAW, str(count), str(seconds + PATIENCE), str(folder / 'raw.mcap')],
        'stalled': ['-c', STALLED, *parameters],
        'recorder': ['-m', 'robotid_ros.nodes.recorder', *parameters],
    }
    publishing = [recorder_helpers.__file__, str(folder / 'plan.npz')]
    with NodeProcess(command[kind], environment) as receiver, NodeProcess(publishing, environment) as publisher:
        publisher.expect('ready')
        pid = receiver.process.pid
        client = None
        if kind in ('single', 'raw'):
            receiver.expect('listening')
        else:
            client = LoopClient(lambda: None, int(environment['ROS_DOMAIN_ID']), ('recorder',))
            client.wait(lambda: 'recorder' in client.status, 'a status', PATIENCE)
            if resting:
                before = processor_seconds_of(pid)
                time.sleep(resting)
                idle = (processor_seconds_of(pid) - before) / resting
        before = processor_seconds_of(pid)
        publisher.tell('')  # it waits for the subscription, which the recorder makes when it starts
        if client is not None:
            client.call('/recorder/start', PATIENCE)
        late = float(publisher.expect('sent').split()[2])
        if client is None:
            received = int(receiver.expect('received').split()[1])
        share = (processor_seconds_of(pid) - before) / seconds
        if client is not None:
            received = int(client.call('/recorder/stop', PATIENCE).split(' messages')[0].split()[-1])
            client.close()
    return Reception(100.0 * received / count, 100.0 * share, 100.0 * idle, late)


def reception(quick: bool) -> Iterator[Row]:
    """Receive at 1, 2 and 4 kHz, undisturbed and while the interpreter stands still now and then."""
    seconds = 4 if quick else 12
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        single = receive('single', 1000.0, seconds, folder)
        for rate in (1000.0, 2000.0, 4000.0):
            raw = receive('raw', rate, seconds, folder)
            for kind, text in (('recorder', ''), ('stalled', ', standing still 0.3 s every 2 s')):
                first = kind == 'recorder' and rate == 1000.0
                got = receive(kind, rate, seconds, folder, resting=3.0 if first else 0.0)
                yield Row(
                    what=f'received of published at {rate / 1000.0:g} kHz{text}',
                    unit='%',
                    values=got.percent,
                    better='higher',
                    low=100.0,
                    high=100.0,
                    runs=f'one run of {seconds} s, {rate * seconds:.0f} messages',
                    note=f'{got.share:.1f} % of a core; publisher late by up to {1000.0 * got.late:.0f} ms; '
                    f'load {os.getloadavg()[0]:.1f}',
                )
                if kind == 'recorder':
                    yield Row(
                        what=f'processor time of the recorder at {rate / 1000.0:g} kHz, beside a writer alone',
                        unit='% of a core',
                        values=got.share,
                        anchor="rclpy SingleThreadedExecutor, raw messages, MCAP's Python writer without compression",
                        theirs=raw.share,
                        runs=f'one run of {seconds} s each',
                        note=f'the anchor received {raw.percent:.2f} %',
                    )
                if first:
                    yield Row(
                        what='processor time of the recorder at 1 kHz: receiving, writing, decoding, averaging',
                        unit='% of a core',
                        values=got.share,
                        anchor='rclpy SingleThreadedExecutor, deserialised messages, which are then dropped',
                        theirs=single.share,
                        times=2.0,
                        runs=f'one run of {seconds} s each',
                        note=f'idle {got.idle:.2f} %; the anchor received {single.percent:.2f} %',
                    )


def long_run(quick: bool) -> Iterator[Row]:
    """The run of the method this follows: 50 periods of 25 s at 1 kHz, 1.25 million samples."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _long_run(Path(folder) / 'long', 4 if quick else 50)


def _long_run(folder: Path, periods: int) -> Iterator[Row]:
    rng, count = np.random.default_rng(0), int(PERIOD * RATE)
    session = RecordingSession(folder, JOINTS, ProcessingSettings(), {})
    session.follow(reference_message(JOINTS, PERIOD, START), START)
    spent, memory = 0.0, []
    written = folder.with_suffix('.mcap').open('wb')
    writer = Writer(written, compression=CompressionType.NONE)
    writer.start()
    channel = writer.register_channel('joint_states', 'cdr', writer.register_schema('JointState', 'ros2msg', b''))
    for period in range(periods):
        start = START + round(period * PERIOD * 1e9)
        messages, stamps = stream(PERIOD, 1, RATE, rng, noise=(1e-4, 0.3), start=start, joints=JOINTS)
        begin = time.process_time()
        for k in range(0, count, 250):
            chunk = MessageChunk(
                payload=np.frombuffer(b''.join(messages[k : k + 250]), dtype=np.uint8),
                lengths=np.full(250, len(messages[0])),
                arrival=np.array(stamps[k : k + 250]),
                sequence=np.arange(k, k + 250) + period * count,
                publisher=np.zeros(250, dtype=np.int64),
            )
            session.take(chunk)
        spent += time.process_time() - begin
        pages = int(Path('/proc/self/statm').read_text().split()[1])
        memory.append(pages * os.sysconf('SC_PAGE_SIZE') / 1e6)
    session.finish()
    begin = time.process_time()
    for message, stamp in (each for _ in range(periods) for each in zip(messages, stamps, strict=True)):
        writer.add_message(channel, stamp, message, stamp)
    writing = time.process_time() - begin
    writer.finish()
    written.close()
    total = f'{periods * count} samples'
    yield Row(
        what=f'memory after {total} against after {count}',
        unit='MB',
        values=max(0.0, memory[-1] - memory[0]),
        high=50.0,
        runs='one run',
        note=f'{memory[0]:.0f} MB of the process after {count}',
    )
    yield Row(
        what=f'writing, decoding and averaging {total}, once they are received',
        unit='s',
        values=spent,
        anchor="MCAP's Python writer, without compression: writing alone",
        theirs=writing,
        runs='one run, processor time',
        note=f'{100.0 * spent / (periods * PERIOD):.2f} % of a core at 1 kHz',
    )
    wall, cpu = time.monotonic(), time.process_time()
    dataset = average_bag(folder, ProcessingSettings())
    assert dataset is not None
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    yield Row(
        what=f'from {total} on disk to the averaged dataset',
        unit='s',
        values=wall,
        high=5.0,
        runs='one run, wall time',
        note=f'{cpu:.1f} s of processor time',
    )
    _, _, ddq, _ = harmonics(dataset.time, PERIOD, len(JOINTS))
    yield Row(
        what=f'acceleration error, 1e-4 rad of noise, {periods} periods',
        unit='rad/s^2',
        values=np.std(dataset.ddq - ddq),
        runs='standard deviation over a period, six joints',
    )


CASES = (reception, long_run)

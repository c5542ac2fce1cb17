# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Start a node, spin it, and end it cleanly on SIGINT and SIGTERM.

The executor spins in a thread of its own while the main thread waits for a signal. So the node can still publish while
it is being shut down, above all its last stop trajectory; rclpy's own handlers would destroy the context first.
"""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

import rclpy
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from rclpy.task import Future
from rclpy.time import Time
from rclpy.timer import Timer
from rosgraph_msgs.msg import Clock as ClockMessage
from std_srvs.srv import Trigger

from robotid_ros.errors import RobotIdError
from robotid_ros.nodes.messages import newest

_TOPIC = '/clock'
Result = TypeVar('Result')
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_POLL = 0.02  # between looks at what is waited for [s]
_QUESTIONS = 2  # how often a service is asked that may not know its client yet


def steady_timer(node: Node, period: float, callback: Callable[[], object]) -> Timer:
    """Return a timer with a period in real seconds: it goes on while simulated time stands still."""
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


class SimulatedTime:
    """Takes a node's time from /clock between :meth:`follow` and :meth:`leave`.

    A node with ``use_sim_time`` subscribes to /clock for good, and a simulation ticks a thousand times a second: that
    is a fifth of a processor core for a node that does nothing. Whoever constructs this takes that subscription away.
    Outside of :meth:`follow` and :meth:`leave` the node's clock stands at the last time that came.

    The event ``came`` is set while the node's time is that of now. A node without ``use_sim_time`` keeps its clock: for
    it the methods do nothing, and the event is always set. In ``sent`` is when the last message was sent, by the clock
    of its sender's computer [s]; None where the middleware or rclpy (before Iron) does not tell.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._subscription: Subscription | None = None
        self.came = threading.Event()
        self.sent: float | None = None
        self.leave()
        for subscription in list(node.subscriptions):
            if subscription.topic_name == _TOPIC and subscription.msg_type is ClockMessage:
                node.destroy_subscription(subscription)

    @property
    def simulated(self) -> bool:
        """Whether the node's time is that of /clock."""
        return bool(self._node.get_clock().ros_time_is_active)

    def follow(self) -> None:
        """Follow /clock; the time is known once :attr:`came` is set."""
        if not self.simulated:
            self.came.set()
        elif self._subscription is None:
            self.came.clear()
            self._subscription = self._node.create_subscription(
                ClockMessage,
                _TOPIC,
                self._take_sent if hasattr(Subscription, 'CallbackType') else self._take,
                newest(1),
            )

    def leave(self) -> None:
        """Follow /clock no longer."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription, self.sent = None, None
        if self.simulated:
            self.came.clear()
        else:
            self.came.set()

    def _take_sent(self, message: ClockMessage, about: Mapping[str, int]) -> None:
        self.sent = 1e-9 * about['source_timestamp'] or None
        self._take(message)

    def _take(self, message: ClockMessage) -> None:
        self._node.get_clock().set_ros_time_override(Time.from_msg(message.clock))
        self.came.set()


def run_node(factory: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Run the node that ``factory`` makes until it is told to stop.

    A ``close()`` method of the node, where it has one, is called before the executor stops; it may publish and wait.
    The ROS arguments are by default those of the process. Returned is the exit code: 0 after a signal, 2 if ROS or the
    node refused its arguments, or to go on, 1 if a callback failed.
    """
    # A pipe tells the main thread to end: the interpreter writes every signal to it, in whichever thread that comes,
    # and the executor's thread its own end. A threading.Event would not do: its lock may be held by the main thread in
    # wait() when the signal arrives, which is a deadlock, and a signal that another thread receives does not wake the
    # main thread.
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as cause:  # rclpy's RCLError and UnknownROSArgsError, which have no public name
        print(str(cause).replace('\n', ' '), file=sys.stderr)
        return 2
    try:
        node = factory()
    except RobotIdError as refusal:
        print(str(refusal), file=sys.stderr)
        rclpy.try_shutdown()
        return 2
    SimulatedTime(node)  # a node that needs it has one of its own, and follows /clock while it does
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    failed: list[BaseException] = []
    ending, closed = threading.Event(), threading.Event()

    def spin() -> None:
        while not closed.is_set():  # after a callback that failed, too: close() may have an arm to bring to rest
            try:
                executor.spin()
            except ExternalShutdownException:
                break
            except BaseException as cause:
                if not ending.is_set():  # errors during the shutdown are no failure
                    failed.append(cause)
            with suppress(BlockingIOError):  # full of signals already
                os.write(writer, b'.')

    thread = threading.Thread(target=spin, name='executor', daemon=True)
    thread.start()
    os.read(reader, 1)
    ending.set()
    close = getattr(node, 'close', None)
    if close is not None:
        close()
    closed.set()
    executor.shutdown(timeout_sec=0.0 if failed else 5.0)  # a failed callback counts as running for ever
    thread.join(timeout=5.0)
    refused = bool(failed) and isinstance(failed[0], RobotIdError)
    if refused:
        node.get_logger().fatal(str(failed[0]))
    elif failed:
        node.get_logger().fatal(f'stopped by an unexpected error: {failed[0]!r}')
    node.destroy_node()
    rclpy.try_shutdown()
    for number in _SIGNALS:  # no further one cuts the end of the process short
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(-1)
    return 2 if refused else 1 if failed else 0


def failure(node: Node, cause: Exception) -> str:
    """Return the line that answers a call.

    A :class:`RobotIdError` is a refusal; everything else is a fault of this package and goes to the log with its
    traceback.
    """
    if isinstance(cause, RobotIdError):
        return str(cause)
    node.get_logger().error(''.join(traceback.format_exception(cause)))
    return f'a fault of robotid_ros, please report it with the traceback in the log: {type(cause).__name__}: {cause}'


def serve(node: Node, **actions: Callable[[], Awaitable[str]]) -> None:
    """Offer each action as the Trigger service ``~/<its name>``, which answers with its text.

    An exception is answered with ``success: false`` and one line. Messages and other calls come in while an action
    waits.
    """

    def answering(action: Callable[[], Awaitable[str]]) -> Callable[[Any, Any], Awaitable[Any]]:
        async def answer(_: Any, response: Any) -> Any:
            try:
                response.message = await action()
                response.success = True
            except Exception as cause:
                response.success, response.message = False, failure(node, cause)
            return response

        return answer

    group = ReentrantCallbackGroup()
    for name, action in actions.items():
        node.create_service(Trigger, f'~/{name}', answering(action), callback_group=group)


def wait_for(wanted: Callable[[], Result], patience: float) -> Result:
    """Return what is wanted once it is there, or what is in its place after so long [s].

    For a thread that is not the executor's.
    """
    deadline = time.monotonic() + patience
    while not (found := wanted()) and time.monotonic() < deadline:
        time.sleep(_POLL)
    return found


def call_service(node: Node, kind: Any, name: str, request: Any, patience: float = 2.0) -> Any:
    """Return the answer of a service, or None if it is not there, or silent, for so long [s].

    For a thread that is not the executor's, and for requests that may be made more than once: a server that has not met
    this client yet may drop its answer, so that it is asked again.
    """
    client, answered = node.create_client(kind, name), threading.Event()
    asked: list[Future] = []
    try:
        if not wait_for(client.service_is_ready, patience):
            return None
        for _ in range(_QUESTIONS):
            asked.append(client.call_async(request))
            asked[-1].add_done_callback(lambda _: answered.set())
            if answered.wait(patience / _QUESTIONS):
                return next(each.result() for each in asked if each.done())
        return None
    finally:
        node.destroy_client(client)


class BackgroundWorker:
    """Runs slow work off the executor's thread and hands its result back to a coroutine.

    A coroutine gets it by ``await worker.run(function)``. The thread is a daemon: a node that
    ends does not wait for unfinished work.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        # A group of its own: the group of a callback that waits for us is not waited on.
        self._wake = node.create_guard_condition(lambda: None, callback_group=ReentrantCallbackGroup())
        self._closed = threading.Event()
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()

        def serve() -> None:
            while True:
                work = self._work.get()
                if self._closed.is_set():
                    return
                work()

        threading.Thread(target=serve, name='worker', daemon=True).start()

    def run(self, function: Callable[..., Result], *arguments: Any) -> Future:
        """Return a future of ``function(*arguments)``, computed in the worker's thread, in order."""
        future = Future(executor=self._node.executor)

        def work() -> None:
            give: Callable[[], None]
            try:
                give = partial(future.set_result, function(*arguments))
            except Exception as cause:
                give = partial(future.set_exception, cause)
            if not self._closed.is_set():  # the executor and the guard may be gone by now
                give()
                self._wake.trigger()  # an idle executor would otherwise not look at the future again

        self._work.put(work)
        return future

    def close(self) -> None:
        """Forget work that has not begun, and the result of work that has."""
        self._closed.set()
        self._work.put(lambda: None)

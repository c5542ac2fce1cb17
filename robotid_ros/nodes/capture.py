# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Taking serialised messages from a topic without losing any.

An executor calls back for each message, which takes 25 to 30 % of a core at 1 kHz. Here a thread of its own takes all
queued messages and then sleeps for some milliseconds, so that the next turn takes many: 6 % at 1 kHz. No callback of
the node can delay it. A second thread hands chunks to the consumer, so that neither disk nor arithmetic keeps messages
waiting in the middleware's queue.

rclpy has no public call that takes a message; what is used of it, ``Subscription.handle.take_message``, is what its own
executors call, the same from Humble to Rolling.
"""

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from robotid_ros.data.messages import MessageChunk

NAP = 0.01  # between taking turns [s]
CHUNK = 0.25  # how often messages are handed on [s]
BACKLOG = 240  # chunks the consumer may be behind before the middleware's queue has to hold messages


class _NoExecutor(CallbackGroup):
    """A callback group that no executor serves."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        return None


class Capture:
    """Takes every message of a topic, raw, from construction to :meth:`stop`.

    The consumer gets chunks in order, in a thread of its own; what it raises is kept in ``failure``. The node's
    executor is not used. The middleware holds ``depth`` messages while this process is kept from
    running. The reliability is the publisher's, or best effort.
    """

    def __init__(
        self,
        node: Node,
        message_type: type,
        topic: str,
        consumer: Callable[[MessageChunk], None],
        depth: int = 5000,
        reliability: ReliabilityPolicy = ReliabilityPolicy.RELIABLE,
    ) -> None:
        self.received = 0
        self.failure: BaseException | None = None
        self.first = threading.Event()
        self._node = node
        self._type = message_type
        self._consumer = consumer
        self._chunks: queue.Queue[MessageChunk | None] = queue.Queue(maxsize=BACKLOG)
        self._stop = threading.Event()
        self._subscription = node.create_subscription(
            message_type,
            topic,
            lambda _: None,
            QoSProfile(depth=depth, reliability=reliability),
            raw=True,
            callback_group=_NoExecutor(),
        )
        self._taker = threading.Thread(target=self._take_all, name='capture', daemon=True)
        self._worker = threading.Thread(target=self._consume, name='recording', daemon=True)
        self._worker.start()
        self._taker.start()

    def stop(self) -> None:
        """Take what has come, hand it on, and end; returns when the consumer has everything."""
        self._stop.set()
        self._taker.join()
        self._chunks.put(None)
        self._worker.join()
        self._node.destroy_subscription(self._subscription)

    def _take_all(self) -> None:
        try:
            self._take_until_stopped()
        except BaseException as cause:
            self.failure = cause

    def _take_until_stopped(self) -> None:
        handle, topic = self._subscription.handle, self._subscription.topic_name
        take, kind = handle.take_message, self._type
        messages: list[bytes] = []
        sent: list[int] = []
        numbers: list[int] = []
        publishers: list[int] = []
        known: dict[bytes, int] = {}
        handed_on = time.monotonic()
        with handle:
            while True:
                last_turn = self._stop.is_set()
                single = self._node.count_publishers(topic) == 1
                while (taken := take(kind, True)) is not None:
                    self.first.set()
                    message, info = taken
                    messages.append(message)
                    sent.append(info['source_timestamp'] or info['received_timestamp'])
                    # Up to Jazzy nothing tells publishers apart, and several mix their counts.
                    identity = info.get('publisher_gid')
                    number = info.get('publication_sequence_number') if single or identity else None
                    numbers.append(-1 if number is None else number)
                    publishers.append(known.setdefault(identity['data'] if identity else b'', len(known)))
                now = time.monotonic()
                if messages and (last_turn or now - handed_on >= CHUNK):
                    self._chunks.put(MessageChunk.of(messages, sent, numbers, publishers))
                    self.received += len(messages)
                    messages, sent, numbers, publishers = [], [], [], []
                    handed_on = now
                if last_turn:
                    return
                time.sleep(NAP)

    def _consume(self) -> None:
        while (chunk := self._chunks.get()) is not None:
            if self.failure is not None:
                continue
            try:
                self._consumer(chunk)
            except BaseException as cause:
                self.failure = cause

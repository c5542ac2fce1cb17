# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Many calls of one function, on the processes of this machine or on a Dask cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib

from robotid_ros.errors import DataError, MissingDependencyError

Argument = TypeVar('Argument')
Result = TypeVar('Result')

CONNECTING = 10.0  # seconds in which a scheduler has to answer
LOST = 'the process that worked on it was ended, probably because memory ran out; use fewer jobs at a time'


@contextmanager
def engine(dask: str | None) -> Iterator[None]:
    """Let every ``joblib.Parallel`` inside run on the Dask cluster of a scheduler, or on processes where none is given.

    Its address is like ``'tcp://host:8786'``. A MissingDependencyError says that dask.distributed is not installed, a
    DataError that no scheduler answers.
    """
    if dask is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as cause:
        raise MissingDependencyError.of('distributed', 'fleet', 'use a Dask cluster') from cause
    try:
        client = Client(dask, timeout=CONNECTING)
    except (OSError, ValueError, TimeoutError) as cause:
        raise DataError(f"no Dask scheduler answers at '{dask}'; expected an address like tcp://host:8786") from cause
    try:
        if not client.scheduler_info()['workers']:
            raise DataError(f"the Dask scheduler at '{dask}' has no workers; start some with: dask worker {dask}")
        with joblib.parallel_config(backend='dask', n_jobs=-1):
            yield
    finally:
        client.close()


def each(
    function: Callable[[Argument], Result], arguments: Sequence[Argument], *, jobs: int = -1
) -> Iterator[tuple[int, Result | None]]:
    """Yield the place and the result of every call, as they finish.

    A call that ends its process does not end the others: those that were under way are called once more, each alone,
    and the one that ends its process again yields None.

    There are ``jobs`` processes on this machine, -1 for one per core; on a cluster its workers count. They import the
    function. With one process the calls run in this one.
    """
    waiting = list(range(len(arguments)))
    while waiting:
        count = joblib.effective_n_jobs(jobs)
        try:
            for place, result in _unordered(function, arguments, waiting, count):
                waiting.remove(place)
                yield place, result
        except Exception as cause:
            if not _ended(cause):
                raise
            for place in waiting[:count]:  # calls begin in order, so these were under way
                waiting.remove(place)
                try:
                    # Two processes for one call: with one, joblib would call it in this process.
                    yield from _unordered(function, arguments, [place], max(count, 2))
                except Exception as again:
                    if not _ended(again):
                        raise
                    yield place, None


def _unordered(
    function: Callable[[Argument], Result], arguments: Sequence[Argument], places: Sequence[int], jobs: int
) -> Iterator[tuple[int, Result]]:
    pool = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as='generator_unordered')
    yield from pool(joblib.delayed(_placed)(function, place, arguments[place]) for place in places)


def _placed(function: Callable[[Any], Any], place: int, argument: Any) -> tuple[int, Any]:
    with joblib.parallel_config(backend='sequential'):  # the calls share the cores already
        return place, function(argument)


def _ended(cause: Exception) -> bool:
    """Return whether the exception says that a process ended: of loky, or KilledWorker of Dask."""
    names = {each.__name__ for each in type(cause).__mro__}
    return bool(names & {'BrokenProcessPool', 'BrokenExecutor', 'KilledWorker'})

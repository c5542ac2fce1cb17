# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Errors are compared by what they are about, not by their sentences."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from robotid_ros.errors import RobotIdError


@contextmanager
def refused(error: type[RobotIdError], **about: Any) -> Iterator[pytest.ExceptionInfo[RobotIdError]]:
    """Expect an error of one line that is about these things, whatever else it is about."""
    with pytest.raises(error) as caught:
        yield caught
    assert {name: caught.value.about.get(name) for name in about} == about, caught.value
    assert '\n' not in str(caught.value)

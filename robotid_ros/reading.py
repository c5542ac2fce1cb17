# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Reading of files given by users: any fault of a file becomes one line."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from robotid_ros.errors import MissingDependencyError, RobotIdError

LARGEST_TEXT = 1 << 26  # [bytes]; a model or a result takes some hundred kB
DEEPEST = 100  # levels of a YAML file; a result has five
MOST_REPEATED = 100_000  # values that aliases of a YAML file stand for
LONGEST_MESSAGE = 240  # characters, beside the name of the file


@contextmanager
def refusing(what: str, error: type[RobotIdError], **about: Any) -> Iterator[None]:
    """Turn whatever reading a damaged or foreign file raises into one line.

    An error of the given type begins with ``what`` is read and the name of the file. Errors of this package pass
    through, shortened. All carry what they are ``about``.
    """
    try:
        yield
    except (MissingDependencyError, KeyboardInterrupt):
        raise
    except RobotIdError as cause:
        cause.about = {**about, **cause.about}
        line = _short(str(cause), LONGEST_MESSAGE + len(what))
        if line != str(cause):
            raise type(cause)(line, **cause.about) from cause
        raise
    except OSError as cause:
        raise error(f'{what} cannot be read: {cause.strerror or _short(str(cause))}', **about) from cause
    except MemoryError as cause:
        raise error(f'{what} cannot be read: it needs more memory than there is', **about) from cause
    except RecursionError as cause:
        raise error(f'{what} cannot be read: it is nested too deeply', **about) from cause
    except Exception as cause:  # each library raises errors of its own classes, and a wrong type can fail anywhere
        kind = '' if type(cause) is ValueError else f'{type(cause).__name__}: '
        raise error(f'{what} cannot be read: {kind}{_short(str(cause))}', **about) from cause


def read_text(path: str | Path, what: str, error: type[RobotIdError]) -> str:
    """Return the text of a file in UTF-8; ``what`` it is to be is, for example, ``'DH file'``.

    Raises a RobotIdError of the given type, if the file does not exist, is no file, is too large or is not UTF-8.
    """
    path = Path(path).expanduser()
    with refusing(f"{what} '{path}'", error, file=str(path)):
        if not path.exists():
            raise error(f"{what} '{path}' does not exist")
        if not path.is_file():
            raise error(f"{what} '{path}' cannot be read: expected a file, got a folder or a device")
        if path.stat().st_size > LARGEST_TEXT:
            raise error(f"{what} '{path}' cannot be read: expected at most {LARGEST_TEXT >> 20} MB")
        return path.read_text(encoding='utf-8')


def read_yaml(path: str | Path, what: str, error: type[RobotIdError]) -> Any:
    """Return what a YAML file holds: plain values, lists and mappings.

    Errors are those of :func:`read_text`, also for a text that is not YAML.
    """
    text = read_text(path, what, error)
    with refusing(f"{what} '{path}'", error, file=str(Path(path).expanduser())):
        return parse_yaml(text)


def parse_yaml(text: str) -> Any:
    """Return what a YAML text holds; a ValueError if it is not YAML, a RecursionError if it is nested too deeply.

    The parser in C is ten times as fast as that in Python, and ends the process where nesting exhausts its stack.
    Therefore the depth is counted before anything is built. So is what aliases repeat: ten lines can stand for a
    billion values, which whoever goes through them would make.
    """
    loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
    try:
        values = repeated = 0
        begun: list[tuple[str | None, int]] = []  # anchors of the collections around, and how many values were before
        sizes: dict[str, int] = {}  # by anchor
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionEndEvent):
                anchor, before = begun.pop()
                sizes |= {anchor: values - before} if anchor is not None else {}
                continue
            values += 1
            if isinstance(event, yaml.CollectionStartEvent):
                begun.append((event.anchor, values))
                if len(begun) > DEEPEST:
                    raise RecursionError(f'more than {DEEPEST} levels')
            elif isinstance(event, yaml.AliasEvent):
                if any(event.anchor == anchor for anchor, _ in begun):
                    raise ValueError(f"'*{event.anchor}' stands for what it is a part of")
                values += sizes.get(event.anchor, 1)
                repeated += sizes.get(event.anchor, 1)
                if repeated > MOST_REPEATED:
                    raise ValueError(f'its aliases stand for more than {MOST_REPEATED} values')
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as cause:
        raise ValueError(f'not valid YAML: {" ".join(str(cause).split())}') from cause


def read_bool(content: Mapping[str, Any], name: str) -> bool:
    """Return an entry that is true or false; a ValueError if it is a text or a number, as ``'no'`` in quotes is."""
    value = content[name]
    if not isinstance(value, bool):
        raise ValueError(f'{name}: expected true or false, got {value!r:.60}')
    return value


def _short(text: str, length: int = LONGEST_MESSAGE) -> str:
    """Return a text on one line, cut where it is too long."""
    line = ' '.join(text.split())
    return line if len(line) <= length else f'{line[: length - 4]} ...'

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The troubleshooting page quotes what users see: each message is one that the code can say."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs' / 'troubleshooting.md').read_text(encoding='utf-8')
MESSAGES = [match[1] for match in re.finditer(r'^\| `([^`]{12,})` \|', PAGE, re.MULTILINE)]


@pytest.fixture(scope='module')
def said() -> str:
    """Return all that the package can say: constant strings, and the constant parts of the others."""
    found = []
    for path in (ROOT / 'robotid_ros').rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    found += [path.read_text(encoding='utf-8') for path in (ROOT / 'robotid_ros').rglob('*.js')]
    return '\n'.join(found)


def test_there_are_messages() -> None:
    assert len(MESSAGES) > 25


@pytest.mark.slow
@pytest.mark.parametrize('message', MESSAGES)
def test_a_quoted_message_is_one_that_the_code_says(message: str, said: str) -> None:
    parts = [part.strip() for part in message.split('…') if len(part.strip()) > 2]
    assert parts
    for part in parts:
        assert part in said, part

# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Docstrings as they are written here, to reStructuredText: indented equations stay as they are, bars are bars."""

from typing import Any

from sphinx.application import Sphinx

SECTIONS = ('Attributes', 'Parameters', 'Returns', 'Raises', 'Yields', 'Notes', 'References', 'Examples', 'See Also')


def convert(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Mark indented paragraphs of running text as literal blocks, and escape bars outside of them."""
    result: list[str] = []
    free_text, literal = True, False
    for k, line in enumerate(lines):
        following = lines[k + 1] if k + 1 < len(lines) else ''
        if line.strip() in SECTIONS and following.startswith('---'):
            free_text = line.strip() in ('Notes', 'Examples')
        indented = line.startswith('    ')
        if literal and line.strip() and not indented:
            literal = False
        begins = free_text and indented and not literal and k > 0 and not lines[k - 1].strip()
        if begins:
            before = next((text for text in reversed(result) if text.strip()), '')
            if not before.endswith('::'):
                result += ['::', '']
            literal = True
        result.append(line if literal else line.replace('|', '\\|'))
    lines[:] = result


def setup(app: Sphinx) -> dict[str, Any]:
    """Convert before numpydoc does."""
    app.connect('autodoc-process-docstring', convert, priority=100)
    return {'parallel_read_safe': True, 'version': '1'}

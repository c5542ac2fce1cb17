# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Directives that write down what the code says: parameters of nodes, help of commands, fields of settings."""

import argparse
import importlib
import os
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from robotid_ros.settings import Setting, settings_of


class ParameterTable(Directive):
    """``{parameters} module:Class ...``: one table of the fields of dataclasses that carry metadata."""

    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = []
        for argument in self.arguments:
            module, _, name = argument.partition(':')
            kind = getattr(importlib.import_module(module), name)
            rows += [_row(item) for item in settings_of(kind)]
        return [_table(('Parameter', 'Type', 'Default', 'Meaning'), (22, 12, 16, 50), rows)]


class CommandHelp(Directive):
    """``command-help [name]``: what ``robotid name --help`` prints; without a name, a section for every command."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a literal block, or sections."""
        os.environ['COLUMNS'] = '100'
        from robotid_ros.commands import COMMANDS

        if self.arguments:
            name = self.arguments[0]
            if name not in COMMANDS:
                raise self.error(f'there is no command {name}; there are: {", ".join(COMMANDS)}')
            return [_literal(_help(name))]
        sections: list[nodes.Node] = []
        for name in COMMANDS:
            section = nodes.section(ids=[f'robotid-{name}'])
            section += [nodes.title(text=f'robotid {name}'), _literal(_help(name))]
            sections.append(section)
        return sections


def _help(name: str) -> str:
    from robotid_ros.cli import build_parser

    parsers = next(a for a in build_parser(name)._actions if isinstance(a, argparse._SubParsersAction))
    return str(parsers.choices[name].format_help())


def _literal(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language='none')


class CommandList(Directive):
    """``{command-list}``: all commands with their summaries."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        from robotid_ros.commands import COMMANDS

        rows = [(_code(f'robotid {name}'), _text(line)) for name, line in COMMANDS.items()]
        return [_table(('Command', 'What it does'), (30, 70), rows)]


def _row(item: Setting) -> tuple[nodes.paragraph, ...]:
    kind = f'list of {item.kind.__name__}' if item.form == 'list' else item.kind.__name__
    return _code(item.name), _text(kind), _code(_spell(item.default)), _text(' '.join(_meaning(item)))


def _meaning(item: Setting) -> Iterator[str]:
    of = f' [{item.unit}]' if item.unit else ''
    yield f'{item.description[:1].upper()}{item.description[1:]}{of}.'
    if item.choices:
        yield f'One of: {", ".join(choice or "(empty)" for choice in item.choices)}.'
    if item.range:
        yield f'From {item.range[0]:g} to {item.range[1]:g}.'
    if item.read_only:
        yield 'Set at start only.'


def _spell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return '[' + ', '.join(_spell(item) for item in value) + ']'
    return "''" if value == '' else str(value)


def _text(text: str) -> nodes.paragraph:
    return nodes.paragraph(text, text)


def _code(text: str) -> nodes.paragraph:
    paragraph = nodes.paragraph()
    paragraph += nodes.literal(text, text)
    return paragraph


def _table(heads: tuple[str, ...], widths: tuple[int, ...], rows: list[Any]) -> nodes.table:
    table = nodes.table()
    group = nodes.tgroup(cols=len(heads))
    table += group
    for width in widths:
        group += nodes.colspec(colwidth=width)
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    head += _line([_text(text) for text in heads])
    for row in rows:
        body += _line(row)
    return table


def _line(cells: Any) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        entry = nodes.entry()
        entry += cell
        row += entry
    return row


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive('parameters', ParameterTable)
    app.add_directive('command-help', CommandHelp)
    app.add_directive('command-list', CommandList)
    return {'parallel_read_safe': True, 'version': '1'}
